import { Logger, run as runWorker } from 'graphile-worker';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readRow } from '../../app/domain/ledger/row.ts';
import { openRun, type UnitDeps, withInstallation, withRun } from '../../app/flow/append-rows.ts';
import { readHead, readRows } from '../../db/store/ledger.ts';
import { findRun, updateRun } from '../../db/store/run.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { app, cause, openTestRun, runRecord, smallRow, unitDeps } from '../helpers/ledger.ts';

let one: TestDatabase;
let deps: UnitDeps;
beforeAll(async () => {
  one = await testDatabase({ max: 2 });
  deps = unitDeps(one.database);
});
afterAll(() => one.drop());

const rowsOf = (run: string) => readRows(one.database.db, run, 0, 1000);
const jobs = async () =>
  (await one.database.pool.query('select task_identifier, key from graphile_worker.jobs')).rows;

describe('withRun', () => {
  test('RUN-6: change, rows and jobs commit together', async () => {
    await openTestRun(deps, 'run-a', '1');
    const seqs = await withRun(deps, 'run-a', async (unit) => {
      await updateRun(unit.tx, unit.run.id, { title: 'changed' });
      unit.enqueue('sync-run', { run: unit.run.id }, { key: 'sync:run-a' });
      unit.enqueue('sync-run', { run: unit.run.id, again: true }, { key: 'sync:run-a' });
      return [unit.append('command.refused', smallRow('a')), unit.append('command.refused', smallRow('b'))];
    });
    expect(seqs).toEqual([2, 3]);
    const rows = (await rowsOf('run-a')).map((row) => readRow(row.body));
    expect(rows.map((row) => [row.seq, row.kind])).toEqual([
      [1, 'run.opened'],
      [2, 'command.refused'],
      [3, 'command.refused'],
    ]);
    expect(rows[1]).toMatchObject({
      v: 1,
      log: 'ledger.test/i/5',
      run: 'run-a',
      repo: '74',
      actor: app,
      cause,
    });
    // LED-4: both by one statement, which Postgres numbers inside its transaction
    const { rows: statements } = await one.database.pool.query(
      `select xmin::text, cmin::text from ledger_row where run_id = 'run-a' and seq > 1 group by 1, 2`,
    );
    expect(statements).toHaveLength(1);
    expect((await findRun(one.database.db, 'run-a'))?.title).toBe('changed');
    expect(await jobs()).toEqual([{ task_identifier: 'sync-run', key: 'sync:run-a' }]);
  });

  test('RUN-6: when fn rejects, nothing of it remains', async () => {
    await openTestRun(deps, 'run-b', '2');
    const failing = withRun(deps, 'run-b', async (unit) => {
      await updateRun(unit.tx, unit.run.id, { title: 'never' });
      unit.append('command.refused', smallRow('a'));
      unit.enqueue('never', {});
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await rowsOf('run-b')).toHaveLength(1);
    expect((await findRun(one.database.db, 'run-b'))?.title).toBe('');
    expect((await jobs()).filter((job) => job.task_identifier === 'never')).toEqual([]);
  });

  test('RUN-6: when a row is refused at the commit, the change is rolled back', async () => {
    await openTestRun(deps, 'run-c', '3');
    const racing = withRun(deps, 'run-c', async (unit) => {
      await updateRun(unit.tx, unit.run.id, { title: 'never' });
      unit.append('command.refused', smallRow('a'));
      await unit.tx.$client.query(`set local lock_timeout = '1ms'`);
      // the grant of a table that the closing statement needs is gone: the server refuses it
      await unit.tx.$client.query('set local role none');
      await unit.tx.$client.query(
        `create function pg_temp.no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`,
      );
      await unit.tx.$client.query(
        'create trigger no before insert on ledger_row execute function pg_temp.no()',
      );
    });
    await expect(racing).rejects.toThrow('no');
    expect((await findRun(one.database.db, 'run-c'))?.title).toBe('');
    expect(await rowsOf('run-c')).toHaveLength(1);
  });

  test('RUN-6: a unit inside a unit is nested_unit_of_work, and the outer one fails with it', async () => {
    await openTestRun(deps, 'run-d', '4');
    const nested = withRun(deps, 'run-d', () => withRun(deps, 'run-a', async () => 1));
    await expect(nested).rejects.toMatchObject({ code: 'nested_unit_of_work' });
  });

  test('case 64: ten handlers that append and then append again inside, on a pool of two, neither hang nor fork', async () => {
    await openTestRun(deps, 'run-e', '5');
    await openTestRun(deps, 'run-f', '6');
    const ends = await Promise.allSettled(
      Array.from({ length: 10 }, () =>
        withRun(deps, 'run-e', async (unit) => {
          unit.append('command.refused', smallRow('outer'));
          await withRun(deps, 'run-f', async (inner) => inner.append('command.refused', smallRow('inner')));
        }),
      ),
    );
    expect(ends.map((end) => end.status === 'rejected' && end.reason.code)).toEqual(
      Array(10).fill('nested_unit_of_work'),
    );
    await withRun(deps, 'run-e', async (unit) => unit.append('command.refused', smallRow('after')));
    // what was rolled back left no hole
    expect((await rowsOf('run-e')).map((row) => row.seq)).toEqual([1, 2]);
  });

  test('RUN-6: an unknown run is run_missing', async () => {
    await expect(withRun(deps, 'nobody', async () => 1)).rejects.toMatchObject({ code: 'run_missing' });
  });

  test('LED-2: data that does not fit its kind is refused before anything is signed', async () => {
    await openTestRun(deps, 'run-g', '7');
    const wrong = withRun(deps, 'run-g', async (unit) => {
      unit.append('command.refused', {
        ...smallRow('a'),
        data: { command: 'x', code: 'y', more: 1 } as never,
      });
    });
    await expect(wrong).rejects.toMatchObject({ code: 'row_invalid' });
    expect(await rowsOf('run-g')).toHaveLength(1);
  });

  test('a deadlock with somebody else is run again on a fresh head', async () => {
    await openTestRun(deps, 'run-h', '8');
    let calls = 0;
    await withRun(deps, 'run-h', async (unit) => {
      calls += 1;
      unit.append('command.refused', smallRow(`call ${calls}`));
      if (calls < 3) throw Object.assign(new Error('deadlock'), { code: '40P01' });
    });
    expect(calls).toBe(3);
    expect(await rowsOf('run-h')).toHaveLength(2);
  });

  test('rows carry product time, not the clock of this machine', async () => {
    const moved = await testDatabase();
    const there = unitDeps(moved.database);
    await openTestRun(there, 'run-i', '9');
    await moved.moveClock(48 * 3_600_000);
    await withRun(there, 'run-i', async (unit) => unit.append('command.refused', smallRow('late')));
    const rows = (await readRows(moved.database.db, 'run-i', 0, 10)).map((row) => readRow(row.body));
    const [first, second] = rows.map((row) => Date.parse(row.at));
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThan(47 * 3_600_000);
    await moved.drop();
  });
});

describe('openRun', () => {
  test('RUN-1: ten doubled deliveries open one run with one first row', async () => {
    const opened = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        openRun(deps, runRecord(`twin-${i}`, '900'), async (unit) => {
          const data = { pull: '900', group_head: null, epoch: 1, author: null, reason: 'opened' } as const;
          return unit.append('run.opened', { block: null, actor: app, cause, data });
        }),
      ),
    );
    expect(opened.filter((seq) => seq === 1)).toHaveLength(1);
    expect(opened.filter((seq) => seq === undefined)).toHaveLength(9);
    const { rows } = await one.database.pool.query(
      `select count(*)::int as n from ledger_head where run_id like 'twin-%'`,
    );
    expect(rows[0].n).toBe(1);
  });

  test('case 70: ids above 2^53 survive the tables and the rows', async () => {
    const big = '9007199254740995';
    await openTestRun(deps, 'run-big', '4900000001', {
      repositoryId: big,
      installationId: '31700000003',
      authorId: '9223372036854775807',
    });
    const stored = await findRun(one.database.db, 'run-big');
    expect(stored).toMatchObject({
      repositoryId: big,
      pull: '4900000001',
      installationId: '31700000003',
      authorId: '9223372036854775807',
    });
    const head = await readHead(one.database.db, 'run-big');
    expect(head?.head.repositoryId).toBe(big);
    const [row] = await rowsOf('run-big');
    expect(row && readRow(row.body)).toMatchObject({ repo: big, log: 'ledger.test/i/31700000003' });
  });
});

