/** Events of pull requests, their comments, and branches. */
import * as z from 'zod';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { idSchema } from '../lossless.ts';
import { action, actorSchema, inRepository, oid } from './parts.ts';

/** `pull_request`. */
export const pullRequest = z
  .object({
    ...inRepository,
    action,
    number: idSchema,
    before: oid.nullish(),
    sender: actorSchema,
    pull_request: z.object({
      number: idSchema,
      state: z.enum(['open', 'closed']),
      merged: z.boolean().nullish(),
      merged_at: z.string().nullish(),
      draft: z.boolean().nullish(),
      title: z.string(),
      user: actorSchema,
      head: z.object({ sha: oid, ref: z.string(), repo: z.object({ id: idSchema }).nullish() }),
      base: z.object({ sha: oid, ref: z.string() }),
    }),
  })
  .transform((p): InboxEvent => {
    const pull = p.pull_request;
    return {
      kind: 'pull_request',
      action: p.action,
      installationId: p.installation.id,
      repository: p.repository,
      before: p.before ?? null,
      sender: p.sender,
      pull: {
        number: pull.number,
        state: pull.state,
        merged: pull.merged === true || pull.merged_at != null,
        draft: pull.draft === true,
        title: pull.title,
        author: pull.user,
        head: pull.head.sha,
        headRef: pull.head.ref,
        headRepositoryId: pull.head.repo?.id ?? null,
        baseRef: pull.base.ref,
        base: pull.base.sha,
      },
    };
  });

/** `issue_comment`, only on pull requests. */
export const issueComment = z
  .object({
    ...inRepository,
    action,
    issue: z.object({ number: idSchema, pull_request: z.unknown().optional() }),
    comment: z.object({
      id: idSchema,
      body: z.string().nullish(),
      user: actorSchema,
      created_at: z.string(),
    }),
  })
  .transform((p): InboxEvent => {
    if (p.issue.pull_request === undefined) return { kind: 'ignored', reason: 'not_a_pull' };
    if (p.action !== 'created') return { kind: 'ignored', reason: 'unused_action' };
    return {
      kind: 'comment',
      installationId: p.installation.id,
      repository: p.repository,
      pull: p.issue.number,
      comment: p.comment.id,
      author: p.comment.user,
      body: p.comment.body ?? '',
      createdAt: p.comment.created_at,
    };
  });

/** `pull_request_review`: given or dismissed. */
export const pullRequestReview = z
  .object({
    ...inRepository,
    action,
    pull_request: z.object({ number: idSchema }),
    review: z.object({ id: idSchema, user: actorSchema, commit_id: oid }),
  })
  .transform((p): InboxEvent => {
    if (p.action !== 'submitted' && p.action !== 'dismissed')
      return { kind: 'ignored', reason: 'unused_action' };
    return {
      kind: 'review',
      action: p.action,
      installationId: p.installation.id,
      repository: p.repository,
      pull: p.pull_request.number,
      review: p.review.id,
      author: p.review.user,
      commit: p.review.commit_id,
    };
  });

/** `push` of a branch. */
export const push = z
  .object({
    ...inRepository,
    ref: z.string(),
    before: oid,
    after: oid,
    deleted: z.boolean(),
    forced: z.boolean().nullish(),
  })
  .transform((p): InboxEvent => {
    if (!p.ref.startsWith('refs/heads/')) return { kind: 'ignored', reason: 'unused_action' };
    return {
      kind: 'push',
      installationId: p.installation.id,
      repository: p.repository,
      branch: p.ref.slice('refs/heads/'.length),
      after: p.after,
      deleted: p.deleted,
      forced: p.forced === true,
    };
  });
