import { findEnrolment } from '../../../db/store/installation.ts';
import { addJobs } from '../../../db/store/job.ts';
import { listOpenRuns } from '../../../db/store/run.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import type { Deps } from '../deps.ts';
import { enrol } from '../enrol.ts';
import { notePlace, queueReconcile } from './place.ts';

/**
 * `push`: a base branch's policy may have changed with it (RUN-3), and on the default branch the workflow
 * file (RUN-9). A base that was thrown away or wound back moves merge bases without a word to any pull
 * request: its open runs are read again, behind all else.
 */
export async function receivePush(deps: Deps, event: Extract<InboxEvent, { kind: 'push' }>): Promise<string> {
  const repository = await notePlace(deps, event.installationId, event.repository);
  const known = await findEnrolment(deps.database.db, repository.id, event.branch);
  const isDefault = event.branch === repository.defaultBranch;
  // a branch that no pull request ever aimed at is read when one does
  if (known === null && !isDefault) return 'ignored:not_a_base';
  const { appeared, enrolment } = await enrol(deps, { repository: repository.id, baseRef: event.branch });
  if (appeared || known === null) await queueReconcile(deps, repository.id);
  if (event.forced || event.deleted) await syncRuns(deps, repository.id, event.branch);
  return enrolment.state;
}

async function syncRuns(deps: Deps, repositoryId: string, baseRef: string): Promise<void> {
  const runs = await listOpenRuns(deps.database.db, { repositoryId, baseRef });
  await deps.database.transaction((tx) =>
    addJobs(
      tx,
      runs.map((run) => ({
        task: 'sync-run',
        payload: { run: run.id },
        key: `sync-run:${run.id}`,
        priority: 10,
      })),
    ),
  );
}
