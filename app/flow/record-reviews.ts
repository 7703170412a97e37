/**
 * Makes acts of reviews (GAT-6): an approval or a request for changes of a person who may write, on a head
 * that the run knows, with the permission that GitHub answers at this moment. Recording them again changes nothing.
 *
 * Reads: run, verified rows, policy. Writes: rows `human.acted human.revoked`. Queues: decide-gate.
 * Calls: GitHub (permissions; who may write, where the policy asks), in no transaction.
 * May fail with: `github_unavailable`, `github_rate_limited` (retryable).
 */
import type { Repository } from '../../db/store/installation.ts';
import { productNow, type Run } from '../../db/store/run.ts';
import type { Cause } from '../domain/ledger/row-fields.ts';
import { settleReviews, type ToldReview } from '../domain/people/review.ts';
import { isAtLeast } from '../domain/people/rules.ts';
import { Fault } from '../errors.ts';
import type { ReviewInfo } from '../github/port/people.ts';
import type { GitHub, Permission } from '../github/port.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { judgeRun } from './judge-run.ts';

/** What came of it; `waiting`: a review of the head that is being read just now. */
export interface ReviewsOutcome {
  readonly recorded: number;
  readonly revoked: number;
  readonly waiting: boolean;
}

/** What GitHub answered of a person. */
interface Standing {
  readonly permission: Permission;
  readonly solo: boolean;
}

/** Records what reviews say; those of bots, apps, ghosts and people without write say nothing. */
export async function recordReviews(
  deps: Deps,
  github: GitHub,
  repository: Repository,
  run: Run,
  reviews: readonly ReviewInfo[],
  cause: Cause,
): Promise<ReviewsOutcome> {
  const { db } = deps.database;
  const logins = new Map<string, string>();
  const told = reviews.flatMap((review): ToldReview[] => {
    const { author } = review;
    // whose account is gone may still have had their review dismissed
    if (author === null) return review.state === 'dismissed' ? [{ ...review, author: '' }] : [];
    if (author.bot) return [];
    logins.set(author.id, author.login);
    return [{ ...review, author: author.id }];
  });
  const seen = await judgeRun(deps, db, run, await productNow(db));
  if (seen.facts.ledger !== null) return { recorded: 0, revoked: 0, waiting: false };
  const first = settleReviews(seen.state, told);
  const isRead = seen.state.heads.some((head) => head.head === run.toldHead);
  const waiting = !isRead && first.unknown.some((review) => review.commit === run.toldHead);
  if (first.record.length + first.revoke.length === 0) return { recorded: 0, revoked: 0, waiting };
  const standings = new Map<string, Standing>();
  for (const { author } of first.record) {
    const standing = await ask(
      github,
      repository,
      author,
      logins.get(author) ?? '',
      seen.policy?.people.solo,
    );
    if (standing !== null) standings.set(author, standing);
  }
  const done = await withRun(deps, run.id, (unit) => record(deps, unit, told, standings, cause));
  return { ...done, waiting };
}

async function ask(
  github: GitHub,
  repository: Repository,
  id: string,
  login: string,
  solo = false,
): Promise<Standing | null> {
  const { permission, userId } = await orNobody(github.getPermission(repository, login));
  // a login can pass to another account: the id decides
  if (userId !== id || !isAtLeast(permission, 'write')) return null;
  return { permission, solo: solo && (await isAlone(github, repository, id)) };
}

/** Whether an account is the only one that has write (`people.solo`). */
export async function isAlone(github: GitHub, repository: Repository, id: string): Promise<boolean> {
  const writers = await github.listWriters(repository);
  return writers.length === 1 && writers[0] === id;
}

async function orNobody(
  asked: ReturnType<GitHub['getPermission']>,
): Promise<{ readonly permission: Permission; readonly userId: string | null }> {
  try {
    return await asked;
  } catch (error) {
    // no such account, or none that may be looked up here: no rights (case 47)
    if (error instanceof Fault && error.code === 'github_not_found')
      return { permission: 'none', userId: null };
    throw error;
  }
}

async function record(
  deps: Deps,
  unit: RunUnit,
  told: readonly ToldReview[],
  standings: ReadonlyMap<string, Standing>,
  cause: Cause,
): Promise<{ readonly recorded: number; readonly revoked: number }> {
  const { run, tx, now } = unit;
  if (run.status === 'closed' || run.status === 'merged') return { recorded: 0, revoked: 0 };
  const { state, facts } = await judgeRun(deps, tx, run, now);
  if (facts.ledger !== null) return { recorded: 0, revoked: 0 };
  const allowed = told.filter((review) => review.state === 'dismissed' || standings.has(review.author));
  const changes = settleReviews(state, allowed);
  for (const { act, reason } of changes.revoke) {
    unit.append('human.revoked', {
      block: null,
      actor: { kind: 'app', id: deps.github.appId, via: cause.kind },
      cause,
      data: { act: act.act, seq: act.seq, reason },
    });
  }
  for (const review of changes.record) {
    const standing = standings.get(review.author);
    if (standing === undefined) continue;
    unit.append('human.acted', {
      block: null,
      actor: { kind: 'person', id: review.author, via: cause.kind },
      cause,
      data: {
        act: 'review',
        head: review.commit,
        permission: standing.permission,
        clause: null,
        paths: [],
        self: run.authorId === review.author,
        text: null,
        ...(standing.solo ? { solo: true } : {}),
        review: review.id,
        verdict: review.state,
        submitted: new Date(review.submittedAt).toISOString(),
      },
    });
  }
  const { length: recorded } = changes.record;
  const { length: revoked } = changes.revoke;
  if (recorded + revoked > 0) unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
  return { recorded, revoked };
}
