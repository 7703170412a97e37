/** Leases, sessions and the capacity they take (LSE-3, ADM-1). A lease is a table of its own: tickets live longer. */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { bigintId, bytea, count, moment } from './columns.ts';

/** One grant of one ticket to one runner; never revived once it is not `live`. */
export const lease = pgTable(
  'lease',
  {
    id: text().primaryKey(),
    ticketId: text('ticket_id').notNull(),
    runId: text('run_id').notNull(),
    installationId: bigintId('installation_id').notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    runnerId: text('runner_id').notNull(),
    tokenHash: bytea('token_hash').notNull(),
    grant: integer('grant_no').notNull(),
    /** The run's generation when it was granted; only admit asks for it (CTL-2). */
    generation: count().notNull(),
    /** Its unit of `review.parallel` of the run. */
    berth: smallint().notNull(),
    provider: text().notNull(),
    /** The slot that came with it and the session that slot belongs to; null for a command. */
    slot: integer(),
    sessionId: text('session_id'),
    state: text()
      .$type<'live' | 'ended' | 'returned' | 'expired' | 'revoked' | 'superseded'>()
      .notNull()
      .default('live'),
    /** Granted alone to find the poisoned ticket (TKT-6). */
    alone: boolean().notNull().default(false),
    /** Whether a session was ever admitted; one without is recalled by a new head (TKT-3). */
    admitted: boolean().notNull().default(false),
    recalled: boolean().notNull().default(false),
    /** Digest of the first result that was refused or in conflict: one row a lease, however often it is sent. */
    refused: text(),
    grantedAt: moment('granted_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    drainUntil: moment('drain_until'),
    endedAt: moment('ended_at'),
  },
  (t) => [
    uniqueIndex('lease_berth').on(t.runId, t.berth).where(sql`${t.state} = 'live'`),
    index('lease_runner').on(t.runnerId).where(sql`${t.state} = 'live'`),
    index('lease_over').on(t.endedAt).where(sql`${t.state} <> 'live'`),
  ],
);

/** One call of one reviewer (ADM-1): stored before it is answered, ended with its usage. */
export const session = pgTable(
  'session',
  {
    id: text().primaryKey(),
    leaseId: text('lease_id').notNull(),
    ticketId: text('ticket_id').notNull(),
    installationId: bigintId('installation_id').notNull(),
    reviewer: text().notNull(),
    provider: text().notNull(),
    purpose: text().$type<'review' | 'fallback' | 'repair'>().notNull(),
    slot: integer(),
    state: text().$type<'admitted' | 'ended'>().notNull(),
    end: text('end_code').$type<'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned'>(),
    detail: text(),
    promptTokens: count('prompt_tokens').notNull(),
    tokensIn: count('tokens_in').notNull().default(0),
    tokensOut: count('tokens_out').notNull().default(0),
    costMicro: bigint('cost_micro', { mode: 'number' }).notNull().default(0),
    admittedAt: moment('admitted_at').notNull(),
    endedAt: moment('ended_at'),
  },
  (t) => [index('session_lease').on(t.leaseId)],
);

/** A unit of capacity of one provider in one installation; it holds only its session. */
export const slot = pgTable(
  'slot',
  {
    installationId: bigintId('installation_id').notNull(),
    provider: text().notNull(),
    no: integer().notNull(),
    sessionId: text('session_id'),
  },
  (t) => [primaryKey({ columns: [t.installationId, t.provider, t.no] })],
);