test('LED-4: facts of no run have a chain of their own, begun once by many', async () => {
  const seqs = await Promise.all(
    ['m1', 'm2', 'm3', 'm4'].map((from) =>
      withInstallation(deps, { id: '77', epoch: 1 }, async (unit) =>
        unit.append('key.rotated', { block: null, actor: app, cause, data: { from, to: 'm9' } }),
      ),
    ),
  );
  expect(seqs.sort()).toEqual([1, 2, 3, 4]);
  const rows = (await rowsOf('i/77')).map((row) => readRow(row.body));
  expect(rows.map((row) => row.repo)).toEqual([null, null, null, null]);
});

test('the queue takes and finishes a job as countersign_app', async () => {
  await openTestRun(deps, 'run-job', '10');
  await withRun(deps, 'run-job', async (unit) => unit.enqueue('probe', { hello: 1 }, { key: 'probe' }));
  let finish: (payload: unknown) => void = () => {};
  const done = new Promise<unknown>((resolve) => {
    finish = resolve;
  });
  const runner = await runWorker({
    pgPool: one.database.pool,
    concurrency: 1,
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    // as the app runs it: otherwise nothing waits for the note of a job's end
    preset: { worker: { completeJobBatchDelay: 0 } },
    taskList: { probe: async (payload) => finish(payload) },
  });
  expect(await done).toEqual({ hello: 1 });
  await runner.stop(); // waits until the job is told finished
  const { rows } = await one.database.pool.query(`select 1 from graphile_worker.jobs where key = 'probe'`);
  expect(rows).toEqual([]);
});
