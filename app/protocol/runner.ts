/**
 * The messages between a runner and the server, version 1. Both sides parse with these schemas; the
 * OpenAPI description is made of them. A runner is untrusted: everything it sends is checked again.
 */
import * as z from 'zod';
import {
  blockIdSchema,
  idSchema,
  levelSchema,
  oidSchema,
  severitySchema,
  sha256Schema,
  ticketEndSchema,
} from '../domain/ledger/row-fields.ts';
import { LIMITS } from '../domain/limits.ts';
import { wirePathSchema } from '../domain/path.ts';
import { EVIDENCE_BYTES } from '../domain/transcript/evidence.ts';
import { AGENTS } from '../domain/transcript.ts';
import { receiptLease } from './verify.ts';
import { answerWord, clauseWord } from './words.ts';

/**
 * The protocol's version; another major version leases nothing (LSE-7). 1.1: lease requests have names
 * (`request`, `again`), and a submit may bring the next leases (`lease_next`). 1.2: resident runners log in
 * with a pool token, are told a token that reads (`read_token`) with each lease, and log out. 1.3: those with a container
 * runtime run verify commands (`runtime` of a login, `verify` of a lease request; app/protocol/verify.ts).
 */
export const PROTOCOL_VERSION = '1.3';

/** Changes when what a reviewer is asked changes; part of every review key (TKT-1). */
export const PROMPT_VERSION = '2';

const text = (max: number) => z.string().max(max);
const ms = z.int().min(0);

/** `GET /api/v1/ping`. */
export const pingResponse = z.strictObject({
  protocol: text(20),
  server: text(60),
  run: text(64).nullable(),
});

/** A reviewer as a ticket brings it: what the base policy says, never free text for a shell. */
export const reviewerSpec = z.strictObject({
  name: text(100),
  uses: z.enum(['anthropic', 'openai', 'xai', 'openai-compatible', ...AGENTS, 'command']),
  model: text(200).optional(),
  base_url: text(500).optional(),
  key: text(100).optional(),
  max_output: z.int().min(1).max(1_000_000).optional(),
  lenses: z.array(text(60)).max(30).optional(),
  fallbacks: z.array(text(100)).max(10).optional(),
  command: z
    .strictObject({
      run: z.array(text(1000)).min(1).max(60),
      output: z.enum(['sarif', 'rdjson', 'checkstyle', 'eslint-json', 'countersign']),
      paths: z.array(text(1000)).min(1).max(100),
      ok_exit: z.array(z.int().min(0).max(255)).max(20),
      deletions: z.boolean(),
      config: z.array(z.strictObject({ path: text(4096), blob: oidSchema.nullable() })).max(50),
      severity: z.strictObject({ error: severitySchema, warning: severitySchema, note: severitySchema }),
    })
    .optional(),
});
/** A reviewer of a ticket. */
export type ReviewerSpec = z.infer<typeof reviewerSpec>;

/** A ticket as leased: everything a runner needs, named by digest where content is concerned. */
export const leasedTicket = z.strictObject({
  id: sha256Schema,
  kind: z.literal('review'),
  key: sha256Schema,
  round: z.int().min(0),
  run: text(64),
  pull: idSchema.nullable(),
  repository: z.strictObject({ id: idSchema, owner: text(100), name: text(100), clone_url: text(500) }),
  path: wirePathSchema,
  from: wirePathSchema.nullable(),
  mode: z.strictObject({ base: text(6).nullable(), head: text(6).nullable() }),
  blob: z.strictObject({ base: oidSchema.nullable(), head: oidSchema.nullable() }),
  head: oidSchema,
  merge_base: oidSchema,
  level: levelSchema,
  block: z.strictObject({ id: blockIdSchema, title: text(1000), brief: text(20_000) }),
  reviewers: z.array(reviewerSpec).min(1).max(10),
  /** Reviewers a session may fall back to, by name. */
  fallbacks: z.array(reviewerSpec).max(20),
  lenses: z.array(text(60)).max(30),
  /** Acceptance clauses of the block, in order; a result names them by index (REV-3). */
  clauses: z.array(text(1000)).max(50).optional(),
  /** The changed files of the block nearest to this one, for context (REV-2). */
  near: z.array(wirePathSchema).max(LIMITS.nearFiles.max).optional(),
  max_lines: z.int().min(1),
  timeout_ms: ms,
  policy: sha256Schema,
  prompt_version: text(20),
  /** Marks data of the pull request in prompts; a verdict must bring it back (REV-2, REV-3). */
  nonce: text(64),
  /** Under which the runner hashes what it redacts, so that equal values can be told equal (REV-8); told to runners of 1.1. */
  redaction_salt: text(64).optional(),
  earlier: z
    .array(
      z.strictObject({
        finding: z.int(),
        fingerprint: sha256Schema,
        severity: severitySchema,
        title: text(500),
        body: text(4000),
        start_line: z.int(),
        answer: text(4000).nullable(),
        /** Its quote, so that the runner can tell whether the anchored code still stands (RND-1). */
        quote: text(4000).optional(),
      }),
    )
    .max(100),
});
/** A leased ticket. */
export type LeasedTicket = z.infer<typeof leasedTicket>;

