/** Rows of merge groups (GAT-5): what a group is, its members' verdicts, and how its paths are known. */
import * as z from 'zod';
import { wirePathSchema } from '../../path.ts';
import { countSchema, idSchema, oidSchema, sha256Schema, wordSchema } from '../row-fields.ts';

/** The data schemas of the kinds that only a merge group has. */
export const groupKinds = {
  /** What a merge group is, read once (GAT-5): its members are listed or not, its tree is a clean merge or not. */
  'group.read': z.strictObject({
    head: oidSchema,
    base: oidSchema,
    listed: z.boolean(),
    /** The queue's check timeout in ms; null where nobody told it. */
    timeout_ms: countSchema.nullable(),
    tree: oidSchema,
    /** The tree of the clean merge of base and member heads; null where there is none, or it was not asked for. */
    merged: oidSchema.nullable(),
    members: countSchema,
  }),
  /** A member of a merge group and its verdict on the head that was queued; the newest of a position holds. */
  'group.member': z.strictObject({
    position: countSchema,
    pull: idSchema,
    head: oidSchema,
    run: wordSchema.nullable(),
    /** The verdict: the row of that run; nulls where there is none on that head, or its rows do not verify. */
    seq: countSchema.nullable(),
    digest: sha256Schema.nullable(),
    conclusion: z
      .enum(['queued', 'in_progress', 'success', 'failure', 'action_required', 'cancelled'])
      .nullable(),
    policy: sha256Schema.nullable(),
    reasons: z.array(wordSchema).max(40),
  }),
  /** Paths of a group whose content was reviewed: by the member that is named, or by the clean merge of all. */
  'group.known': z.strictObject({
    proof: z.enum(['content', 'merge']),
    paths: z.array(z.strictObject({ path: wirePathSchema, member: countSchema.nullable() })).max(400),
  }),
} as const;
