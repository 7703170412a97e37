import { afterAll, beforeAll, expect, test } from 'vitest';
import { type UnitDeps, withRun } from '../../app/flow/append-rows.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { connect, type Database } from '../../db/client.ts';
import { findRun, updateRun } from '../../db/store/run.ts';
import { startWire, type Wire } from '../helpers/cut.ts';
import { asOwner, type TestDatabase, testDatabase } from '../helpers/database.ts';
import { openTestRun, smallRow, testSigner } from '../helpers/ledger.ts';
import { faultFunction, startPostgresProxy } from '../helpers/proxy-postgres.ts';

let one: TestDatabase;
let wire: Wire;
let database: Database;
let deps: UnitDeps;
let straight: UnitDeps;
beforeAll(async () => {
  one = await testDatabase();
  wire = await startWire(one.url);
  database = await connect(wire.url, { max: 2 });
  const signer = testSigner();
  deps = { database, signer };
  straight = { database: one.database, signer };
});
afterAll(async () => {
  await database.close();
  await wire.close();
  await one.drop();
});

const change = (id: string, title: string) =>
  withRun(deps, id, async (unit) => {
    await updateRun(unit.tx, id, { title });
    unit.append('command.refused', smallRow(title));
    unit.enqueue('follow', { title }, { key: `${id}:${title}` });
  });

/** Title, rows and jobs of a run, which must always tell the same story. */
async function stateOf(id: string) {
  const run = await findRun(one.database.db, id);
  if (run === null) throw new Error('no run');
  const { verdict, rows } = await verifyRun(straight, run, { full: true });
  const jobs = await one.database.pool.query('select key from graphile_worker.jobs where key like $1', [
    `${id}:%`,
  ]);
  return { verdict: verdict.kind, title: run.title, rows: rows.length, jobs: jobs.rowCount };
}

test('RUN-6: a lost answer to COMMIT is told as such and never tried again: all of it is there, once', async () => {
  await openTestRun(straight, 'run-lost', '1');
  wire.cutAfter('commit\u0000'); // the whole statement: BEGIN names synchronous_commit
  await expect(change('run-lost', 'lost')).rejects.toMatchObject({
    code: 'database_unreachable',
    retryable: true,
  });
  expect(wire.cuts).toBe(1);
  expect(await stateOf('run-lost')).toEqual({ verdict: 'intact', title: 'lost', rows: 2, jobs: 1 });
  // the pool has thrown the broken connection away
  await change('run-lost', 'next');
  expect(await stateOf('run-lost')).toEqual({ verdict: 'intact', title: 'next', rows: 3, jobs: 2 });
});

test.each(['begin', 'run_lock', 'update "run"'])(
  'RUN-6: a connection lost at %s leaves nothing',
  async (statement) => {
    const id = `run-${statement.replaceAll(/[^a-z]/g, '')}`;
    await openTestRun(straight, id, String(10 + statement.length));
    const before = wire.cuts;
    wire.cutAfter(statement);
    await expect(change(id, 'never')).rejects.toMatchObject({
      code: 'database_unreachable',
      retryable: true,
    });
    expect(wire.cuts).toBe(before + 1);
    expect(await stateOf(id)).toEqual({ verdict: 'intact', title: '', rows: 1, jobs: 0 });
    await change(id, 'after');
    expect(await stateOf(id)).toEqual({ verdict: 'intact', title: 'after', rows: 2, jobs: 1 });
  },
);

test('RUN-6: a refused BEGIN leaves nothing, though statements travel with it', async () => {
  await asOwner(one.url, (client) => client.query(faultFunction));
  const proxy = await startPostgresProxy(one.url);
  const behind = await connect(proxy.url, { max: 2 });
  const refuse = () => {
    let left = 1;
    proxy.watch = ({ sql }) =>
      sql.startsWith('begin') && left-- > 0 ? { when: 'fail', code: '53200' } : undefined;
  };
  const unit = { database: behind, signer: straight.signer };
  // its first statement writes: alone it would be a run without a row
  refuse();
  await expect(openTestRun(unit, 'run-refused', '90')).rejects.toMatchObject({ code: '53200' });
  expect(await findRun(one.database.db, 'run-refused')).toBeNull();
  await openTestRun(unit, 'run-refused', '90');
  // its first statement locks, and travels with BEGIN: the server skips it
  refuse();
  const broken = withRun(unit, 'run-refused', async ({ tx, append }) => {
    await updateRun(tx, 'run-refused', { title: 'half' });
    append('command.refused', smallRow('half'));
  });
  await expect(broken).rejects.toMatchObject({ code: '53200' });
  expect(await stateOf('run-refused')).toEqual({ verdict: 'intact', title: '', rows: 1, jobs: 0 });
  await behind.close();
  await proxy.close();
});