/** `POST /api/v1/leases`: up to `max` tickets, waiting up to `wait_ms` for the first. */
export const leaseRequest = z.strictObject({
  max: z.int().min(1).max(16),
  wait_ms: ms.max(LIMITS.waitMs.default),
  /** The runner's own name of this request, new for each until its answer was had. */
  request: text(64).optional(),
  /** Sent before under this name without an answer: what that one got is given back, no grant is lost. */
  again: z.boolean().optional(),
  /** So many of `max` may be receipts of verify commands; a runner without a container runtime gets none (VER-1). */
  verify: z.int().min(0).max(16).optional(),
});
/** Leases granted; empty means nothing now. `done` says nothing of this run is left to wait for. */
export const leaseResponse = z.strictObject({
  leases: z.array(
    z.strictObject({
      id: text(64),
      token: text(200),
      grant: z.int().min(1),
      expires_at: z.iso.datetime(),
      heartbeat_ms: ms,
      /** The session its slot already belongs to; null for a command, which needs none (ADM-1). */
      session: text(64).nullable(),
      ticket: leasedTicket,
      /** Reads this one repository and nothing else, for git (AUT-4); told to resident runners only. */
      read_token: text(2000).optional(),
    }),
  ),
  /** Receipts to run; only where they were asked for. */
  verify: z.array(receiptLease).optional(),
  done: z.boolean(),
});

/** `POST /api/v1/leases/:id/heartbeat` (lease token in the body). */
export const heartbeatRequest = z.strictObject({ token: text(200), grant: z.int().min(1) });
/** The lease goes on until `expires_at`; `control` tells the runner to give back or stop. */
export const heartbeatResponse = z.strictObject({
  expires_at: z.iso.datetime(),
  control: z.enum(['none', 'pause', 'recall', 'stop']),
  drain_until: z.iso.datetime().nullable(),
  login_expires_at: z.iso.datetime(),
});

/** `POST /api/v1/leases/:id/admit`: asks to start one session of one reviewer (ADM-1). */
export const admitRequest = z.strictObject({
  token: text(200),
  grant: z.int().min(1),
  reviewer: text(100),
  purpose: z.enum(['review', 'fallback', 'repair']),
  prompt_tokens: z.int().min(0),
});
/** Nothing may be spent before `admitted`. */
export const admitResponse = z.strictObject({
  outcome: z.enum(['admitted', 'provider_capacity', 'budget']),
  session: text(64).nullable(),
  retry_ms: ms.nullable(),
});

/** `POST /api/v1/sessions/:id/end`: a session is over, its slot is free, its usage is known. */
export const sessionEndRequest = z.strictObject({
  token: text(200),
  grant: z.int().min(1),
  end: z.enum(['complete', 'invalid', 'failed', 'timeout', 'abandoned']),
  detail: text(500).nullable(),
  tokens_in: ms,
  tokens_out: ms,
  cost_micro: ms,
  ms,
});

