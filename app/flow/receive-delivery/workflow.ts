import { addJob } from '../../../db/store/job.ts';
import { listRunsOfReceipts } from '../../../db/store/receipt.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import type { Deps } from '../deps.ts';
import { noteWorkflow } from '../note-workflow.ts';
import { notePlace } from './place.ts';

/**
 * `workflow_run`, `workflow_job`: what became of a dispatched run of the Action (LSE-6), or of a job that proves a
 * verify command (VER-3): then GitHub is looked at, since deliveries come late, twice and out of order.
 */
export async function receiveWorkflow(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'workflow_run' | 'workflow_job' }>,
): Promise<string> {
  await notePlace(deps, event.installationId, event.repository);
  const noted = await noteWorkflow(deps, {
    repository: event.repository.id,
    workflowRun: event.workflowRunId,
    attempt: event.attempt,
    job: event.jobId,
    completed: event.action === 'completed',
    conclusion: event.conclusion,
    title: event.title,
  });
  const followed = event.head === null ? [] : await followHead(deps, event.repository.id, event.head);
  if (noted === 'ignored' && followed.length > 0) return 'workflow:followed';
  return noted === 'ignored' ? 'ignored:not_dispatched' : `workflow:${noted}`;
}

/** Queues a look at the receipts of each run that has this commit as its head; answers those runs. */
async function followHead(deps: Deps, repository: string, head: string): Promise<string[]> {
  const runs = await listRunsOfReceipts(deps.database.db, repository, head);
  if (runs.length === 0) return runs;
  await deps.database.transaction(async (tx) => {
    for (const run of runs) await addJob(tx, 'settle-receipts', { run }, { key: `settle-receipts:${run}` });
  });
  return runs;
}
