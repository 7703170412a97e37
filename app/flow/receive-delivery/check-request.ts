import { listCheckNames } from '../../../db/store/check.ts';
import { addJob, addJobs } from '../../../db/store/job.ts';
import { isPressed, notePress } from '../../../db/store/press.ts';
import { listRunsOfHead } from '../../../db/store/run.ts';
import { isButton } from '../../domain/button.ts';
import { isGateName, publishKey } from '../../domain/check.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import type { Deps } from '../deps.ts';
import type { Received } from '../receive-delivery.ts';
import { notePlace } from './place.ts';

/**
 * Somebody asked for a check again, or pressed its button (PUB-6). The runs are found by our own
 * records of (repository, head): the payload's list of pull requests is empty for forks and may name
 * other repositories (PUB-8). It ends in a conclusion again.
 */
export async function receiveCheckRequest(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'check_requested' }>,
  received: Received,
): Promise<string> {
  if (event.appId !== deps.github.appId) return 'ignored:not_ours';
  const repository = await notePlace(deps, event.installationId, event.repository);
  const runs = await listRunsOfHead(deps.database.db, repository.id, event.head);
  const published = await listCheckNames(deps.database.db, repository.id, event.head);
  if (runs.length === 0 && published.length === 0) return 'ignored:no_run';
  if (event.action !== 'rerequested') return receivePress(deps, event, received);
  // an old head has no run, and its check must not stay queued either (case 41)
  const names = event.name === null ? published : [event.name];
  await deps.database.transaction((tx) =>
    addJobs(tx, [
      ...runs.flatMap((run) => [
        { task: 'decide-gate', payload: { run: run.id }, key: `decide-gate:${run.id}`, priority: -10 },
        { task: 'sync-run', payload: { run: run.id }, key: `sync-run:${run.id}` },
      ]),
      ...names.map((name) => ({
        task: 'publish-checks',
        payload: { repository: repository.id, sha: event.head, name, again: true },
        // a key of its own: a decision that publishes meanwhile must not take the request's place
        key: `${publishKey(repository.id, event.head, name)}:again`,
      })),
    ]),
  );
  return 'asked_again';
}

/** Hands a press to its arrow, once however often it is delivered. The gate alone has buttons of ours. */
async function receivePress(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'check_requested' }>,
  received: Received,
): Promise<string> {
  const { name, sender, action } = event;
  if (name === null || !isGateName(name) || !isButton(action)) return 'ignored:unknown_action';
  if (sender === null) return 'ignored:no_author';
  const press = {
    delivery: received.cause.id,
    repositoryId: event.repository.id,
    sha: event.head,
    name,
    action,
    userId: sender.id,
  };
  // the same bytes under another id: of a second hook, or replayed (facts/security.md, finding 9)
  if (received.repeated && (await isPressed(deps.database.db, press))) return 'ignored:repeated';
  await deps.database.transaction(async (tx) => {
    const id = await notePress(tx, { ...press, login: sender.login, bot: sender.bot });
    await addJob(tx, 'press-button', { press: id }, { key: `press-button:${id}`, priority: -5 });
  });
  return 'pressed';
}