/** A finding as a runner submits it: redacted text, grounded quote, fingerprint (REV-4, REV-5, REV-8). */
export const submittedFinding = z.strictObject({
  fingerprint: sha256Schema,
  side: z.enum(['head', 'base']),
  start_line: z.int().min(1),
  end_line: z.int().min(1),
  severity: severitySchema,
  lens: text(60),
  title: text(300),
  body: text(8000),
  quote: text(4000),
  suggestion: text(8000).nullable(),
  grounded: z.boolean(),
  reviewer: text(100),
  /** Other reviewers of the ticket that said the same, by fingerprint (RND-3). */
  seen_by: z.array(text(100)).max(10).optional(),
  /** What the runner redacted of these texts: hashes under the ticket's `redaction_salt` (REV-8). */
  redacted: z
    .array(z.strictObject({ kind: z.string().regex(/^[a-z_]{1,60}$/), hash: sha256Schema }))
    .max(32)
    .optional(),
});
/** A finding as submitted. */
export type SubmittedFinding = z.infer<typeof submittedFinding>;

/** What a runner says a ticket came to. `blobs` are the ids it read: others than the ticket's are `wrong_content` (AUT-3). */
export const ticketResult = z.strictObject({
  end: ticketEndSchema,
  detail: text(500).nullable(),
  retry_after_ms: ms.nullable(),
  blobs: z.strictObject({ base: oidSchema.nullable(), head: oidSchema.nullable() }),
  verdict: z.enum(['approve', 'findings', 'cannot_review']).nullable(),
  partial: z.boolean(),
  sessions: z
    .array(
      z.strictObject({
        id: text(64),
        reviewer: text(100),
        provider: text(60).nullable(),
        model: text(200).nullable(),
        end: z.enum(['complete', 'invalid', 'failed', 'timeout', 'abandoned']),
        detail: text(500).nullable(),
        exit: z.int().nullable(),
        tokens_in: ms,
        tokens_out: ms,
        cost_micro: ms,
        ms,
        /** An agent's log with its long texts cut: what it did is looked for again (REV-7). */
        log: text(EVIDENCE_BYTES).optional(),
      }),
    )
    .max(16),
  findings: z.array(submittedFinding).max(200),
  /** Findings that came malformed or misplaced and are shown as text only. */
  unplaced: z.array(text(1000)).max(50),
  /** What a model proposes for the findings that the ticket brought; a proposal ends nothing by itself (RND-1). */
  answers: z.array(answerWord).max(200).optional(),
  /** What models say of the ticket's clauses, by index; what they could not tell is left out (REV-3). */
  clauses: z.array(clauseWord).max(200).optional(),
  /** Why it calls for a person (REV-9). */
  calls: z
    .array(z.enum(['steering_text']))
    .max(10)
    .optional(),
  brief_sha256: sha256Schema.nullable(),
  ms,
});
/** A ticket's result. */
export type TicketResult = z.infer<typeof ticketResult>;

/** `POST /api/v1/leases/:id/submit`. Idempotent by (ticket, grant, result digest) (LSE-4). */
export const submitRequest = z.strictObject({
  token: text(200),
  grant: z.int().min(1),
  result: ticketResult,
  /** Asks for the next tickets in the same commit; never before the server spoke protocol 1.1. */
  lease_next: leaseRequest.omit({ wait_ms: true, verify: true }).optional(),
});
/** What became of a submitted result; `next` only where it was asked for. */
export const submitResponse = z.strictObject({
  accepted: z.boolean(),
  late: z.boolean(),
  repeated: z.boolean(),
  next: leaseResponse.optional(),
});

/** `POST /api/v1/leases/:id/return`: the ticket goes back to the front of its block (LSE-5). */
export const returnRequest = z.strictObject({
  token: text(200),
  grant: z.int().min(1),
  reason: z.enum(['stopping', 'fenced', 'recalled']),
});
/** An empty answer. */
export const emptyResponse = z.strictObject({});

/** Every error answer of the API. */
export const errorResponse = z.strictObject({
  error: z.strictObject({ code: text(60), message: text(1000), accepted: text(1000).optional() }),
});
