import { Refused } from '../http/call.ts';
import type { Json, Review, ReviewComment, User } from '../model.ts';
import type { Pull } from '../pull.ts';
import { diffJson } from '../render/diffs.ts';
import { simplePullJson } from '../render/pulls.ts';
import { reviewCommentJson, reviewEventJson } from '../render/reviews.ts';
import { type HunkLine, hunkLines, hunkUpTo } from './hunks.ts';

/** What a review says; none leaves it pending. */
export type ReviewEvent = 'APPROVE' | 'REQUEST_CHANGES' | 'COMMENT';

/** A comment as a request brings it (facts/github.md §13): `line` and `side`, or the old `position`. */
export interface CommentInput {
  readonly path: string;
  readonly body: string;
  readonly position?: number;
  readonly line?: number;
  readonly side?: string;
  readonly start_line?: number;
  readonly start_side?: string;
}

/** What makes a review. */
export interface ReviewInput {
  readonly event?: ReviewEvent;
  readonly body?: string;
  readonly commit?: string;
  readonly comments?: readonly CommentInput[];
}

const STATES = { APPROVE: 'APPROVED', REQUEST_CHANGES: 'CHANGES_REQUESTED', COMMENT: 'COMMENTED' } as const;

/** Makes a review of a head, all of its comments or none (facts/github.md §13: a single bad line is a 422 for all). */
export async function createReview(pull: Pull, author: User, input: ReviewInput): Promise<Review> {
  const { repository } = pull;
  const { world } = repository;
  const { event, body = '', comments = [] } = input;
  const commit = input.commit ?? pull.head.sha;
  refuseWords(pull, author, event, body, comments.length > 0);
  await refuseForeignCommit(pull, commit);
  const placed = await placeComments(pull, commit, comments);
  const review: Review = {
    id: world.id('review'),
    repositoryId: repository.id,
    number: pull.number,
    author,
    body,
    state: 'PENDING',
    commit,
    submittedAt: null,
    updatedAt: world.stamp(),
  };
  world.reviews.push(review);
  for (const place of placed)
    world.reviewComments.push({
      ...place,
      id: world.id('reviewComment'),
      repositoryId: repository.id,
      number: pull.number,
      reviewId: review.id,
      author,
      commit,
      createdAt: world.stamp(),
    });
  if (event !== undefined) await publish(pull, review, event);
  return review;
}

/** Submits a pending review. */
export async function submitReview(
  pull: Pull,
  review: Review,
  event: ReviewEvent,
  body: string | undefined,
): Promise<void> {
  if (review.state !== 'PENDING') throw unprocessable('Can not submit a review that is not pending');
  const has = pull.repository.world.reviewComments.some((one) => one.reviewId === review.id);
  refuseWords(pull, review.author, event, body ?? review.body, has);
  review.body = body ?? review.body;
  await publish(pull, review, event);
}

/** Dismisses an approval or a request for changes: sends `dismissed`, the list shows DISMISSED from then on. */
export async function dismissReview(pull: Pull, review: Review, by: User): Promise<void> {
  if (review.state !== 'APPROVED' && review.state !== 'CHANGES_REQUESTED')
    throw unprocessable(`Can not dismiss a ${review.state.toLowerCase()} pull request review`);
  review.state = 'DISMISSED';
  review.updatedAt = pull.repository.world.stamp();
  pull.updatedAt = review.updatedAt;
  await announce(pull, review, 'dismissed', by);
}

/** Changes a review's text: sends `edited`. */
export async function editReview(pull: Pull, review: Review, body: string, by: User): Promise<void> {
  const from = review.body;
  review.body = body;
  review.updatedAt = pull.repository.world.stamp();
  if (review.state !== 'PENDING') await announce(pull, review, 'edited', by, { changes: { body: { from } } });
}

async function publish(pull: Pull, review: Review, event: ReviewEvent): Promise<void> {
  const { world } = pull.repository;
  review.state = STATES[event];
  review.submittedAt = world.stamp();
  review.updatedAt = review.submittedAt;
  pull.updatedAt = review.submittedAt;
  await announce(pull, review, 'submitted', review.author);
  for (const comment of world.reviewComments.filter((one) => one.reviewId === review.id))
    await world.emit({
      event: 'pull_request_review_comment',
      action: 'created',
      repository: pull.repository,
      sender: review.author,
      payload: () => ({ comment: reviewCommentJson(pull, comment), pull_request: simplePullJson(pull) }),
    });
}

