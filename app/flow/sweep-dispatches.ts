/**
 * What time alone decides about dispatches and pools (POOL-3, POOL-4, POOL-5): nobody came, a settled
 * pool is due for its probe, a repository waits though nobody is on the way, or the rate held its runners back.
 *
 * Reads: dispatch, pool, runner, ticket. Writes: dispatch, pool; row `pool.changed`. Calls: nothing. Queues: dispatch.
 */
import { endDispatch, listDueDispatches, listHurried } from '../../db/store/dispatch.ts';
import { addJobs } from '../../db/store/job.ts';
import { listDuePools } from '../../db/store/provider.ts';
import { listStarving } from '../../db/store/waiting.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Deps } from './deps.ts';
import { MINUTE_MS } from './dispatch.ts';
import { missPool } from './stall-pool.ts';

const BATCH = 200;

/** Reaps dispatches nobody answered and wakes the planner where something waits; returns how many of both. */
export async function sweepDispatches(deps: Deps): Promise<number> {
  const { db } = deps.database;
  let missed = 0;
  for (const due of await listDueDispatches(db, BATCH)) {
    const done = await deps.database.transaction(async (tx) => {
      if (!(await endDispatch(tx, due.id, 'missed', 'no runner came'))) return false;
      await missPool(deps, tx, due, { detail: 'no runner came', via: 'schedule' });
      return true;
    });
    if (done) {
      missed++;
      deps.log.warn({ dispatch: due.id, repository: due.repositoryId }, 'sweep-dispatches');
    }
  }
  const wake = new Set([
    ...(await listDuePools(db)).map((pool) => pool.repositoryId),
    ...(await listStarving(db, LIMITS.runnerFreshMs.default, BATCH)),
    // until a minute after the last plan that the rate may have cut short
    ...(await listHurried(db, 2 * MINUTE_MS, LIMITS.dispatchesMinute.default)),
  ]);
  if (wake.size > 0) {
    await addJobs(
      db,
      [...wake].map((repository) => ({
        task: 'dispatch',
        payload: { repository },
        key: `dispatch:${repository}`,
      })),
    );
  }
  return missed;
}
