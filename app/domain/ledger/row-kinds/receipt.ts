/** Rows of receipts (VER-1…VER-4): what a verify command is to prove, which job or pool runs it, and how that ended. */
import * as z from 'zod';
import { wirePathSchema } from '../../path.ts';
import {
  blockIdSchema,
  countSchema,
  idSchema,
  oidSchema,
  sha256Schema,
  textRefSchema,
  wordSchema,
} from '../row-fields.ts';

/** One attempt of one job of a workflow run, by GitHub's ids. */
const jobSchema = z.strictObject({ workflow_run: idSchema, attempt: countSchema, job: idSchema });

const output = z.strictObject({ bytes: countSchema, sha256: sha256Schema, tail: textRefSchema });

/**
 * What the runner told of a command it ran. Code of the pull request could have forged any of it, so it proves
 * nothing; what names trouble made the receipt worse (VER-3).
 */
const toldSchema = z.strictObject({
  environment: sha256Schema,
  input: sha256Schema,
  exit: countSchema.nullable(),
  signal: wordSchema.nullable(),
  ms: countSchema,
  tree: z.strictObject({ before: oidSchema.nullable(), after: oidSchema.nullable() }),
  /** The first paths of a tree that changed, with the whole count beside. */
  mutated: z.array(wirePathSchema).max(50),
  mutated_count: countSchema,
  stdout: output,
  stderr: output,
  found: z
    .array(z.strictObject({ pattern: textRefSchema, files: countSchema, sha256: sha256Schema }))
    .max(50),
  missing: z.array(textRefSchema).max(50),
  missing_count: countSchema,
});

/** One grant of it to a runner of its pool. */
const leased = { lease: wordSchema, grant: countSchema };

const receipt = { block: blockIdSchema, receipt: z.string().regex(/^RCP-[0-9]{3,9}$/) };

/** The data schemas of the kinds of receipts. */
export const receiptKinds = {
  /** A command that must pass for this block on this head; `commands` are its names, equal ones in one receipt. */
  'receipt.reserved': z.strictObject({
    ...receipt,
    commands: z.array(wordSchema).min(1).max(100),
    from: z.enum(['ci', 'action', 'pool']),
    /** What the policy says of it, as `definitionDigest` makes it. */
    definition: sha256Schema,
    head: oidSchema,
  }),
  /** Nothing runs yet, and why; it may have run before. */
  'receipt.waiting': z.strictObject({ ...receipt, why: wordSchema }),
  /** The job that runs it; a later attempt takes the place of an earlier one. */
  'receipt.bound': z.strictObject({ ...receipt, job: jobSchema }),
  /** A runner of its pool lets the container go that runs it; who that is says the actor (VER-2). */
  'receipt.started': z.strictObject({ ...receipt, ...leased, pool: wordSchema }),
  /** How it ended, by GitHub's conclusion of the job or the exit that the pool saw; what was told of it may only have made it worse. */
  'receipt.ended': z.strictObject({
    ...receipt,
    state: z.enum(['passed', 'failed', 'aborted']),
    /** Null of what passed. */
    why: wordSchema.nullable(),
    /** Null where a run ended without the job. */
    job: jobSchema.nullable(),
    conclusion: wordSchema.nullable(),
    ms: countSchema,
    told: toldSchema.optional(),
    /** The lease of a runner that started it; absent of a job, and of what nobody started. */
    lease: wordSchema.optional(),
  }),
  /** What a runner brought under a lease that did not hold, or beside another result (LSE-3, LSE-4): kept, never counted. */
  'receipt.refused': z.strictObject({
    ...receipt,
    ...leased,
    reason: z.enum(['expired', 'revoked', 'superseded', 'conflict']),
    result: sha256Schema,
  }),
  /** It passed on an earlier head with the same content (VER-4); a job of this head that ends says more. */
  'receipt.reused': z.strictObject({ ...receipt, from: z.strictObject({ ...receipt, seq: countSchema }) }),
} as const;
