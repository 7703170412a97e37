import { findRunOfPull } from '../../../db/store/run.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import type { Deps } from '../deps.ts';
import { ensureRun } from '../ensure-run.ts';
import { queueCommand } from '../queue-command.ts';
import type { Received } from '../receive-delivery.ts';
import { knowBranch, notePlace } from './place.ts';

/** `issue_comment` on a pull request: what may hold a command goes to run-command (CMD-2). */
export async function receiveComment(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'comment' }>,
  received: Received,
): Promise<string> {
  if (event.author === null) return 'ignored:no_author';
  // a command begins with a slash or addresses us: all other talk costs nothing
  if (!/[/@]/.test(event.body)) return 'ignored:no_command';
  const repository = await notePlace(deps, event.installationId, event.repository);
  const key = {
    installationId: repository.installationId,
    repositoryId: repository.id,
    pull: event.pull,
  };
  let run = await findRunOfPull(deps.database.db, key);
  if (run === null) {
    // its pull request's own delivery may be late or lost
    const github = await deps.github.installation(repository.installationId);
    const pull = await github.getPull(repository, event.pull);
    if (pull.state === 'closed') return 'ignored:no_run';
    const outcome = await ensureRun(deps, {
      repository: repository.id,
      pull,
      reason: 'reconciled',
      headIsNews: true,
      enrolment: await knowBranch(deps, repository, pull.baseRef),
      actor: received.actor(null),
      cause: received.cause,
    });
    if (outcome.kind === 'not_enrolled') return 'ignored:not_enrolled';
    run = await findRunOfPull(deps.database.db, key);
    if (run === null) return 'ignored:no_run';
  }
  await queueCommand(deps, {
    repository: repository.id,
    pull: event.pull,
    comment: event.comment,
    author: event.author,
    body: event.body,
    createdAt: event.createdAt,
    reconciled: false,
    cause: received.cause,
  });
  return 'queued';
}
