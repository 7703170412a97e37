/** Events of merge groups (facts/github.md §4). */
import * as z from 'zod';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { action, actorSchema, inRepository, oid } from './parts.ts';

/** `merge_group`. */
export const mergeGroup = z
  .object({
    ...inRepository,
    action,
    reason: z.string().max(100).nullish(),
    sender: actorSchema,
    merge_group: z.object({
      head_sha: oid,
      head_ref: z.string().min(1).max(1024),
      base_sha: oid,
      base_ref: z.string().min(1).max(1024),
    }),
  })
  .transform((p): InboxEvent => {
    if (p.action !== 'checks_requested' && p.action !== 'destroyed')
      return { kind: 'ignored', reason: 'unused_action' };
    const group = p.merge_group;
    return {
      kind: 'merge_group',
      action: p.action,
      installationId: p.installation.id,
      repository: p.repository,
      reason: p.reason ?? null,
      head: group.head_sha,
      headRef: branchOf(group.head_ref),
      base: group.base_sha,
      baseRef: branchOf(group.base_ref),
      sender: p.sender,
    };
  });

/** Full refs are told; a branch may hold slashes, so only the prefix goes. */
function branchOf(ref: string): string {
  return ref.replace(/^refs\/heads\//, '');
}
