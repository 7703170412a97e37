import { type Call, type Handler, notFound, paged, Refused, repositoryOf } from '../http/call.ts';
import type { IssueComment, Reaction, User } from '../model.ts';
import type { OperationId } from '../operations.ts';
import type { Pull } from '../pull.ts';
import { commentJson, reactionJson } from '../render/comments.ts';
import { addComment, editComment } from './comments.ts';
import { pullOf } from './pulls.ts';

// GitHub's limit of a comment, as its 422 tells it: "body is too long (maximum is 65536 characters)".
const MAX_BODY = 65_536;

/** The conversation of pull requests. */
export const issueHandlers = {
  'issues/list-comments': (call) => {
    const pull = pullOf(call, 'issue_number');
    const since = String(call.query['since'] ?? '');
    const all = commentsOf(pull).filter((comment) => comment.updatedAt >= since);
    const { items, headers } = paged(call, all);
    return { status: 200, headers, body: items.map((comment) => commentJson(pull, comment)) };
  },

  'issues/list-comments-for-repo': (call) => {
    const repository = repositoryOf(call);
    const since = String(call.query['since'] ?? '');
    const all = repository.pulls
      .flatMap((pull) => commentsOf(pull).map((comment) => ({ pull, comment })))
      .filter(({ comment }) => comment.updatedAt >= since)
      .sort((a, b) => a.comment.id - b.comment.id);
    // Ascending; `direction` is ignored without `sort`.
    if (call.url.searchParams.has('sort') && call.query['direction'] === 'desc') all.reverse();
    const { items, headers } = paged(call, all);
    return { status: 200, headers, body: items.map(({ pull, comment }) => commentJson(pull, comment)) };
  },

  'issues/get-comment': (call) => {
    const { pull, comment } = commentOf(call);
    return { status: 200, body: commentJson(pull, comment) };
  },

  'issues/create-comment': async (call) => {
    const pull = pullOf(call, 'issue_number');
    const body = checkedBody(call);
    const { user, viaApp } = actorOf(call);
    const comment = await addComment(pull, user, body, viaApp);
    return { status: 201, body: commentJson(pull, comment) };
  },

  'issues/update-comment': async (call) => {
    const { pull, comment } = commentOf(call);
    const body = checkedBody(call);
    const { user } = actorOf(call);
    // An App edits its own comments; others' need more than it has (GK).
    if (comment.author !== user && call.bearer.kind === 'token' && call.bearer.token.kind !== 'user')
      throw new Refused(403, 'Resource not accessible by integration');
    await editComment(pull, comment, body, user);
    return { status: 200, body: commentJson(pull, comment) };
  },

  'reactions/list-for-issue-comment': (call) => {
    const { pull, comment } = commentOf(call);
    const wanted = call.query['content'];
    const all = comment.reactions.filter((one) => wanted === undefined || one.content === wanted);
    const { items, headers } = paged(call, all);
    return { status: 200, headers, body: items.map((one) => reactionJson(pull, one)) };
  },

  // facts/github.md §13: 201 for a new one, 200 for one that is there already.
  'reactions/create-for-issue-comment': (call) => {
    const { pull, comment } = commentOf(call);
    const { user } = actorOf(call);
    const content = String(call.body['content']) as Reaction['content'];
    const known = comment.reactions.find((one) => one.user === user && one.content === content);
    if (known !== undefined) return { status: 200, body: reactionJson(pull, known) };
    const reaction: Reaction = {
      id: call.world.id('reaction'),
      user,
      content,
      createdAt: call.world.stamp(),
    };
    comment.reactions.push(reaction);
    return { status: 201, body: reactionJson(pull, reaction) };
  },
} satisfies Partial<Record<OperationId, Handler>>;

/** The account that acts: a person, or an app's bot. */
export function actorOf(call: Call): { user: User; viaApp: IssueComment['viaApp'] } {
  if (call.bearer.kind !== 'token') throw new Refused(401, 'Requires authentication');
  const { user, installation } = call.bearer.token;
  return { user, viaApp: installation?.app ?? null };
}

function checkedBody(call: Call): string {
  const body = String(call.body['body']);
  if (body.trim() === '')
    throw new Refused(422, 'Validation Failed', {
      errors: [
        { resource: 'IssueComment', code: 'unprocessable', field: 'data', message: "Body can't be blank" },
      ],
    });
  if (body.length > MAX_BODY)
    throw new Refused(422, 'Validation Failed', {
      errors: [
        {
          resource: 'IssueComment',
          code: 'unprocessable',
          field: 'data',
          message: `Body is too long (maximum is ${MAX_BODY} characters)`,
        },
      ],
    });
  return body;
}

function commentsOf(pull: Pull): IssueComment[] {
  return pull.repository.world.comments.filter(
    (one) => one.repositoryId === pull.repository.id && one.number === pull.number && !one.deleted,
  );
}

function commentOf(call: Call): { pull: Pull; comment: IssueComment } {
  const repository = repositoryOf(call);
  const id = Number(call.path['comment_id']);
  const comment = call.world.comments.find(
    (one) => one.id === id && one.repositoryId === repository.id && !one.deleted,
  );
  const pull = repository.pulls.find((one) => one.number === comment?.number);
  if (comment === undefined || pull === undefined) throw notFound();
  return { pull, comment };
}
