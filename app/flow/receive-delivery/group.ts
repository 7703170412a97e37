import { findGroupRun } from '../../../db/store/group.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { closeRun } from '../close-run.ts';
import type { Deps } from '../deps.ts';
import { ensureGroup } from '../ensure-group.ts';
import type { Received } from '../receive-delivery.ts';
import { knowBranch, notePlace } from './place.ts';

/** `merge_group`: a group to judge, its gate pending at once; a destroyed one is concluded (GAT-5). */
export async function receiveGroup(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'merge_group' }>,
  received: Received,
): Promise<string> {
  const repository = await notePlace(deps, event.installationId, event.repository);
  const actor = received.actor(event.sender);
  const { cause } = received;
  if (event.action === 'destroyed') {
    const run = await findGroupRun(deps.database.db, repository, event.head);
    if (run === null) return 'ignored:no_run';
    const reason = event.reason === 'merged' ? 'merged' : 'closed';
    return closeRun(deps, { run: run.id, reason, actor, cause });
  }
  const enrolment = await knowBranch(deps, repository, event.baseRef);
  const outcome = await ensureGroup(deps, {
    repository: repository.id,
    group: { head: event.head, headRef: event.headRef, baseRef: event.baseRef },
    // these very bytes were worked before: the group may have been destroyed since
    news: !received.repeated,
    enrolment,
    actor,
    cause,
  });
  return outcome.kind === 'not_enrolled' ? 'ignored:not_enrolled' : outcome.kind;
}
