import { listCheckNames } from '../../../db/store/check.ts';
import { addJobs } from '../../../db/store/job.ts';
import { listRunsOfHead } from '../../../db/store/run.ts';
import { publishKey } from '../../domain/check.ts';
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
  _received: Received,
): Promise<string> {
  if (event.appId !== deps.github.appId) return 'ignored:not_ours';
  const repository = await notePlace(deps, event.installationId, event.repository);
  const runs = await listRunsOfHead(deps.database.db, repository.id, event.head);
  const published = await listCheckNames(deps.database.db, repository.id, event.head);
  if (runs.length === 0 && published.length === 0) return 'ignored:no_run';
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
