import type { InboxEvent } from '../../domain/inbox-event.ts';
import type { Deps } from '../deps.ts';
import { notePlace } from './place.ts';

/** `workflow_run`, `workflow_job`: what became of a dispatched run of the Action (LSE-6). */
export async function receiveWorkflow(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'workflow_run' | 'workflow_job' }>,
): Promise<string> {
  await notePlace(deps, event.installationId, event.repository);
  return 'ignored:not_dispatched';
}
