/** What the API tells of a run (LSE-8). */
import * as z from 'zod';
import { LIMITS } from '../domain/limits.ts';
import { wirePathSchema } from '../domain/path.ts';

/** The query of a wait: a block's id (none: the whole run), and at most so many ms. */
export const waitQuery = z.strictObject({
  block: z.string().min(1).max(200).optional(),
  max_ms: z.coerce.number().int().min(0).max(LIMITS.waitMs.default).default(0),
});

/** How the files of a block stand. */
export const waitResponse = z.strictObject({
  block: z.string().nullable(),
  files: z.array(
    z.strictObject({
      file: wirePathSchema,
      /** `counted`: reviewed; `unreviewed`: recorded and not reviewed; `keyless`: no reviewer for it. */
      status: z.enum(['counted', 'pending', 'unavailable', 'unreviewed', 'keyless']),
    }),
  ),
  /** Nothing of it waits for the machine any more. */
  done: z.boolean(),
});

/** The status of a run: what its gate says now, in words. */
export const runResponse = z.strictObject({
  run: z.string(),
  repository: z.string(),
  pull: z.string().nullable(),
  status: z.string(),
  head: z.string(),
  conclusion: z.enum(['queued', 'in_progress', 'success', 'failure', 'action_required']),
  title: z.string(),
  files: z.int(),
  counted: z.int(),
  unreviewed: z.int(),
  reasons: z.array(
    z.strictObject({
      code: z.string(),
      class: z.string(),
      what: z.string(),
      clears: z.string(),
      who: z.string(),
      count: z.int(),
    }),
  ),
  blocks: z.array(
    z.strictObject({ block: z.string(), verdict: z.string(), files: z.int(), counted: z.int() }),
  ),
  seq: z.int(),
});
