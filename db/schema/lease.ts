/** Leases, sessions and the capacity they take (LSE-3, ADM-1). A lease is a table of its own: tickets live longer. */
import { sql } from 'drizzle-orm';
import {
  bigint,
  bigserial,
  boolean,
  doublePrecision,
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
    /** The ticket's place in its run's window, which comes free with the lease (`ticket.lane`). */
    lane: smallint(),
    /** The request that asked for it, by the runner's own name: an answer that was lost is given back (LSE-5). */
    request: text(),
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
    // who works a suspect gets nothing beside it: each turn asks, and what is dead in `lease_runner` is not read for it
    index('lease_alone').on(t.runnerId).where(sql`${t.state} = 'live' and ${t.alone}`),
    index('lease_over').on(t.endedAt).where(sql`${t.state} <> 'live'`),
  ],
);

/**
 * One call of one reviewer (ADM-1): stored before it is answered, ended with its usage.
 *
 * | state | means | leaves to |
 * |---|---|---|
 * | `waiting` | asked for, no slot is free; `turn` is its place in the queue, `slot` what was handed to it | admitted, refused, gone with its lease |
 * | `admitted` | may spend what is reserved for it | ended |
 * | `refused` | a budget is used up (`detail`); nothing was spent | – |
 * | `ended` | over; with `usageAt` its usage is known, without it the reservation stands as its charge | – |
 */
export const session = pgTable(
  'session',
  {
    id: text().primaryKey(),
    leaseId: text('lease_id').notNull(),
    ticketId: text('ticket_id').notNull(),
    installationId: bigintId('installation_id').notNull(),
    /** Where what it spends is counted (ADM-2); null in sessions of before. */
    repositoryId: bigintId('repository_id'),
    runId: text('run_id').notNull().default(''),
    blockId: text('block_id').notNull().default(''),
    /** Of a run that a person or `allow.authors` let spend (RUN-10). */
    outsider: boolean().notNull().default(false),
    /** The month it was admitted in, `YYYY-MM` of UTC. */
    period: text().notNull().default(''),
    reviewer: text().notNull(),
    provider: text().notNull(),
    purpose: text().$type<'review' | 'fallback' | 'repair'>().notNull(),
    slot: integer(),
    state: text().$type<'waiting' | 'admitted' | 'refused' | 'ended'>().notNull(),
    /** Its place among those who wait for a slot, and when it was last asked for. */
    turn: bigserial({ mode: 'number' }).notNull(),
    seenAt: moment('seen_at'),
    end: text('end_code').$type<'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned'>(),
    detail: text(),
    promptTokens: count('prompt_tokens').notNull(),
    tokensIn: count('tokens_in').notNull().default(0),
    tokensOut: count('tokens_out').notNull().default(0),
    costMicro: bigint('cost_micro', { mode: 'number' }).notNull().default(0),
    /** Millionths of a dollar a token, where the policy has a price; null: the cost is what the runner says. */
    priceIn: doublePrecision('price_in'),
    priceOut: doublePrecision('price_out'),
    reservedTokens: count('reserved_tokens').notNull().default(0),
    reservedMicro: count('reserved_micro').notNull().default(0),
    /** In which counts of `spend` it is (a bit a scope), and with how much. */
    booked: smallint().notNull().default(0),
    bookedTokens: count('booked_tokens').notNull().default(0),
    bookedMicro: count('booked_micro').notNull().default(0),
    /** Whether `spend` says all there is to say of it; an end and late usage wait for `spend_settle` without it. */
    settled: boolean().notNull().default(false),
    admittedAt: moment('admitted_at').notNull(),
    endedAt: moment('ended_at'),
    usageAt: moment('usage_at'),
  },
  (t) => [
    index('session_lease').on(t.leaseId),
    index('session_open').on(t.state).where(sql`${t.state} in ('waiting', 'admitted')`),
    // a slot that comes free goes to the first of these
    index('session_waiting').on(t.installationId, t.provider, t.turn).where(sql`${t.state} = 'waiting'`),
    index('session_unsettled')
      .on(t.installationId, t.id)
      .where(sql`${t.state} = 'ended' and not ${t.settled}`),
  ],
);

/**
 * A repository whose runner asked and found no slot of a provider, with the tag of what it would lease first: who turns
 * a slot over in another repository of the installation leaves it one when that tag is before its own (LSE-1). It holds
 * while it is asked again.
 */
export const slotWish = pgTable(
  'slot_wish',
  {
    installationId: bigintId('installation_id').notNull(),
    provider: text().notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    tag: bigint({ mode: 'number' }).notNull(),
    seenAt: moment('seen_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.installationId, t.provider, t.repositoryId] })],
);

/**
 * What was spent and is reserved, by scope: 1 a block of a run, 2 a run, 3 outsiders of a repository in a month,
 * 4 a repository in a month, 5 an installation in a month (ADM-2). An admission touches only the counts that
 * have a limit, as the last thing it does; all others are brought up by `spend_settle` after the session.
 */
export const spend = pgTable(
  'spend',
  {
    scope: smallint().notNull(),
    id: text().notNull(),
    /** `YYYY-MM` of UTC; empty where it has no month. */
    period: text().notNull(),
    sessions: count().notNull().default(0),
    tokens: count().notNull().default(0),
    /** Millionths of a dollar. */
    micro: count().notNull().default(0),
  },
  (t) => [
    primaryKey({ columns: [t.scope, t.id, t.period] }),
    // months that are to be forgotten
    index('spend_period').on(t.period).where(sql`${t.period} <> ''`),
  ],
);

/** A unit of capacity of one provider in one installation; it holds only its session. */
export const slot = pgTable(
  'slot',
  {
    installationId: bigintId('installation_id').notNull(),
    provider: text().notNull(),
    no: integer().notNull(),
    sessionId: text('session_id'),
    /** Above the cap that was set while it was busy: it, or whichever comes free first, goes (POL-2). */
    retiring: boolean().notNull().default(false),
  },
  (t) => [
    primaryKey({ columns: [t.installationId, t.provider, t.no] }),
    index('slot_retiring').on(t.installationId, t.provider).where(sql`${t.retiring}`),
  ],
);
