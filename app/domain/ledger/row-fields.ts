/**
 * Fields that rows and messages share: ids, object ids, enumerations, and the compound parts of row data
 * (LED-1, LED-2). GitHub ids are decimal strings; numbers are safe integers.
 */
import * as z from 'zod';
import { wirePathSchema } from '../path.ts';

/** A decimal 64-bit id as a string. */
export const idSchema = z.string().regex(/^[0-9]{1,20}$/);
/** A git object id: SHA-1 or SHA-256, lower-case hex (GIT-5). */
export const oidSchema = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
/** A SHA-256 in lower-case hex. */
export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);
/** A git ref's short name; GitHub's own limit is 255 bytes. */
export const refNameSchema = z.string().min(1).max(1024);
/** A block's display id (BLK-2), `guarded` and `unowned` included. */
export const blockIdSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/);

/** A count. */
export const countSchema = z.int().min(0);
/** A reference into the erasable store of texts. */
export const textRefSchema = sha256Schema.describe('SHA-256 of a text in the erasable store');
/** A short word or code, never free text of people. */
export const wordSchema = z.string().min(1).max(200);

/** Levels of review (BLK-6). */
export const levelSchema = z.enum(['L0', 'L1', 'L2', 'L3']);
/** What a block or path mostly is (BLK-6). */
export const kindSchema = z.enum(['docs', 'tests', 'config', 'generated', 'code', 'mixed']);
/** What a path was when it was first claimed (OWN-2). */
export const entryKindSchema = z.enum(['file', 'directory', 'absent', 'symlink', 'submodule']);
/** How the first commit of a block is found again after a rewrite (BLK-2): by id, raw diff, author. */
export const seedSchema = z.strictObject({
  oid: oidSchema,
  diff: sha256Schema.nullable(),
  author: sha256Schema,
});
/** Severities, worst first (REV-6). */
export const severitySchema = z.enum(['critical', 'high', 'medium', 'low', 'info']);
/** What was redacted of a row's texts (REV-8): kinds with a keyed hash, equal for equal values of one repository and key. */
export const redactedSchema = z
  .array(z.strictObject({ kind: wordSchema, hash: sha256Schema }))
  .min(1)
  .max(32);
/** How a ticket can end (TKT-2): reviewed, or unavailable with a stable reason. */
export const ticketEndSchema = z.enum([
  'reviewed',
  'quota',
  'rate_limited',
  'provider_error',
  'timeout',
  'lost_runner',
  'bad_output',
  'empty_output',
  'truncated',
  'config-snapshot',
  'rule_break',
  'content_unread',
  'too_large',
  'budget',
  'route_invalid',
  'reviewer_unsafe',
  'worker_error',
  'bad_ticket',
  'no_ledger',
]);

/** Blob ids of a path's two sides; null where it is not there, a submodule's commit where it is one. */
export const blobsSchema = z.strictObject({ base: oidSchema.nullable(), head: oidSchema.nullable() });

/** One path of a head's file set, with the level that was decided for it (BLK-6, GIT-4). */
export const decidedPathSchema = z.strictObject({
  path: wirePathSchema,
  /** The old path when a pair groups a rename; the old path has an entry of its own with status D. */
  from: wirePathSchema.optional(),
  status: z.enum(['A', 'M', 'D', 'T']),
  mode: z.strictObject({
    base: z
      .string()
      .regex(/^[0-7]{6}$/)
      .nullable(),
    head: z
      .string()
      .regex(/^[0-7]{6}$/)
      .nullable(),
  }),
  blob: blobsSchema,
  kind: kindSchema,
  level: levelSchema,
  /** The level asked for before a floor or cap applied. */
  asked: levelSchema.optional(),
  /** Why L0, or why the level was changed: `generated vendored binary lockfile moved deleted docs_floor guarded …`. */
  reason: wordSchema.optional(),
  block: blockIdSchema,
  /** Why the path has no single owner (OWN-3…OWN-5): the path is then reviewed under `unowned` or `guarded`. */
  ownership: z.enum(['owned', 'guarded', 'unowned_change', 'overlap', 'orphan']),
  /** The review key a result must have to count for this path (TKT-1); null at L0. */
  key: sha256Schema.nullable(),
  /** A route asks for a person (`routes.*.human`); absent: none does. */
  human: z.literal(true).optional(),
  /** Verify commands that must pass for its block (VER-1); absent: none. */
  verify: z.array(wordSchema).min(1).max(40).optional(),
});

