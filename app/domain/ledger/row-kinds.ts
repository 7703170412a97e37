/**
 * The data of each row kind (LED-1, LED-4): one strict schema a kind, and the only description of
 * what a row may say. Producers validate before signing, the fold and the offline verifier after
 * reading. Free text (titles, bodies, quotes, reasons) is a SHA-256 reference into the erasable
 * store; structure is here. GitHub ids are decimal strings; numbers are safe integers.
 */
import * as z from 'zod';
import { wirePathSchema } from '../path.ts';

/** A decimal 64-bit id as a string. */
export const idSchema = z.string().regex(/^[0-9]{1,20}$/);
/** A git object id: SHA-1 or SHA-256, lower-case hex (GIT-5). */
export const oidSchema = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
/** A SHA-256 in lower-case hex. */
export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);
/** A block's display id (BLK-2), `guarded` and `unowned` included. */
export const blockIdSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/);

const int = z.int().min(0);
const ref = sha256Schema;
const name = z.string().min(1).max(200);

/** Levels of review (BLK-6). */
export const levelSchema = z.enum(['L0', 'L1', 'L2', 'L3']);
/** What a block or path mostly is (BLK-6). */
export const kindSchema = z.enum(['docs', 'tests', 'config', 'generated', 'code', 'mixed']);
/** Severities, worst first (REV-6). */
export const severitySchema = z.enum(['critical', 'high', 'medium', 'low', 'info']);
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
  blob: z.strictObject({ base: oidSchema.nullable(), head: oidSchema.nullable() }),
  kind: kindSchema,
  level: levelSchema,
  /** The level asked for before a floor or cap applied. */
  asked: levelSchema.optional(),
  /** Why L0, or why the level was changed: `generated vendored binary lockfile moved deleted docs_floor guarded …`. */
  reason: name.optional(),
  block: blockIdSchema,
  /** Why the path has no single owner (OWN-3…OWN-5): the path is then reviewed under `unowned` or `guarded`. */
  ownership: z.enum(['owned', 'guarded', 'unowned_change', 'overlap', 'orphan']),
  /** The review key a result must have to count for this path (TKT-1); null at L0. */
  key: sha256Schema.nullable(),
});

const sessionSchema = z.strictObject({
  id: name,
  reviewer: name,
  provider: name.nullable(),
  model: name.nullable(),
  end: z.enum(['complete', 'invalid', 'failed', 'timeout', 'abandoned']),
  detail: name.optional(),
  tokens_in: int,
  tokens_out: int,
  /** Cost in millionths of the budget's money unit; 0 where unknown. */
  cost_micro: int,
  ms: int,
});

const runnerSchema = z.strictObject({
  runner: name,
  pool: name.nullable(),
  workflow_run: idSchema.nullable(),
  attempt: int.nullable(),
  job: name.nullable(),
});

const gateReasonSchema = z.strictObject({
  code: name,
  class: z.enum(['broken', 'held', 'machine', 'wrong', 'person']),
  /** Blocks, paths or findings it concerns, at most 50, with the full count beside. */
  blocks: z.array(blockIdSchema).max(50),
  paths: z.array(wirePathSchema).max(50),
  findings: z.array(name).max(50),
  count: int,
  detail: name.optional(),
});

