/** What a missed dispatch makes of its pool, and `dispatch_stalled` on the runs that wait for it (POOL-3, POOL-5). */
import type { Tx } from '../../db/client.ts';
import type { Dispatch } from '../../db/store/dispatch.ts';
import { addJobs } from '../../db/store/job.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { findPool, putPool } from '../../db/store/provider.ts';
import { clearReason, setReason } from '../../db/store/reason.ts';
import { findRun, listOpenRuns } from '../../db/store/run.ts';
import { listWaiting } from '../../db/store/waiting.ts';
import { doubled, LIMITS } from '../domain/limits.ts';
import { parsePolicy } from '../domain/policy.ts';

/**
 * Counts a dispatch that brought no runner. Two in a row settle the pool, 5 minutes doubling to 60;
 * then the runs that wait say `dispatch_stalled`. It revives when a runner logs in.
 */
export async function missPool(tx: Tx, dispatch: Dispatch, detail: string): Promise<void> {
  const pool = await findPool(tx, dispatch.repositoryId, dispatch.pool);
  const missed = (pool?.missed ?? 0) + 1;
  const settles = missed >= LIMITS.missedDispatches.default;
  const rounds = pool?.rounds ?? 0;
  const settledMs = doubled(LIMITS.settledMinMs.default, LIMITS.settledMaxMs.default, rounds);
  await putPool(tx, {
    repositoryId: dispatch.repositoryId,
    installationId: dispatch.installationId,
    name: dispatch.pool,
    missed,
    rounds: settles ? rounds + 1 : rounds,
    settledMs: settles ? settledMs : null,
    detail,
  });
  await addJobs(tx, [
    {
      task: 'dispatch',
      payload: { repository: dispatch.repositoryId },
      key: `dispatch:${dispatch.repositoryId}`,
    },
  ]);
}

/** Sets `dispatch_stalled` on the runs of a repository that wait for a runner, or clears it on all (null). */
export async function sayStalled(tx: Tx, repositoryId: string, detail: string | null): Promise<void> {
  const waiting = detail === null ? [] : await listWaiting(tx, repositoryId);
  const runs = new Set(waiting.filter((one) => one.ready > 0).map((one) => one.runId));
  for (const run of await listOpenRuns(tx, { repositoryId })) {
    const changed =
      detail !== null && runs.has(run.id)
        ? await setReason(tx, run.id, {
            code: 'dispatch_stalled',
            dueAtMs: run.headAt.getTime() + (await deadlineOf(tx, run.id)),
            detail: detail.slice(0, 200),
          })
        : await clearReason(tx, run.id, 'dispatch_stalled');
    if (changed)
      await addJobs(tx, [{ task: 'decide-gate', payload: { run: run.id }, key: `decide-gate:${run.id}` }]);
  }
}

async function deadlineOf(tx: Tx, runId: string): Promise<number> {
  const run = await findRun(tx, runId);
  const bytes = run?.policyHash == null ? null : await loadPolicy(tx, run.policyHash);
  const reading = bytes === null ? null : parsePolicy(bytes);
  return reading?.ok === true ? reading.policy.gate.deadline : LIMITS.gateDeadlineMs.default;
}
