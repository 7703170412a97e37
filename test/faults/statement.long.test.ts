import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { workflowFile } from '../../app/domain/workflow.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { asOwner } from '../helpers/database.ts';
import { type Ended, type Ending, endingOf } from '../helpers/ending.ts';
import { type InboxStage, inboxStage } from '../helpers/inbox.ts';
import {
  faultFunction,
  type PostgresProxy,
  type Strike,
  startPostgresProxy,
} from '../helpers/proxy-postgres.ts';

/** How many rounds; with SOAK_ROUNDS every statement is struck in every way, or each FAULT_STEP-th. */
const ROUNDS = 16;
const SOAK = process.env['SOAK_ROUNDS'] !== undefined;
const SOAK_STEP = Number(process.env['FAULT_STEP'] ?? 1);

const WAYS: Readonly<Record<string, Strike>> = {
  'is refused with disk_full': { when: 'fail', code: '53100' },
  'loses a serialization race': { when: 'fail', code: '40001' },
  'never arrives': { when: 'before', act: (cut) => cut() },
  'is answered into nothing': { when: 'after', act: (cut) => cut() },
};

let stage: InboxStage;
let proxy: PostgresProxy;
let ended: Ended;
let undisturbed: Ending;
let statements = 0;

beforeAll(async () => {
  stage = await inboxStage(async (url) => {
    await asOwner(url, (client) => client.query(faultFunction));
    proxy = await startPostgresProxy(url);
    return proxy.url;
  });
  const { gh, app, database } = stage;
  ended = {
    gh,
    app,
    run: async (pull) => {
      const run = await stage.run(pull);
      if (run === null) throw new Error('no run');
      return run;
    },
    rows: (pull) => stage.rows(pull),
    query: async <T extends Record<string, unknown>>(text: string, values: readonly unknown[] = []) =>
      (await database.database.pool.query<T>(text, [...values])).rows,
    gate: (pull) => gh.governing(pull.repository, pull.head.sha, 'countersign', app),
  };
  undisturbed = await play(() => undefined);
});
afterAll(async () => {
  await stage.close();
  await proxy.close();
});

/** A pull request up to its pending gate and its waiting ticket, with a strike on the way. */
async function play(strike: (n: number, sql: string) => Strike | undefined): Promise<Ending> {
  const { gh, deps, database } = stage;
  const workflow = workflowFile({
    serverUrl: stage.server.url,
    ref: 'countersign-dev/countersign@v0',
    keys: [],
  });
  const { repository } = await stage.repository({
    files: { '.github/workflows/countersign.yml': workflow },
  });
  await stage.settle();
  // nobody comes: the ticket waits. Of this repository alone: rounds before it may be due for another try
  gh.actions.disturb({ kind: 'never', times: Number.POSITIVE_INFINITY, repository });
  let n = 0;
  proxy.watch = ({ sql }) => strike(++n, sql);
  const pull = await stage.open(repository, 'topic');
  for (let turn = 0; ; turn++) {
    await gh.idle();
    // a job that failed is tried again, later than a test waits; a worker that fell is started again
    await stage.settle().catch(() => {});
    await database.database.pool.query(
      'update graphile_worker._private_jobs set run_at = now() where run_at > now() and locked_at is null',
    );
    if (await isThere(pull)) break;
    if (turn > 8) {
      const jobs = await ended.query(
        'select task_identifier, key, attempts, run_at, locked_by, last_error from graphile_worker.jobs',
      );
      const said = stage.logged.slice(-20).map((line) => JSON.stringify(line));
      throw new Error(
        `it does not come to its end:\n${[...jobs.map((job) => JSON.stringify(job)), ...said].join('\n')}`,
      );
    }
    if (turn > 1) await database.moveClock(61_000);
    await deps.database.pool
      .query(
        'select graphile_worker.force_unlock_workers(array_agg(distinct locked_by)) from graphile_worker._private_jobs where locked_by is not null',
      )
      .catch(() => {});
    await stage.server.sweep();
  }
  proxy.watch = () => undefined;
  if (statements === 0) statements = n;
  const ending = await endingOf(ended, pull, [pull.head.sha]);
  const runs = gh.actions.runs.filter((one) => one.repository === repository);
  const sent = await ended.query(
    'select state, detail, workflow_run::text, created_at, due_at, ended_at, cs_now() as now from dispatch where repository_id = $1',
    [String(repository.id)],
  );
  expect(runs.length, `no intent is sent twice: ${JSON.stringify(sent)}`).toBeLessThanOrEqual(1);
  return ending;
}

/** The gate is shown and the ticket is cut, and nothing is left to do for them. */
async function isThere(pull: Pull): Promise<boolean> {
  const run = await stage.run(pull).catch(() => null);
  if (run === null || ended.gate(pull) === null) return false;
  // the queue keeps a locked job whose key another took over, at its last attempt: where the answer that
  // gave it to a worker was lost, nobody runs it, and the other one did its work
  const [left] = await ended.query<{ jobs: number; tickets: number; checks: number }>(
    `select (select count(*)::int from graphile_worker.jobs
             where key is not null or attempts < max_attempts or locked_at is not null) as jobs,
            (select count(*)::int from ticket where run_id = $1) as tickets,
            (select count(*)::int from check_run where run_id = $1 and written is distinct from wanted) as checks`,
    [run.id],
  );
  return left?.jobs === 0 && left.tickets === 1 && left.checks === 0;
}

describe('a statement that fails', () => {
  test('an undisturbed round: pending, with a ticket that waits', () => {
    expect(undisturbed).toMatchObject({
      gate: { conclusion: 'in_progress' },
      tickets: { pending: 1 },
      deliveries: {},
    });
    expect(statements).toBeGreaterThan(60);
  });

  test.each(Object.keys(WAYS))(
    'RUN-6, OPS-1: each n-th statement %s: the end is the same',
    async (name) => {
      const way = WAYS[name];
      if (way === undefined) throw new Error('no such way');
      const all = statements;
      const step = SOAK ? SOAK_STEP : Math.ceil((all * Object.keys(WAYS).length) / ROUNDS);
      const first = Number(process.env['FAULT_FIRST'] ?? 1 + (Date.now() % step));
      for (let n = first; n <= all; n += step) {
        let struck = '';
        const ending = await play((now, sql) => {
          if (now !== n) return undefined;
          struck = sql.replaceAll(/\s+/g, ' ').slice(0, 100);
          return way;
        }).catch((error: unknown) => {
          throw new Error(`statement ${n} of ${all} ${name}: ${struck}`, { cause: error });
        });
        expect(ending, `statement ${n} of ${all} ${name}: ${struck}`).toEqual(undisturbed);
      }
    },
    SOAK ? 3_600_000 : 360_000,
  );
});