/** The data schema of every row kind; a kind that is not here is `unknown_version` to a verifier. */
export const rowKinds = {
  'run.opened': z.strictObject({
    pull: idSchema.nullable(),
    group_head: oidSchema.nullable(),
    epoch: int,
    author: z.strictObject({ id: idSchema, login: name }).nullable(),
    reason: z.enum(['opened', 'enrolled', 'reconciled', 'reinstalled', 'sealed']),
    previous: name.optional(),
  }),
  'run.head': z.strictObject({
    head: oidSchema,
    base_ref: name,
    base: oidSchema,
    merge_base: oidSchema.nullable(),
    prior: oidSchema.nullable(),
    /** Whether `prior` is an ancestor of `head`; null where it could not be told. */
    ancestor: z.boolean().nullable(),
    draft: z.boolean(),
    commits: int,
    /** Paths in the file set of this head; the fold of the decision rows must give this number. */
    files: int,
    /** SHA-256 over the sorted path bytes, each followed by NUL, of the file set. */
    files_digest: sha256Schema,
  }),
  'run.policy': z.strictObject({
    state: z.enum(['valid', 'invalid', 'absent']),
    hash: sha256Schema.nullable(),
    commit: oidSchema.nullable(),
    mode: z.enum(['enforce', 'advisory']),
    error: z.strictObject({ code: name, line: int.nullable(), text: ref }).optional(),
  }),
  'run.closed': z.strictObject({ reason: z.enum(['closed', 'merged', 'reinstalled', 'removed', 'sealed']) }),
  'run.reopened': z.strictObject({ head: oidSchema }),
  'run.allowed': z.strictObject({
    rule: z.enum(['same_repository', 'author_write', 'allow_list', 'person']),
    scope: z.enum(['head', 'author']),
    head: oidSchema,
  }),
  'run.sealed': z.strictObject({ next: name, text: ref }),
  'block.opened': z.strictObject({
    block: blockIdSchema,
    title: ref,
    attempt: int,
    kind: kindSchema,
    level: levelSchema,
    named: z.boolean(),
    identity: sha256Schema,
    commits: z.array(oidSchema).max(400),
    commit_count: int,
    owns: z.array(z.string().max(4096)).max(200),
    after: z.array(blockIdSchema).max(50),
    accept: z.array(ref).max(50),
    accept_human: z.array(ref).max(50),
    notes: z.array(z.strictObject({ code: name, detail: name })).max(50),
  }),
  'block.attempt': z.strictObject({
    block: blockIdSchema,
    attempt: int,
    commits: z.array(oidSchema).max(400),
    commit_count: int,
    kept_claims: int,
  }),
  'block.contributed': z.strictObject({
    block: blockIdSchema,
    to: blockIdSchema,
    paths: z.array(wirePathSchema).max(200),
    count: int,
  }),
  'block.claimed': z.strictObject({
    block: blockIdSchema,
    path: wirePathSchema,
    entry: z.enum(['file', 'directory', 'absent', 'symlink', 'submodule']),
    auto: z.boolean(),
    reason: name,
  }),
  'block.released': z.strictObject({ block: blockIdSchema, path: wirePathSchema, reason: name }),
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
    round: int,
    grant: int,
    level: levelSchema,
    policy: sha256Schema.nullable(),
    end: ticketEndSchema,
    /** Whether the end is final for this ticket; a transient end puts it back in the queue. */
    final: z.boolean(),
    verdict: z.enum(['approve', 'findings', 'cannot_review']).nullable(),
    partial: z.boolean(),
    detail: name.optional(),
    runner: runnerSchema.nullable(),
    sessions: z.array(sessionSchema).max(16),
    findings: z.array(sha256Schema).max(200),
    brief: sha256Schema.nullable(),
    result: sha256Schema.nullable(),
    ms: int,
  }),
  'ticket.reused': z.strictObject({
    ticket: sha256Schema,
    key: sha256Schema,
    path: wirePathSchema,
    run: name,
    seq: int,
    findings: z.array(sha256Schema).max(200),
  }),
  'ticket.late': z.strictObject({ ticket: sha256Schema, key: sha256Schema, path: wirePathSchema, seq: int }),
  'ticket.refused': z.strictObject({
    ticket: sha256Schema,
    grant: int,
    reason: z.enum(['expired', 'revoked', 'superseded', 'wrong_content']),
    result: sha256Schema.nullable(),
  }),
  'ticket.conflict': z.strictObject({
    ticket: sha256Schema,
    grant: int,
    first: sha256Schema,
    second: sha256Schema,
  }),
  'finding.raised': z.strictObject({
    /** Number of the finding in its run, shown as F<n>. */
    finding: int,
    fingerprint: sha256Schema,
    path: wirePathSchema,
    side: z.enum(['head', 'base']),
    start_line: int,
    end_line: int,
    severity: severitySchema,
    lens: name,
    state: z.enum(['open', 'ungrounded']),
    reviewer: name,
    command: z.boolean(),
    ticket: sha256Schema,
    key: sha256Schema,
    blob: oidSchema.nullable(),
    title: ref,
    body: ref,
    quote: ref,
    suggestion: ref.nullable(),
  }),
  'finding.answered': z.strictObject({ finding: int, text: ref }),
  'finding.ended': z.strictObject({
    finding: int,
    state: z.enum(['fixed', 'dismissed', 'withdrawn', 'ungrounded']),
    reason: name,
    head: oidSchema,
    text: ref.nullable(),
  }),
  'finding.delivered': z.strictObject({ head: oidSchema, findings: z.array(int).max(1000) }),
  'receipt.reserved': z.strictObject({ receipt: name, command: name, head: oidSchema }),
  'receipt.ended': z.strictObject({ receipt: name, end: name, exit: int.nullable() }),
  'human.acted': z.strictObject({
    act: z.enum(['claim', 'release', 'rerun', 'allow', 'approve', 'dismiss', 'answer', 'override', 'review']),
    head: oidSchema,
    permission: name,
    clause: name.nullable(),
    paths: z.array(wirePathSchema).max(50),
    self: z.boolean(),
    text: ref.nullable(),
  }),
  'human.revoked': z.strictObject({ act: name, seq: int, reason: name }),
  'control.requested': z.strictObject({
    control: name,
    action: z.enum(['pause', 'stop', 'resume']),
    generation: int,
    text: ref.nullable(),
  }),
  'control.settled': z.strictObject({ control: name, state: name, generation: int }),
  'rule.break': z.strictObject({ ticket: sha256Schema, session: name, detail: name }),
  'fix.ended': z.strictObject({ fix: name, outcome: name, head: oidSchema }),
  'gate.decided': z.strictObject({
    head: oidSchema,
    base_ref: name,
    merge_base: oidSchema.nullable(),
    policy: sha256Schema.nullable(),
    mode: z.enum(['enforce', 'advisory']),
    conclusion: z.enum(['queued', 'in_progress', 'success', 'failure', 'action_required', 'cancelled']),
    reasons: z.array(gateReasonSchema).max(40),
    blocking: z.array(int).max(500),
    files: int,
    counted: int,
    unreviewed: int,
    /** Operational facts the decision was given and no row proves: holds with their times. */
    facts: z
      .array(
        z.strictObject({
          code: name,
          since: z.iso.datetime().nullable(),
          until: z.iso.datetime().nullable(),
          detail: name.optional(),
        }),
      )
      .max(40),
    /** The product time the decision was taken at; the replay decides at the same time. */
    now: z.iso.datetime(),
    digest: sha256Schema,
  }),
  'command.refused': z.strictObject({ command: name, code: name }),
  'repair.done': z.strictObject({ repair: name, text: ref.nullable() }),
  'key.rotated': z.strictObject({ from: name, to: name }),
  'pool.changed': z.strictObject({ pool: name, change: name }),
  'provider.changed': z.strictObject({
    provider: name,
    state: z.enum(['settled', 'revived']),
    until: z.iso.datetime().nullable(),
    detail: name.optional(),
  }),
  'settings.changed': z.strictObject({ setting: name, value: name }),
} as const;

/** A row kind. */
export type RowKind = keyof typeof rowKinds;
/** The data of a row of one kind. */
export type RowData<K extends RowKind> = z.infer<(typeof rowKinds)[K]>;
/** One path of a head's file set as recorded. */
export type DecidedPath = z.infer<typeof decidedPathSchema>;

/** Who did what a row says: `via` names how it was proved (oidc, comment, delivery, schedule). */
export const actorSchema = z.strictObject({
  kind: z.enum(['app', 'person', 'runner', 'bot']),
  id: z.string().min(1).max(200),
  via: z.string().min(1).max(60),
});
/** What caused a row: a delivery, a lease, a comment or the schedule, with the digest of its bytes where there are any. */
export const causeSchema = z.strictObject({
  kind: z.enum(['delivery', 'lease', 'comment', 'schedule', 'command_line']),
  id: z.string().min(1).max(200),
  sha256: sha256Schema.nullable(),
});
/** Who acted. */
export type Actor = z.infer<typeof actorSchema>;
/** What caused it. */
export type Cause = z.infer<typeof causeSchema>;
