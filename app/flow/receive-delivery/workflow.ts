import type { InboxEvent } from '../../domain/inbox-event.ts';
import type { Deps } from '../deps.ts';
import { noteWorkflow } from '../note-workflow.ts';
import { notePlace } from './place.ts';

/** `workflow_run`, `workflow_job`: what became of a dispatched run of the Action (LSE-6). */
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
  return noted === 'ignored' ? 'ignored:not_dispatched' : `workflow:${noted}`;
}
