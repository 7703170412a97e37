import { findRunOfPull, productNow } from '../../../db/store/run.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { Fault } from '../../errors.ts';
import type { Deps } from '../deps.ts';
import type { Received } from '../receive-delivery.ts';
import { recordReviews } from '../record-reviews.ts';
import { notePlace } from './place.ts';

/** How long a review of a head that was just pushed is kept for the reading of that head. */
const READING_MS = 10 * 60_000;

/**
 * `pull_request_review`: a hint that a review changed. Its state is asked for, since deliveries come late and out
 * of order; its head is the one that was delivered, which GitHub may since tell otherwise (GAT-6).
 */
export async function receiveReview(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'review' }>,
  received: Received,
): Promise<string> {
  if (event.author?.bot === true || (event.author === null && event.action !== 'dismissed'))
    return 'ignored:no_person';
  const { db } = deps.database;
  const repository = await notePlace(deps, event.installationId, event.repository);
  const { installationId } = repository;
  const run = await findRunOfPull(db, { installationId, repositoryId: repository.id, pull: event.pull });
  if (run === null) return 'ignored:no_run';
  if (run.status === 'closed' || run.status === 'merged') return `ignored:${run.status}`;
  const github = await deps.github.installation(installationId);
  const now = await github.getReview(repository, event.pull, event.review);
  if (now === null) return 'ignored:deleted';
  const commit = event.action === 'submitted' ? event.commit : now.commit;
  const outcome = await recordReviews(deps, github, repository, run, [{ ...now, commit }], received.cause);
  if (outcome.waiting && (await productNow(db)).getTime() - run.headAt.getTime() < READING_MS)
    throw new Fault('git_unavailable', 'the head of the review is still being read', { retryable: true });
  return outcome.recorded + outcome.revoked > 0 ? 'recorded' : 'nothing_new';
}
