import type { Repository } from '../../../db/store/installation.ts';
import { addJob } from '../../../db/store/job.ts';
import { findRunOfPull } from '../../../db/store/run.ts';
import { previewKey } from '../../domain/check.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { POLICY_PATH } from '../../domain/policy.ts';
import { closeRun } from '../close-run.ts';
import type { Deps } from '../deps.ts';
import { ensureRun, type ToldPull } from '../ensure-run.ts';
import type { Received } from '../receive-delivery.ts';
import { knowBranch, notePlace, queueReconcile } from './place.ts';

/** Actions after which the present truth may differ (RUN-3). Others, labels say, change nothing that a run rests on. */
const USED = new Set([
  'opened',
  'synchronize',
  'reopened',
  'edited',
  'ready_for_review',
  'converted_to_draft',
  'closed',
  'stacked',
]);

/** `pull_request`: the run exists, its gate is pending on the head, a sync reads the rest. */
export async function receivePull(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'pull_request' }>,
  received: Received,
): Promise<string> {
  if (!USED.has(event.action)) return 'ignored:unused_action';
  const repository = await notePlace(deps, event.installationId, event.repository);
  const run = await findRunOfPull(deps.database.db, {
    installationId: repository.installationId,
    repositoryId: repository.id,
    pull: event.pull.number,
  });
  const actor = received.actor(event.sender);
  const { cause } = received;

  let pull: ToldPull & { readonly state: 'open' | 'closed'; readonly merged: boolean } = event.pull;
  let certain = run === null;
  if (run !== null) {
    // a head that follows the one we know is news; anything else may be old, doubled or reordered: ask (RUN-2)
    certain =
      !received.repeated &&
      event.action === 'synchronize' &&
      event.before === run.toldHead &&
      event.pull.baseRef === run.baseRef;
    const same =
      isLive(run.status) &&
      event.pull.state === 'open' &&
      event.pull.head === run.toldHead &&
      event.pull.baseRef === run.baseRef &&
      event.pull.draft === run.draft;
    if (!certain && !same) {
      pull = await (await deps.github.installation(repository.installationId)).getPull(
        repository,
        event.pull.number,
      );
      certain = true;
    }
  }
  if (pull.state === 'closed') {
    if (run === null) return 'ignored:no_run';
    return closeRun(deps, { run: run.id, reason: pull.merged ? 'merged' : 'closed', actor, cause });
  }
  const enrolment = await knowBranch(deps, repository, pull.baseRef);
  const outcome = await ensureRun(deps, {
    repository: repository.id,
    pull,
    reason: 'opened',
    headIsNews: certain,
    enrolment,
    actor,
    cause,
  });
  // after this pull request has its run: one that reconciliation finds may have to wait (RUN-10)
  if (enrolment.news) await queueReconcile(deps, repository.id);
  const offered = enrolment.enrolment.state === 'absent' && (await offerPreview(deps, repository, pull));
  if (outcome.kind !== 'not_enrolled') return outcome.kind;
  return offered ? 'preview' : 'ignored:not_enrolled';
}

/** RUN-9: where there is no policy the one that a pull request adds is looked at all the same: one contents GET. */
async function offerPreview(deps: Deps, repository: Repository, pull: ToldPull): Promise<boolean> {
  const github = await deps.github.installation(repository.installationId);
  if ((await github.getContent(repository, POLICY_PATH, pull.head)) === null) return false;
  await deps.database.transaction((tx) =>
    addJob(
      tx,
      'preview-policy',
      { repository: repository.id, pull: pull.number },
      { key: previewKey(repository.id, pull.number), priority: 5 },
    ),
  );
  return true;
}

function isLive(status: string): boolean {
  return status !== 'closed' && status !== 'merged';
}
