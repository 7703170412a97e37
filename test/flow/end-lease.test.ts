import { afterAll, beforeAll, expect, test } from 'vitest';
import { acceptResult } from '../../app/flow/accept-result.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { changedFile, openQueueRun, queueDeps, seedRepository, setFiles } from '../helpers/queue.ts';
import { testRunner } from '../helpers/runner.ts';

const RUN = 'many';
let db: TestDatabase;
let deps: Deps;

beforeAll(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database);
  await openQueueRun(deps, RUN, 1);
});
afterAll(() => db.drop());

/** In how many milliseconds the decision that waits begins. */
async function decidesIn(): Promise<number[]> {
  const { rows } = await db.database.pool.query<{ ms: number }>(
    `select (extract(epoch from run_at - clock_timestamp()) * 1000)::float8 as ms from graphile_worker.jobs where key = $1`,
    [`decide-gate:${RUN}`],
  );
  return rows.map(({ ms }) => ms);
}

test('S2: with many tickets to come an end puts the decision off, others do not put it off further, the last ones bring it forward', async () => {
  await setFiles(
    deps,
    RUN,
    Array.from({ length: 90 }, (_, n) => changedFile(RUN, `${n}`)),
  );
  await cutTickets(deps, { run: RUN });
  const runner = await testRunner(deps);
  const endOne = async () => {
    const [lease] = await runner.lease();
    if (lease === undefined) throw new Error('nothing to lease');
    await acceptResult(deps, await runner.claim(lease), {
      end: 'reviewed',
      detail: null,
      retry_after_ms: null,
      blobs: lease.ticket.blob,
      verdict: 'approve',
      partial: false,
      sessions: [
        {
          id: `${lease.id}.1`,
          reviewer: lease.ticket.reviewers[0]?.name ?? '',
          provider: 'command',
          model: null,
          end: 'complete',
          detail: null,
          exit: 0,
          tokens_in: 0,
          tokens_out: 0,
          cost_micro: 0,
          ms: 1,
        },
      ],
      findings: [],
      unplaced: [],
      brief_sha256: null,
      ms: 1,
    });
  };
  await db.database.pool.query('delete from graphile_worker._private_jobs');
  // the machine may be slow: what was put off is held further off here, so that it is still seen
  await endOne();
  const { rowCount } = await db.database.pool.query(
    `update graphile_worker._private_jobs set run_at = run_at + interval '1 hour' where key = $1 and run_at > created_at`,
    [`decide-gate:${RUN}`],
  );
  expect(rowCount, 'put off').toBe(1);
  await endOne();
  const [waits] = await decidesIn();
  expect(waits, 'as the first put it').toBeGreaterThan(1_800_000);
  await db.database.pool.query(
    `update ticket set state = 'cancelled', lane = null where state = 'pending' and id in (
       select id from ticket where state = 'pending' and lane is null limit 40)`,
  );
  await endOne();
  const last = await decidesIn();
  expect(last).toHaveLength(1);
  expect(last[0], 'now').toBeLessThanOrEqual(0);
});