/**
 * Who made the changes of some paths of a head: accounts of authors and committers of every commit that
 * changes one of them, the heads with which those commits came, and whether one of them maps to no account.
 */
export const peopleGroupSchema = z.strictObject({
  accounts: z.array(idSchema).max(500),
  heads: z.array(oidSchema).max(200),
  unattributed: z.boolean(),
  /** Null: every path of the head that no other group names. */
  paths: z.array(wirePathSchema).max(400).nullable(),
});

/** What models say of acceptance clauses, each by the SHA-256 of its text (REV-3); what none of them could tell is left out. */
export const clauseWordsSchema = z
  .array(z.strictObject({ clause: textRefSchema, status: z.enum(['met', 'unmet']) }))
  .min(1)
  .max(50);
/** Why a review calls for a person: `steering_text`, text that tries to steer a reviewer; a code of a later version calls as well. */
export const callsSchema = z.array(wordSchema).min(1).max(10);

/** One session of a ticket that ended (ADM-1). */
export const sessionSchema = z.strictObject({
  id: wordSchema,
  reviewer: wordSchema,
  provider: wordSchema.nullable(),
  model: wordSchema.nullable(),
  end: z.enum(['complete', 'invalid', 'failed', 'timeout', 'abandoned']),
  detail: wordSchema.optional(),
  tokens_in: countSchema,
  tokens_out: countSchema,
  /** Cost in millionths of the budget's money unit; 0 where unknown. */
  cost_micro: countSchema,
  ms: countSchema,
});

/** The runner that ended a ticket, as far as its identity was verified (RID-1). */
export const runnerSchema = z.strictObject({
  runner: wordSchema,
  pool: wordSchema.nullable(),
  workflow_run: idSchema.nullable(),
  attempt: countSchema.nullable(),
  job: wordSchema.nullable(),
});

/** One reason of a verdict as recorded (GAT-2). */
export const gateReasonSchema = z.strictObject({
  code: wordSchema,
  class: z.enum(['broken', 'held', 'machine', 'wrong', 'person']),
  /** Blocks, paths or findings it concerns, at most 50, with the full count beside. */
  blocks: z.array(blockIdSchema).max(50),
  paths: z.array(wirePathSchema).max(50),
  findings: z.array(wordSchema).max(50),
  count: countSchema,
  detail: wordSchema.optional(),
});

/** Who made the changes of some paths. */
export type PeopleGroup = z.infer<typeof peopleGroupSchema>;
/** One path of a head's file set as recorded. */
export type DecidedPath = z.infer<typeof decidedPathSchema>;

/** Who did what a row says: `via` names how it was proved (oidc, comment, delivery, schedule). */
export const actorSchema = z.strictObject({
  kind: z.enum(['app', 'person', 'runner', 'bot']),
  id: z.string().min(1).max(200),
  via: z.string().min(1).max(60),
});
/** What caused a row: a delivery, a lease, a dispatch, a comment, the schedule, the command line or the API, with the digest of bytes where there are any. */
export const causeSchema = z.strictObject({
  kind: z.enum(['delivery', 'lease', 'dispatch', 'comment', 'schedule', 'command_line', 'api']),
  id: z.string().min(1).max(200),
  sha256: sha256Schema.nullable(),
});
/** Who acted. */
export type Actor = z.infer<typeof actorSchema>;
/** What caused it. */
export type Cause = z.infer<typeof causeSchema>;
