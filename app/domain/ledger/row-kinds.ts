/**
 * The data of each row kind (LED-1, LED-4): one strict schema a kind, and the only description of
 * what a row may say. Producers validate before signing, the fold and the offline verifier after
 * reading. Free text (titles, bodies, quotes, reasons) is a SHA-256 reference into the erasable
 * store; structure is here. GitHub ids are decimal strings; numbers are safe integers.
 */
import * as z from 'zod';
import { wirePathSchema } from '../path.ts';
import {
  blockIdSchema,
  countSchema,
  decidedPathSchema,
  gateReasonSchema,
  idSchema,
  kindSchema,
  levelSchema,
  oidSchema,
  refNameSchema,
  runnerSchema,
  sessionSchema,
  severitySchema,
  sha256Schema,
  textRefSchema,
  ticketEndSchema,
  wordSchema,
} from './row-fields.ts';

/** The data schema of every row kind; a kind that is not here is `unknown_version` to a verifier. */
export const rowKinds = {
  'run.opened': z.strictObject({
    pull: idSchema.nullable(),
    group_head: oidSchema.nullable(),
    epoch: countSchema,
    author: z.strictObject({ id: idSchema, login: wordSchema }).nullable(),
    reason: z.enum(['opened', 'enrolled', 'reconciled', 'reinstalled', 'sealed']),
    previous: wordSchema.optional(),
  }),
  'run.head': z.strictObject({
    head: oidSchema,
    base_ref: refNameSchema,
    base: oidSchema,
    merge_base: oidSchema.nullable(),
    prior: oidSchema.nullable(),
    /** Whether `prior` is an ancestor of `head`; null where it could not be told. */
    ancestor: z.boolean().nullable(),
    draft: z.boolean(),
    commits: countSchema,
    /** Paths in the file set of this head; the fold of the decision rows must give this number. */
    files: countSchema,
    /** SHA-256 over the sorted path bytes, each followed by NUL, of the file set. */
    files_digest: sha256Schema,
  }),
  'run.policy': z.strictObject({
    state: z.enum(['valid', 'invalid', 'absent']),
    hash: sha256Schema.nullable(),
    commit: oidSchema.nullable(),
    mode: z.enum(['enforce', 'advisory']),
    error: z.strictObject({ code: wordSchema, line: countSchema.nullable(), text: textRefSchema }).optional(),
  }),
  'run.closed': z.strictObject({ reason: z.enum(['closed', 'merged', 'reinstalled', 'removed', 'sealed']) }),
  'run.reopened': z.strictObject({ head: oidSchema }),
  'run.allowed': z.strictObject({
    rule: z.enum(['same_repository', 'author_write', 'allow_list', 'person']),
    scope: z.enum(['head', 'author']),
    head: oidSchema,
  }),
  'run.sealed': z.strictObject({ next: wordSchema, text: textRefSchema }),
  'block.opened': z.strictObject({
    block: blockIdSchema,
    title: textRefSchema,
    attempt: countSchema,
    kind: kindSchema,
    level: levelSchema,
    named: z.boolean(),
    identity: sha256Schema,
    commits: z.array(oidSchema).max(400),
    commit_count: countSchema,
    owns: z.array(z.string().max(4096)).max(200),
    after: z.array(blockIdSchema).max(50),
    accept: z.array(textRefSchema).max(50),
    accept_human: z.array(textRefSchema).max(50),
    notes: z.array(z.strictObject({ code: wordSchema, detail: wordSchema })).max(50),
  }),
  'block.attempt': z.strictObject({
    block: blockIdSchema,
    attempt: countSchema,
    commits: z.array(oidSchema).max(400),
    commit_count: countSchema,
    kept_claims: countSchema,
  }),
  'block.contributed': z.strictObject({
    block: blockIdSchema,
    to: blockIdSchema,
    paths: z.array(wirePathSchema).max(200),
    count: countSchema,
  }),
  'block.claimed': z.strictObject({
    block: blockIdSchema,
    path: wirePathSchema,
    entry: z.enum(['file', 'directory', 'absent', 'symlink', 'submodule']),
    auto: z.boolean(),
    reason: wordSchema,
  }),
  'block.released': z.strictObject({ block: blockIdSchema, path: wirePathSchema, reason: wordSchema }),
  'block.ended': z.strictObject({ block: blockIdSchema, status: z.enum(['passed', 'failed', 'dropped']) }),
  decision: z.strictObject({
    question: z.literal('level'),
    source: z.literal('rules'),
    head: oidSchema,
    policy: sha256Schema.nullable(),
    /** The file set of a head is the fold of these: `gone` leaves the set, `paths` enters or replaces. */
    gone: z.array(wirePathSchema).max(1000),
    paths: z.array(decidedPathSchema).max(400),
  }),
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
    detail: wordSchema.optional(),
    runner: runnerSchema.nullable(),
    sessions: z.array(sessionSchema).max(16),
    findings: z.array(sha256Schema).max(200),
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
  'finding.raised': z.strictObject({
    /** Number of the finding in its run, shown as F<n>. */
    finding: countSchema,
    fingerprint: sha256Schema,
    path: wirePathSchema,
    side: z.enum(['head', 'base']),
    start_line: countSchema,
    end_line: countSchema,
    severity: severitySchema,
    lens: wordSchema,
    state: z.enum(['open', 'ungrounded']),
    reviewer: wordSchema,
    command: z.boolean(),
    ticket: sha256Schema,
    key: sha256Schema,
    blob: oidSchema.nullable(),
    title: textRefSchema,
    body: textRefSchema,
    quote: textRefSchema,
    suggestion: textRefSchema.nullable(),
  }),
  'finding.answered': z.strictObject({ finding: countSchema, text: textRefSchema }),
  'finding.ended': z.strictObject({
    finding: countSchema,
    state: z.enum(['fixed', 'dismissed', 'withdrawn', 'ungrounded']),
    reason: wordSchema,
    head: oidSchema,
    text: textRefSchema.nullable(),
  }),
  'finding.delivered': z.strictObject({ head: oidSchema, findings: z.array(countSchema).max(1000) }),
  'receipt.reserved': z.strictObject({ receipt: wordSchema, command: wordSchema, head: oidSchema }),
  'receipt.ended': z.strictObject({ receipt: wordSchema, end: wordSchema, exit: countSchema.nullable() }),
  'human.acted': z.strictObject({
    act: z.enum(['claim', 'release', 'rerun', 'allow', 'approve', 'dismiss', 'answer', 'override', 'review']),
    head: oidSchema,
    permission: wordSchema,
    clause: wordSchema.nullable(),
    paths: z.array(wirePathSchema).max(50),
    self: z.boolean(),
    text: textRefSchema.nullable(),
  }),
  'human.revoked': z.strictObject({ act: wordSchema, seq: countSchema, reason: wordSchema }),
  'control.requested': z.strictObject({
    control: wordSchema,
    action: z.enum(['pause', 'stop', 'resume']),
    generation: countSchema,
    text: textRefSchema.nullable(),
  }),
  'control.settled': z.strictObject({ control: wordSchema, state: wordSchema, generation: countSchema }),
  'rule.break': z.strictObject({ ticket: sha256Schema, session: wordSchema, detail: wordSchema }),
  'fix.ended': z.strictObject({ fix: wordSchema, outcome: wordSchema, head: oidSchema }),
  'gate.decided': z.strictObject({
    head: oidSchema,
    base_ref: refNameSchema,
    merge_base: oidSchema.nullable(),
    policy: sha256Schema.nullable(),
    mode: z.enum(['enforce', 'advisory']),
    conclusion: z.enum(['queued', 'in_progress', 'success', 'failure', 'action_required', 'cancelled']),
    reasons: z.array(gateReasonSchema).max(40),
    blocking: z.array(countSchema).max(500),
    files: countSchema,
    counted: countSchema,
    unreviewed: countSchema,
    /** Operational facts the decision was given and no row proves: holds with their times. */
    facts: z
      .array(
        z.strictObject({
          code: wordSchema,
          since: z.iso.datetime().nullable(),
          until: z.iso.datetime().nullable(),
          detail: wordSchema.optional(),
        }),
      )
      .max(40),
    /** The product time the decision was taken at; the replay decides at the same time. */
    now: z.iso.datetime(),
    digest: sha256Schema,
  }),
  'command.refused': z.strictObject({ command: wordSchema, code: wordSchema }),
  'repair.done': z.strictObject({ repair: wordSchema, text: textRefSchema.nullable() }),
  'key.rotated': z.strictObject({ from: wordSchema, to: wordSchema }),
  'pool.changed': z.strictObject({
    /** A pool is known by its workflow file, which each repository has its own of. */
    repository: idSchema,
    pool: wordSchema,
    state: z.enum(['settled', 'revived']),
    until: z.iso.datetime().nullable(),
    detail: wordSchema.optional(),
  }),
  'provider.changed': z.strictObject({
    provider: wordSchema,
    state: z.enum(['settled', 'revived']),
    until: z.iso.datetime().nullable(),
    detail: wordSchema.optional(),
  }),
  'settings.changed': z.strictObject({ setting: wordSchema, value: wordSchema }),
} as const;

/** A row kind. */
export type RowKind = keyof typeof rowKinds;
/** The data of a row of one kind. */
export type RowData<K extends RowKind> = z.infer<(typeof rowKinds)[K]>;
