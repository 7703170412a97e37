import type { Json, Review, ReviewComment } from '../model.ts';
import type { Pull } from '../pull.ts';
import { nodeId } from '../world.ts';
import { userJson } from './accounts.ts';
import { rollup } from './comments.ts';
import { association } from './repositories.ts';

/** A review as GitHub's `pull-request-review`; the states are upper case in REST. */
export function reviewJson(pull: Pull, review: Review): Json {
  const { repository } = pull;
  const { world, fullName } = repository;
  const html = `${world.url}/${fullName}/pull/${pull.number}#pullrequestreview-${review.id}`;
  const pullUrl = `${world.apiUrl}/repos/${fullName}/pulls/${pull.number}`;
  return {
    id: review.id,
    node_id: nodeId('PRR', review.id),
    user: userJson(world, review.author),
    body: review.body,
    state: review.state,
    html_url: html,
    pull_request_url: pullUrl,
    author_association: association(repository, review.author),
    _links: { html: { href: html }, pull_request: { href: pullUrl } },
    ...(review.submittedAt === null ? {} : { submitted_at: review.submittedAt }),
    commit_id: review.commit,
  };
}

/** A review as `pull_request_review` events carry it; the states are lower case there. */
export function reviewEventJson(pull: Pull, review: Review): Json {
  return {
    ...reviewJson(pull, review),
    body: review.body === '' ? null : review.body,
    state: review.state.toLowerCase(),
    submitted_at: review.submittedAt,
    updated_at: review.updatedAt,
  };
}

/** A comment of a review; `position` is null once the line is gone from the head's diff, so it is the first one here. */
export function reviewCommentJson(pull: Pull, comment: ReviewComment): Json {
  const { repository } = pull;
  const { world, fullName } = repository;
  const url = `${world.apiUrl}/repos/${fullName}/pulls/comments/${comment.id}`;
  const html = `${world.url}/${fullName}/pull/${pull.number}#discussion_r${comment.id}`;
  const pullUrl = `${world.apiUrl}/repos/${fullName}/pulls/${pull.number}`;
  return {
    url,
    pull_request_review_id: comment.reviewId,
    id: comment.id,
    node_id: nodeId('PRRC', comment.id),
    diff_hunk: comment.diffHunk,
    path: comment.path,
    position: comment.position,
    original_position: comment.position,
    commit_id: pull.head.sha,
    original_commit_id: comment.commit,
    user: userJson(world, comment.author),
    body: comment.body,
    created_at: comment.createdAt,
    updated_at: comment.createdAt,
    html_url: html,
    pull_request_url: pullUrl,
    author_association: association(repository, comment.author),
    _links: { self: { href: url }, html: { href: html }, pull_request: { href: pullUrl } },
    reactions: rollup(`${url}/reactions`, []),
    start_line: comment.startLine,
    original_start_line: comment.startLine,
    start_side: comment.startSide,
    line: comment.line,
    original_line: comment.line,
    side: comment.side,
    subject_type: 'line',
  };
}
