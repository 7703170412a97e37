/** Runs and what is projected of them: blocks, files of the present head, operational reasons. */
import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, count, moment } from './columns.ts';

/** One pull request (or merge group) in one epoch (RUN-1). `version` rises with each change of state. */
export const run = pgTable(
  'run',
  {
    id: text().primaryKey(),
    installationId: bigintId('installation_id').notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    pull: bigintId(),
    groupHead: text('group_head'),
    epoch: integer().notNull(),
    status: text().$type<'open' | 'paused' | 'stopped' | 'closed' | 'merged'>().notNull(),
    generation: count().notNull().default(1),
    version: count().notNull().default(1),
    authorId: bigintId('author_id'),
    authorLogin: text('author_login'),
    headRepositoryId: bigintId('head_repository_id'),
    headRef: text('head_ref'),
    draft: boolean().notNull().default(false),
    title: text().notNull().default(''),
    /** The head a webhook or a read last told of: the gate may exist on it before git was read (GAT-4). */
    toldHead: text('told_head').notNull(),
    /** The head, base and merge base that the file set was read at; null until the first sync. */
    head: text(),
    baseRef: text('base_ref').notNull(),
    base: text(),
    mergeBase: text('merge_base'),
    policyHash: text('policy_hash'),
    mode: text().$type<'enforce' | 'advisory'>().notNull().default('enforce'),
    /** Consent to spend (RUN-10): the rule and its scope; null while waiting for it. */
    allowedRule: text('allowed_rule').$type<'same_repository' | 'author_write' | 'allow_list' | 'person'>(),
    allowedScope: text('allowed_scope').$type<'head' | 'author'>(),
    allowedHead: text('allowed_head'),
    /** When the present head arrived: deadlines of the gate count from here. */
    headAt: moment('head_at').notNull(),
    openedAt: moment('opened_at').notNull(),
    /** The id of the run that follows it, once an admin sealed it (LED-8): it is over for good and never reopened. */
    next: text(),
  },
  (t) => [
    uniqueIndex('run_pull').on(t.installationId, t.repositoryId, t.pull, t.epoch),
    uniqueIndex('run_group').on(t.installationId, t.repositoryId, t.groupHead),
    index('run_head').on(t.repositoryId, t.toldHead),
    index('run_base').on(t.repositoryId, t.baseRef, t.status),
    // the list of runs, newest first, of the installations a person can reach (OPS-8)
    index('run_newest').on(t.installationId, t.openedAt, t.id),
  ],
);

/** A block of a run (BLK-1…BLK-6): a projection of its rows. */
export const block = pgTable(
  'block',
  {
    runId: text('run_id')
      .notNull()
      .references(() => run.id),
    id: text().notNull(),
    position: integer().notNull(),
    identity: text().notNull(),
    title: text().notNull(),
    named: boolean().notNull(),
    kind: text().notNull(),
    level: text().notNull(),
    status: text()
      .$type<'open' | 'waiting' | 'awaiting_human_check' | 'passed' | 'failed' | 'dropped'>()
      .notNull(),
    attempt: integer().notNull(),
    commits: jsonb().$type<string[]>().notNull(),
    /** Trailers, authors and notes as read (BLK-2, BLK-3); see app/domain/block.ts for the shape. */
    detail: jsonb().$type<Record<string, unknown>>().notNull(),
    startedAt: moment('started_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.runId, t.id] })],
);

/** One changed path of the present head: a projection of the decision rows (BLK-6). */
export const file = pgTable(
  'file',
  {
    runId: text('run_id')
      .notNull()
      .references(() => run.id),
    path: bytea().notNull(),
    fromPath: bytea('from_path'),
    status: text().$type<'A' | 'M' | 'D' | 'T'>().notNull(),
    modeBase: text('mode_base'),
    modeHead: text('mode_head'),
    blobBase: text('blob_base'),
    blobHead: text('blob_head'),
    kind: text().notNull(),
    level: text().$type<'L0' | 'L1' | 'L2' | 'L3'>().notNull(),
    asked: text(),
    reason: text(),
    /** Lines of the head side; null unless a route of the policy asks for lines (ADM-3). */
    lines: integer(),
    blockId: text('block_id').notNull(),
    ownership: text().$type<'owned' | 'guarded' | 'unowned_change' | 'overlap' | 'orphan'>().notNull(),
    key: text(),
  },
  (t) => [
    // a path may have 4,096 bytes, an index entry 2,704
    uniqueIndex('file_path').on(t.runId, sql`sha256(${t.path})`),
    index('file_key').on(t.runId, t.key),
  ],
);

/** A path a block claimed (OWN-4…OWN-7): a projection of claim rows. */
export const claim = pgTable(
  'claim',
  {
    runId: text('run_id')
      .notNull()
      .references(() => run.id),
    blockId: text('block_id').notNull(),
    path: bytea().notNull(),
    entry: text().notNull(),
    auto: boolean().notNull(),
    seq: count().notNull(),
  },
  (t) => [uniqueIndex('claim_path').on(t.runId, sql`sha256(${t.path})`)],
);

/**
 * Operational reasons: what holds a run that no row proves (`git_unavailable`, `provider_down`,
 * `dispatch_stalled`, `setup_incomplete`, …). Any step sets and clears its own codes; the gate reads
 * them as given inputs and records them (GAT-1).
 */
export const reason = pgTable(
  'reason',
  {
    runId: text('run_id')
      .notNull()
      .references(() => run.id),
    code: text().notNull(),
    since: moment().notNull(),
    /** When the machine's time is up and the reason becomes a failure; null: no deadline of its own. */
    dueAt: moment('due_at'),
    detail: text(),
  },
  (t) => [primaryKey({ columns: [t.runId, t.code] }), index('reason_due').on(t.dueAt)],
);
