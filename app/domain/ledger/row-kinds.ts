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
  entryKindSchema,
  gateReasonSchema,
  idSchema,
  kindSchema,
  levelSchema,
  oidSchema,
  redactedSchema,
  refNameSchema,
  seedSchema,
  severitySchema,
  sha256Schema,
  textRefSchema,
  wordSchema,
} from './row-fields.ts';
import { groupKinds } from './row-kinds/group.ts';
import { receiptKinds } from './row-kinds/receipt.ts';
import { ticketKinds } from './row-kinds/ticket.ts';
import { peopleKinds } from './row-people.ts';

/** The data schema of every row kind; a kind that is not here is `unknown_version` to a verifier. */
export const rowKinds = {
  'run.opened': z.strictObject({
    pull: idSchema.nullable(),
    group_head: oidSchema.nullable(),
    epoch: countSchema,
    author: z.strictObject({ id: idSchema, login: wordSchema }).nullable(),
    reason: z.enum(['opened', 'enrolled', 'reconciled', 'reinstalled', 'sealed']),
    /** Found late, and nobody had pushed for a day (RUN-10); absent: not so. */
    old: z.literal(true).optional(),
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
    /** SHA-256 of the valid policy that this head brings, where the base's is not valid and nothing but guarded paths change (RUN-9). */
    repair: sha256Schema.optional(),
  }),
  'run.policy': z.strictObject({
    state: z.enum(['valid', 'invalid', 'absent']),
    hash: sha256Schema.nullable(),
    commit: oidSchema.nullable(),
    mode: z.enum(['enforce', 'advisory']),
    /** Keys that the settings of the installation hold, since it left them out or was laxer (POL-2). */
    held: z.array(wordSchema).min(1).max(100).optional(),
    error: z.strictObject({ code: wordSchema, line: countSchema.nullable(), text: textRefSchema }).optional(),
  }),
  'run.closed': z.strictObject({ reason: z.enum(['closed', 'merged', 'reinstalled', 'removed', 'sealed']) }),
  'run.reopened': z.strictObject({ head: oidSchema }),
  'run.allowed': z.strictObject({
    rule: z.enum(['same_repository', 'author_write', 'allow_list', 'person']),
    scope: z.enum(['head', 'author']),
    head: oidSchema,
  }),
  'run.sealed': z.strictObject({
    /** The sealed run, where the row stands in the installation's chain: a chain that does not verify gets no row on top. */
    run: wordSchema.optional(),
    next: wordSchema,
    text: textRefSchema,
  }),
  ...groupKinds,
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
    /** SHA-256 over all its commits, each followed by a line feed: `commits` holds the first of a long list. */
    commits_digest: sha256Schema.optional(),
    /** How its first commit is found again after a rewrite (BLK-2). */
    seed: seedSchema.optional(),
    owns: z.array(z.string().max(4096)).max(200),
    /** What each of `owns` was when it was first claimed (OWN-2), in their order; null for globs and directories. */
    was: z.array(entryKindSchema.nullable()).max(200).optional(),
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
    commits_digest: sha256Schema.optional(),
    seed: seedSchema.optional(),
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
    entry: entryKindSchema,
    auto: z.boolean(),
    reason: wordSchema,
  }),
  'block.released': z.strictObject({ block: blockIdSchema, path: wirePathSchema, reason: wordSchema }),
  'block.ended': z.strictObject({ block: blockIdSchema, status: z.enum(['passed', 'failed', 'dropped']) }),
  /** Its verdict is open again without a push: other content, another policy, what it waits for. */
  'block.reopened': z.strictObject({ block: blockIdSchema }),
  decision: z.strictObject({
    question: z.literal('level'),
    source: z.literal('rules'),
    head: oidSchema,
    policy: sha256Schema.nullable(),
    /** The file set of a head is the fold of these: `gone` leaves the set, `paths` enters or replaces. */
    gone: z.array(wirePathSchema).max(1000),
    paths: z.array(decidedPathSchema).max(400),
  }),
  ...ticketKinds,
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
    redacted: redactedSchema.optional(),
    /** The reviewers of an L3 ticket that saw it, where two could (RND-3); absent: nothing hangs on who. */
    witnesses: z.array(wordSchema).min(1).max(10).optional(),
    /** RND-1: new, of a model that had read this very content before: it does not block. */
    read_before: z.literal(true).optional(),
  }),
  /** REV-5: a rename takes the finding along; number, state and texts stay, its fingerprint is that of the new path. */
  'finding.carried': z.strictObject({
    finding: countSchema,
    from: wirePathSchema,
    path: wirePathSchema,
    fingerprint: sha256Schema,
    head: oidSchema,
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
  ...receiptKinds,
  ...peopleKinds,
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
    /** What people cleared, and the act that overrode the rest (GAT-6, GAT-7); absent: nothing. */
    cleared: z
      .array(z.strictObject({ code: wordSchema, seq: countSchema }))
      .max(40)
      .optional(),
    overridden: z.strictObject({ seq: countSchema }).optional(),
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
  /** What became of a resident pool in this installation (AUT-2): registered, a token made or revoked, removed. */
  'pool.registered': z.strictObject({
    pool: wordSchema,
    change: z.enum(['added', 'token', 'revoked', 'removed']),
    /** The repositories it may serve here; null: all. Absent where the change says nothing of them. */
    repositories: z.array(idSchema).max(500).nullable().optional(),
    serves: z.array(wordSchema).max(10).optional(),
    /** Ids of the tokens concerned, never a token. */
    tokens: z.array(wordSchema).max(100).optional(),
  }),
  'provider.changed': z.strictObject({
    provider: wordSchema,
    state: z.enum(['settled', 'revived']),
    until: z.iso.datetime().nullable(),
    detail: wordSchema.optional(),
  }),
  'settings.changed': z.strictObject({
    setting: wordSchema,
    /** As JSON, cut at 200 characters; `unset`: taken away. */
    value: wordSchema,
    /** Why; absent in rows of before. */
    text: textRefSchema.optional(),
    /** Of the whole app; absent: of this installation. */
    scope: z.literal('app').optional(),
  }),
} as const;

/** A row kind. */
export type RowKind = keyof typeof rowKinds;
/** The data of a row of one kind. */
export type RowData<K extends RowKind> = z.infer<(typeof rowKinds)[K]>;