async function announce(
  pull: Pull,
  review: Review,
  action: 'submitted' | 'edited' | 'dismissed',
  sender: User,
  more: Json = {},
): Promise<void> {
  await pull.repository.world.emit({
    event: 'pull_request_review',
    action,
    repository: pull.repository,
    sender,
    payload: () => ({ ...more, review: reviewEventJson(pull, review), pull_request: simplePullJson(pull) }),
  });
}

// An author may comment on an own pull request, not judge it; nobody may say nothing (facts/github.md §13).
function refuseWords(
  pull: Pull,
  author: User,
  event: ReviewEvent | undefined,
  body: string,
  hasComments: boolean,
): void {
  if (author === pull.user && event === 'APPROVE')
    throw unprocessable('Can not approve your own pull request');
  if (author === pull.user && event === 'REQUEST_CHANGES')
    throw unprocessable('Can not request changes on your own pull request');
  const needsBody = event === 'REQUEST_CHANGES' || (event === 'COMMENT' && !hasComments);
  if (needsBody && body.trim() === '') throw unprocessable("Body can't be blank");
}

async function refuseForeignCommit(pull: Pull, commit: string): Promise<void> {
  const { git } = pull.repository;
  const known = (await git.commitId(commit)) === commit;
  // A commit that a force push replaced is still one that this pull request had (GK).
  if (!known) throw unprocessable('The commit_id is not part of the pull request');
}

async function placeComments(
  pull: Pull,
  commit: string,
  comments: readonly CommentInput[],
): Promise<
  Omit<ReviewComment, 'id' | 'repositoryId' | 'number' | 'reviewId' | 'author' | 'commit' | 'createdAt'>[]
> {
  if (comments.length === 0) return [];
  const { repository } = pull;
  const base = await repository.git.mergeBase(await pull.baseTip(), commit);
  const files = base === null ? [] : await diffJson(repository, base, commit);
  return comments.map((comment) => {
    if (comment.body.trim() === '') throw unprocessable("Body can't be blank");
    const file = files.find((one) => one['filename'] === comment.path);
    if (file === undefined) throw unprocessable('Path could not be resolved');
    const patch = typeof file['patch'] === 'string' ? file['patch'] : '';
    const lines = hunkLines(patch);
    const side = sideOf(comment.side);
    const end =
      comment.line === undefined
        ? lines.find((one) => one.position === comment.position)
        : lineOn(lines, comment.line, side);
    if (end === undefined) throw unprocessable('Line could not be resolved');
    const place = {
      path: comment.path,
      body: comment.body,
      line: end[comment.line === undefined && end.right === null ? 'left' : keyOf(side)] ?? 0,
      side: comment.line === undefined && end.right === null ? ('LEFT' as const) : side,
      position: end.position,
      diffHunk: hunkUpTo(patch, end.position),
      startLine: null,
      startSide: null,
    };
    if (comment.start_line === undefined) return place;
    const startSide = comment.start_side === undefined ? side : sideOf(comment.start_side);
    const start = lineOn(lines, comment.start_line, startSide);
    if (start === undefined) throw unprocessable('Start line could not be resolved');
    if (start.position >= end.position) throw unprocessable('Start line must precede the end line.');
    if (start.hunk !== end.hunk) throw unprocessable('Start line must be part of the same hunk as the line.');
    return { ...place, startLine: comment.start_line, startSide };
  });
}

function lineOn(lines: readonly HunkLine[], line: number, side: 'LEFT' | 'RIGHT'): HunkLine | undefined {
  return lines.find((one) => one[keyOf(side)] === line);
}

function keyOf(side: 'LEFT' | 'RIGHT'): 'left' | 'right' {
  return side === 'LEFT' ? 'left' : 'right';
}

function sideOf(side: string | undefined): 'LEFT' | 'RIGHT' {
  if (side !== undefined && side !== 'LEFT' && side !== 'RIGHT')
    throw unprocessable(`Side ${JSON.stringify(side)} is neither LEFT nor RIGHT`);
  return side ?? 'RIGHT';
}

function unprocessable(message: string): Refused {
  return new Refused(422, 'Unprocessable Entity', { errors: [message] });
}
