import { type Call, type Handler, notFound, paged, Refused } from '../http/call.ts';
import type { Review, User } from '../model.ts';
import type { OperationId } from '../operations.ts';
import type { Pull } from '../pull.ts';
import { reviewCommentJson, reviewJson } from '../render/reviews.ts';
import { actorOf } from './issues.ts';
import { pullOf } from './pulls.ts';
import {
  type CommentInput,
  createReview,
  dismissReview,
  editReview,
  type ReviewEvent,
  submitReview,
} from './review-acts.ts';

/** Reviews of pull requests with their comments; answers 200, also for a new one (facts/github.md §13). */
export const reviewHandlers = {
  'pulls/create-review': async (call) => {
    const pull = pullOf(call);
    const { body } = call;
    const review = await createReview(pull, actorOf(call).user, {
      ...(body['event'] === undefined ? {} : { event: body['event'] as ReviewEvent }),
      ...(body['body'] === undefined ? {} : { body: String(body['body']) }),
      ...(body['commit_id'] === undefined ? {} : { commit: String(body['commit_id']) }),
      comments: (body['comments'] ?? []) as CommentInput[],
    });
    return { status: 200, body: reviewJson(pull, review) };
  },

  // In the order they were made; a pending one only its author sees.
  'pulls/list-reviews': (call) => {
    const pull = pullOf(call);
    const { items, headers } = paged(call, visible(pull, actorOf(call).user));
    return { status: 200, headers, body: items.map((review) => reviewJson(pull, review)) };
  },

  'pulls/get-review': (call) => {
    const { pull, review } = reviewOf(call);
    return { status: 200, body: reviewJson(pull, review) };
  },

  'pulls/list-comments-for-review': (call) => {
    const { pull, review } = reviewOf(call);
    const all = call.world.reviewComments.filter((one) => one.reviewId === review.id);
    const { items, headers } = paged(call, all);
    return { status: 200, headers, body: items.map((one) => reviewCommentJson(pull, one)) };
  },

  'pulls/list-review-comments': (call) => {
    const pull = pullOf(call);
    const shown = new Set(visible(pull, null).map((review) => review.id));
    const all = call.world.reviewComments.filter((one) => shown.has(one.reviewId));
    const since = String(call.query['since'] ?? '');
    const { items, headers } = paged(
      call,
      all.filter((one) => one.createdAt >= since),
    );
    return { status: 200, headers, body: items.map((one) => reviewCommentJson(pull, one)) };
  },

  'pulls/submit-review': async (call) => {
    const { pull, review } = ownReview(call);
    const body = call.body['body'];
    await submitReview(
      pull,
      review,
      call.body['event'] as ReviewEvent,
      body === undefined ? undefined : String(body),
    );
    return { status: 200, body: reviewJson(pull, review) };
  },

  'pulls/update-review': async (call) => {
    const { pull, review } = ownReview(call);
    await editReview(pull, review, String(call.body['body']), review.author);
    return { status: 200, body: reviewJson(pull, review) };
  },

  'pulls/dismiss-review': async (call) => {
    const { pull, review } = reviewOf(call);
    if (String(call.body['message']).trim() === '')
      throw new Refused(422, 'Unprocessable Entity', { errors: ["Message can't be blank"] });
    await dismissReview(pull, review, actorOf(call).user);
    return { status: 200, body: reviewJson(pull, review) };
  },
} satisfies Partial<Record<OperationId, Handler>>;

function visible(pull: Pull, reader: User | null): Review[] {
  const { world, id } = pull.repository;
  return world.reviews.filter(
    (one) =>
      one.repositoryId === id &&
      one.number === pull.number &&
      (one.state !== 'PENDING' || one.author === reader),
  );
}

function reviewOf(call: Call): { pull: Pull; review: Review } {
  const pull = pullOf(call);
  const id = Number(call.path['review_id']);
  const review = visible(pull, actorOf(call).user).find((one) => one.id === id);
  if (review === undefined) throw notFound();
  return { pull, review };
}

function ownReview(call: Call): { pull: Pull; review: Review } {
  const found = reviewOf(call);
  if (found.review.author !== actorOf(call).user) throw new Refused(403, 'Resource not accessible');
  return found;
}
