import { addJobs } from '../../../db/store/job.ts';
import { listRunsOfHead } from '../../../db/store/run.ts';
import { gateName, publishKey } from '../../domain/check.ts';
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
  if (runs.length === 0) return 'ignored:no_run';
  await deps.database.transaction((tx) =>
    addJobs(
      tx,
      runs.flatMap((run) => {
        const name = event.name ?? gateName(run.mode);
        return [
          { task: 'decide-gate', payload: { run: run.id }, key: `decide-gate:${run.id}`, priority: -10 },
          { task: 'sync-run', payload: { run: run.id }, key: `sync-run:${run.id}` },
          {
            task: 'publish-checks',
            payload: { repository: repository.id, sha: event.head, name },
            key: publishKey(repository.id, event.head, name),
          },
        ];
      }),
    ),
  );
  return 'asked_again';
}
