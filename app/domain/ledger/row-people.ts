/** Rows of what people did and of who made what (GAT-6); part of the table in `row-kinds.ts`. */
import * as z from 'zod';
import { wirePathSchema } from '../path.ts';
import {
  countSchema,
  idSchema,
  oidSchema,
  peopleGroupSchema,
  redactedSchema,
  severitySchema,
  textRefSchema,
  wordSchema,
} from './row-fields.ts';

/** The data schemas of these kinds. */
export const peopleKinds = {
  /** Who pushed a head, as the delivery that told of it says: its sender. */
  'run.pushed': z.strictObject({ head: oidSchema, before: oidSchema.nullable(), pusher: idSchema }),
  /** Who made what a head changes (GAT-6); a head's rows are those from `first` to `last`. */
  'run.people': z.strictObject({
    head: oidSchema,
    merge_base: oidSchema,
    first: z.boolean(),
    last: z.boolean(),
    /** Commits of this head that no earlier row of the run named: they came with it. */
    commits: z.array(oidSchema).max(500),
    groups: z.array(peopleGroupSchema).max(200),
  }),
  'human.acted': z.strictObject({
    act: z.enum(['claim', 'release', 'rerun', 'allow', 'approve', 'dismiss', 'answer', 'override', 'review']),
    head: oidSchema,
    permission: wordSchema,
    clause: wordSchema.nullable(),
    paths: z.array(wirePathSchema).max(50),
    self: z.boolean(),
    text: textRefSchema.nullable(),
    /** The severity that a `dismiss` was given for; a worse one is not covered by it (FND-2). */
    severity: severitySchema.optional(),
    redacted: redactedSchema.optional(),
    /** GitHub's answer when it was asked: nobody else has write here (`people.solo`). */
    solo: z.boolean().optional(),
    /** Of act `review`: which review on GitHub, what it said, and when it was submitted. */
    review: idSchema.optional(),
    verdict: z.enum(['approved', 'changes_requested']).optional(),
    submitted: z.iso.datetime().optional(),
  }),
  'human.revoked': z.strictObject({ act: wordSchema, seq: countSchema, reason: wordSchema }),
} as const;
