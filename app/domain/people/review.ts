/** Reviews on GitHub → acts (GAT-6, case 48): which to record, and which earlier acts they take back. Pure. */
import type { ActFact, RunState } from '../run-state/state.ts';

/** A review of a person as it is now; `commit` is the head it was given for. */
export interface ToldReview {
  readonly id: string;
  readonly author: string;
  readonly state: 'approved' | 'changes_requested' | 'commented' | 'dismissed' | 'pending';
  readonly commit: string | null;
  /** ISO; null while it is pending. */
  readonly submittedAt: string | null;
}

/** A review that says yes or no to a head of the run. */
export interface DecisiveReview extends ToldReview {
  readonly state: 'approved' | 'changes_requested';
  readonly commit: string;
  readonly submittedAt: string;
}

/** What to record. */
export interface ReviewChanges {
  readonly record: readonly DecisiveReview[];
  readonly revoke: readonly {
    readonly act: ActFact;
    readonly reason: 'dismissed' | 'changes_requested' | 'approved';
  }[];
  /** Reviews of heads that the rows do not know, and approvals of what a head has changed since into. */
  readonly unknown: readonly DecisiveReview[];
}

/**
 * Holds reviews against what is recorded of them. Of each person the newest that says yes or no counts:
 * a comment changes nothing. A request for changes takes back everything its author approved or overrode in
 * this run, a dismissal the one review. A review that is older than one that is recorded changes nothing.
 */
export function settleReviews(state: RunState, told: readonly ToldReview[]): ReviewChanges {
  const record: DecisiveReview[] = [];
  const unknown: DecisiveReview[] = [];
  const revoke: ReviewChanges['revoke'][number][] = [];
  const heads = new Set(state.heads.map((head) => head.head));
  const take = (act: ActFact, reason: 'dismissed' | 'changes_requested' | 'approved') => {
    if (!act.revoked && !revoke.some((one) => one.act === act)) revoke.push({ act, reason });
  };
  for (const review of told) {
    if (review.state !== 'dismissed') continue;
    for (const act of state.acts) if (act.review === review.id) take(act, 'dismissed');
  }
  for (const review of newestOfEach(told)) {
    const own = state.acts.filter((act) => act.actor === review.author && act.actorKind === 'person');
    const reviews = own.filter((act) => act.act === 'review');
    if (reviews.some((act) => act.review === review.id || isNewer(act, review))) continue;
    // a no holds whatever head it was said of
    const isSeen = heads.has(review.commit) && !wasReadAnew(state, review.commit, review.submittedAt);
    if (heads.size === 0 || (review.state === 'approved' && !isSeen)) {
      unknown.push(review);
      continue;
    }
    record.push(review);
    for (const act of own) {
      if (review.state === 'approved') {
        if (act.verdict === 'changes_requested') take(act, 'approved');
      } else if (act.act === 'approve' || act.act === 'override' || act.verdict === 'approved')
        take(act, 'changes_requested');
    }
  }
  return { record, revoke, unknown };
}

/**
 * Whether a head changes something else since a time in ISO than it did then: a retarget gives the same commit
 * another base (case 11), and nobody answers for what they could not see.
 */
export function wasReadAnew(state: RunState, head: string, sinceIso: string): boolean {
  const readings = state.heads.filter((one) => one.head === head);
  const now = readings.at(-1);
  // GitHub cuts the fraction of its second
  const since = Date.parse(sinceIso) + 999;
  const then = readings.findLast((one) => Date.parse(one.at) <= since) ?? readings[0];
  return now !== undefined && then !== undefined && then.content !== now.content;
}

function newestOfEach(told: readonly ToldReview[]): DecisiveReview[] {
  const newest = new Map<string, DecisiveReview>();
  for (const review of told) {
    if (!isDecisive(review)) continue;
    const known = newest.get(review.author);
    if (known === undefined || order(review, known) > 0) newest.set(review.author, review);
  }
  // GitHub goes by the newest that was no comment: one that was dismissed brings no earlier approval back
  const isBehind = (review: DecisiveReview) =>
    told.some(
      ({ id, author, state, submittedAt }) =>
        author === review.author &&
        state === 'dismissed' &&
        submittedAt !== null &&
        order({ id, submittedAt }, review) > 0,
    );
  return [...newest.values()].filter((review) => review.state !== 'approved' || !isBehind(review));
}

function isDecisive(review: ToldReview): review is DecisiveReview {
  return (
    (review.state === 'approved' || review.state === 'changes_requested') &&
    review.commit !== null &&
    review.submittedAt !== null
  );
}

function isNewer(act: ActFact, review: DecisiveReview): boolean {
  if (act.review === undefined || act.submitted === undefined) return false;
  return order({ id: act.review, submittedAt: act.submitted }, review) > 0;
}

/** By GitHub's second, then by id, which only rises. */
function order(
  a: Pick<DecisiveReview, 'id' | 'submittedAt'>,
  b: Pick<DecisiveReview, 'id' | 'submittedAt'>,
): number {
  const [before, after] = [Date.parse(a.submittedAt), Date.parse(b.submittedAt)];
  if (before !== after) return before - after;
  return BigInt(a.id) < BigInt(b.id) ? -1 : a.id === b.id ? 0 : 1;
}
