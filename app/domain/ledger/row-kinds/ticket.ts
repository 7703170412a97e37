/** Rows of tickets: how they end, what is taken over, what is refused (TKT-1…TKT-4, LSE-3, LSE-4). */
import * as z from 'zod';
import { wirePathSchema } from '../../path.ts';
import {
  blobsSchema,
  blockIdSchema,
  callsSchema,
  clauseWordsSchema,
  countSchema,
  levelSchema,
  runnerSchema,
  sessionSchema,
  sha256Schema,
  ticketEndSchema,
  wordSchema,
} from '../row-fields.ts';

/** The data schemas of the kinds of tickets. */
export const ticketKinds = {
  'ticket.ended': z.strictObject({
    ticket: sha256Schema,
    key: sha256Schema,
    path: wirePathSchema,
    block: blockIdSchema,
    round: countSchema,
    grant: countSchema,
    level: levelSchema,
    policy: sha256Schema.nullable(),
    end: ticketEndSchema,
    /** Whether the end is final for this ticket; a transient end puts it back in the queue. */
    final: z.boolean(),
    verdict: z.enum(['approve', 'findings', 'cannot_review']).nullable(),
    partial: z.boolean(),
    /** What a review read; absent for other ends. */
    blob: blobsSchema.optional(),
    detail: wordSchema.optional(),
    runner: runnerSchema.nullable(),
    sessions: z.array(sessionSchema).max(16),
    findings: z.array(sha256Schema).max(200),
    /** What its models say of acceptance clauses, and why it calls for a person (REV-3, REV-9); absent: nothing. */
    clauses: clauseWordsSchema.optional(),
    calls: callsSchema.optional(),
    brief: sha256Schema.nullable(),
    result: sha256Schema.nullable(),
    ms: countSchema,
  }),
  'ticket.reused': z.strictObject({
    ticket: sha256Schema,
    key: sha256Schema,
    path: wirePathSchema,
    run: wordSchema,
    seq: countSchema,
    findings: z.array(sha256Schema).max(200),
    /** As `ticket.ended` says them: what a review called for does not get lost on its way (TKT-4). */
    clauses: clauseWordsSchema.optional(),
    calls: callsSchema.optional(),
  }),
  'ticket.late': z.strictObject({
    ticket: sha256Schema,
    key: sha256Schema,
    path: wirePathSchema,
    seq: countSchema,
  }),
  'ticket.refused': z.strictObject({
    ticket: sha256Schema,
    grant: countSchema,
    reason: z.enum(['expired', 'revoked', 'superseded', 'wrong_content']),
    result: sha256Schema.nullable(),
  }),
  'ticket.conflict': z.strictObject({
    ticket: sha256Schema,
    grant: countSchema,
    first: sha256Schema,
    second: sha256Schema,
  }),
} as const;
