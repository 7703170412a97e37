import type { App, IssueComment, Json, User } from '../model.ts';
import type { Pull } from '../pull.ts';
import { commentJson, issueJson } from '../render/comments.ts';

/** Adds a comment and sends `issue_comment.created`, also for an app's own comments. */
export async function addComment(
  pull: Pull,
  author: User,
  body: string,
  viaApp: App | null,
): Promise<IssueComment> {
  const { repository } = pull;
  const { world } = repository;
  const comment: IssueComment = {
    id: world.id('comment'),
    repositoryId: repository.id,
    number: pull.number,
    author,
    viaApp,
    body,
    createdAt: world.stamp(),
    updatedAt: world.stamp(),
    deleted: false,
    reactions: [],
  };
  world.comments.push(comment);
  await announceComment(pull, comment, 'created', author);
  return comment;
}

/** Changes a comment's text and sends `issue_comment.edited`. */
export async function editComment(
  pull: Pull,
  comment: IssueComment,
  body: string,
  sender: User,
): Promise<void> {
  const from = comment.body;
  comment.body = body;
  comment.updatedAt = pull.repository.world.stamp();
  await announceComment(pull, comment, 'edited', sender, { changes: { body: { from } } });
}

/** Deletes a comment and sends `issue_comment.deleted`. */
export async function deleteComment(pull: Pull, comment: IssueComment, sender: User): Promise<void> {
  comment.deleted = true;
  await announceComment(pull, comment, 'deleted', sender);
}

async function announceComment(
  pull: Pull,
  comment: IssueComment,
  action: 'created' | 'edited' | 'deleted',
  sender: User,
  more: Json = {},
): Promise<void> {
  await pull.repository.world.emit({
    event: 'issue_comment',
    action,
    repository: pull.repository,
    sender,
    payload: () => ({ ...more, issue: issueJson(pull), comment: commentJson(pull, comment) }),
  });
}
