/**
 * What GitHub says became of a workflow run or job that we dispatched (LSE-6, POOL-3, case 57): its
 * runners have ended, their leases end at once, and a run that brought no runner is a missed dispatch.
 *
 * Reads: dispatch, runner, lease. Writes: dispatch, runner, pool, lease, ticket; rows `ticket.ended pool.changed`.
 * Calls: nothing. Queues: dispatch, decide-gate, cut-tickets.
 */

import type { Tx } from '../../db/client.ts';
import {
  type Dispatch,
  endDispatch,
  lockDispatchOfNonce,
  lockDispatchOfWorkflow,
} from '../../db/store/dispatch.ts';
import { addJob } from '../../db/store/job.ts';
import { listLeasesOfRunner } from '../../db/store/lease.ts';
import { endRunnersOfWorkflow } from '../../db/store/runner.ts';
import type { Deps } from './deps.ts';
import { loseLeases } from './expire.ts';
import { secretHash } from './login.ts';
import { missPool } from './stall-pool.ts';

/** A `workflow_run` or `workflow_job` delivery, as far as it matters here. */
export interface WorkflowNote {
  readonly repository: string;
  readonly workflowRun: string;
  readonly attempt: number;
  /** The job of a `workflow_job` delivery; null for the whole run. */
  readonly job: string | null;
  readonly completed: boolean;
  readonly conclusion: string | null;
  /** The run's title: where the server gives no run id, the nonce that the workflow's run-name shows. */
  readonly title: string;
}

/** Takes note; `ignored` when nothing of ours is concerned. */
export async function noteWorkflow(
  deps: Deps,
  note: WorkflowNote,
): Promise<'ignored' | 'noted' | 'missed' | 'ended'> {
  if (!note.completed) return 'ignored';
  const noted = await deps.database.transaction(async (tx) => {
    const ended = await endRunnersOfWorkflow(tx, note.repository, note.workflowRun, note.attempt, note.job);
    const dispatch = await dispatchOf(tx, note);
    if (dispatch === null || note.job !== null) return { ended, kind: 'noted' as const };
    if (dispatch.state === 'answered') {
      await endDispatch(tx, dispatch.id, 'done', note.conclusion);
      await wake(tx, note.repository);
      return { ended, kind: 'ended' as const };
    }
    const detail = `the workflow run ended without a runner: ${note.conclusion ?? 'no conclusion'}`;
    if (!(await endDispatch(tx, dispatch.id, 'failed', detail))) return { ended, kind: 'noted' as const };
    // a concurrency group of the repository cancels waiting runs: that says nothing of the pool
    if (note.conclusion === 'cancelled') await wake(tx, note.repository);
    else await missPool(deps, tx, dispatch, { detail, via: 'delivery' });
    return { ended, kind: 'missed' as const };
  });
  const leases = [];
  for (const runner of noted.ended) leases.push(...(await listLeasesOfRunner(deps.database.db, runner)));
  const lost = await loseLeases(deps, leases);
  deps.log.info({ workflow_run: note.workflowRun, kind: noted.kind, lost }, 'note-workflow');
  return noted.kind === 'noted' && noted.ended.length === 0 ? 'ignored' : noted.kind;
}

function wake(tx: Tx, repository: string): Promise<void> {
  return addJob(tx, 'dispatch', { repository }, { key: `dispatch:${repository}` });
}

async function dispatchOf(tx: Tx, note: WorkflowNote): Promise<Dispatch | null> {
  const known = await lockDispatchOfWorkflow(tx, note.repository, note.workflowRun);
  if (known !== null) return known;
  for (const word of note.title
    .split(/[^A-Za-z0-9_-]+/)
    .filter((one) => one.length >= 32)
    .slice(0, 5)) {
    const named = await lockDispatchOfNonce(tx, note.repository, secretHash(word));
    if (named !== null) return named;
  }
  return null;
}
