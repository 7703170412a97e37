/** Receipts of verify commands: a projection of the receipt rows, by which runs to look at are found (VER-2, VER-4). */
import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, count, moment } from './columns.ts';
import { run } from './run.ts';

/** A receipt and the state its rows left it in. */
export const receipt = pgTable(
  'receipt',
  {
    runId: text('run_id')
      .notNull()
      .references(() => run.id),
    blockId: text('block_id').notNull(),
    /** `RCP-001` and on, per block. */
    id: text().notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    head: text().notNull(),
    commands: jsonb().$type<readonly string[]>().notNull(),
    definition: text().notNull(),
    state: text().$type<'reserved' | 'waiting' | 'running' | 'passed' | 'failed' | 'aborted'>().notNull(),
    why: text(),
    workflowRun: bigintId('workflow_run'),
    attempt: integer(),
    job: bigintId(),
    seq: count().notNull(),
    reservedAt: moment('reserved_at').notNull(),
    /** The attempt after which somebody asked for another one (`/rerun`); null: nobody waits for one. */
    rerunAfter: integer('rerun_after'),
    /** The resident pool whose runners may lease it; null: nobody runs it by a lease (VER-1). */
    pool: text(),
    /** The live lease of it; null: nobody has it. */
    leaseId: text('lease_id'),
    /** Rises each time it is leased (LSE-3). */
    grant: integer('grant_no').notNull().default(0),
    /** How often in a row a runner was lost with it (TKT-6). */
    losses: integer().notNull().default(0),
    /** When it may be leased again after a loss; null: at once. */
    notBefore: moment('not_before'),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.blockId, t.id] }),
    // an event of a workflow names a commit; a pass over a repository looks for what is not over
    index('receipt_head').on(t.repositoryId, t.head),
    // what waits for a runner of a pool, and nothing else
    index('receipt_pool')
      .on(t.pool, t.reservedAt)
      .where(sql`${t.pool} is not null and ${t.leaseId} is null and ${t.state} in ('reserved', 'waiting')`),
  ],
);

/** One grant of one receipt to one runner of its pool (LSE-3); never revived once it is not `live`. */
export const receiptLease = pgTable(
  'receipt_lease',
  {
    id: text().primaryKey(),
    runId: text('run_id').notNull(),
    blockId: text('block_id').notNull(),
    receiptId: text('receipt_id').notNull(),
    head: text().notNull(),
    /** `commandDigest` of what the runner was told to run. */
    command: text().notNull(),
    runnerId: text('runner_id').notNull(),
    tokenHash: bytea('token_hash').notNull(),
    grant: integer('grant_no').notNull(),
    /** The run's generation when it was granted; only the start asks for it (CTL-2). */
    generation: count().notNull(),
    /** The request that asked for it, by the runner's own name: an answer that was lost is given back (LSE-5). */
    request: text(),
    state: text().$type<'live' | 'ended' | 'returned' | 'expired' | 'revoked'>().notNull().default('live'),
    /** Digest of the result that ended it. */
    result: text(),
    /** Digest of the first result that was refused or in conflict: one row a lease, however often it is sent. */
    refused: text(),
    grantedAt: moment('granted_at').notNull(),
    /** When its container was let go; null: it was not. */
    startedAt: moment('started_at'),
    expiresAt: moment('expires_at').notNull(),
    /** Null of a revoked one until a sweep said what became of its receipt. */
    endedAt: moment('ended_at'),
  },
  (t) => [
    uniqueIndex('receipt_lease_one').on(t.runId, t.blockId, t.receiptId).where(sql`${t.state} = 'live'`),
    index('receipt_lease_runner').on(t.runnerId).where(sql`${t.endedAt} is null`),
    index('receipt_lease_open').on(t.expiresAt).where(sql`${t.endedAt} is null`),
    index('receipt_lease_over').on(t.endedAt).where(sql`${t.endedAt} is not null`),
  ],
);
