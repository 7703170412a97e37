/**
 * Tickets (TKT-1, TKT-2): what waits for a runner, what is with one, what came of it.
 *
 * | state | means | leaves to |
 * |---|---|---|
 * | `pending` | wants a runner; with a `lane` it is in its run's window and can be leased now | leased, superseded, cancelled |
 * | `leased` | `lease_id` has it | pending (transient end, lost, given back), ended, cancelled |
 * | `held` | other content of the same cell is leased (TKT-3), or its block waits for another (BLK-5) | pending, superseded, cancelled |
 * | `ended` | a final end; its row is `seq` | – |
 * | `superseded`, `cancelled`, `skipped` | never reviewed under this id | pending, when a head wants it again |
 *
 * Each constraint of LSE-1 is a state or a row before lease time, so that a lease searches for
 * nothing: one active ticket per cell (run, block, path) by `ticket_cell`; at most `parallel` of a
 * (run, provider) have a lane, and only those are in `ticket_ready`, with its suspects beside them (TKT-6).
 */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgSequence,
  pgTable,
  smallint,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { TicketSpec } from '../../app/domain/review.ts';
import type { TicketState } from '../../app/domain/ticket.ts';
import { bigintId, bytea, count, moment } from './columns.ts';

/** The order in which tickets entered their run's window; the lease goes by it (fair share, LSE-1). */
export const ticketTag = pgSequence('ticket_tag');

/** One file to review. */
export const ticket = pgTable(
  'ticket',
  {
    id: text().primaryKey(),
    runId: text('run_id').notNull(),
    installationId: bigintId('installation_id').notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    blockId: text('block_id').notNull(),
    path: bytea().notNull(),
    fromPath: bytea('from_path'),
    kind: text().$type<'review'>().notNull().default('review'),
    key: text().notNull(),
    round: integer().notNull(),
    state: text().$type<TicketState>().notNull(),
    level: text().$type<'L1' | 'L2' | 'L3'>().notNull(),
    policyHash: text('policy_hash').notNull(),
    spec: jsonb().$type<TicketSpec>().notNull(),
    reviewers: jsonb().$type<string[]>().notNull(),
    /** Whose slot a lease takes: the provider of the first reviewer, `command` for one that needs none. */
    provider: text().notNull(),
    /** Providers that can do it, in order: the first reviewer's, then its fallbacks' (POOL-3 re-points along them). */
    providers: jsonb().$type<string[]>().notNull(),
    /** `review.parallel` of the policy it was cut with (LSE-1). */
    parallel: smallint().notNull(),
    /** Order within the run: the n-th of its block; a given-back one goes to the front (LSE-5). */
    turn: integer().notNull(),
    /** Its place in the window of (run, provider), 1…parallel; 0 for a suspect, that waits beside it; null outside it. */
    lane: smallint(),
    /** Order of leasing, drawn with the lane; a given-back one keeps its own (LSE-5). */
    tag: bigint({ mode: 'number' }),
    leaseId: text('lease_id'),
    grant: integer('grant_no').notNull().default(0),
    losses: integer().notNull().default(0),
    timeouts: integer().notNull().default(0),
    /** Transient ends in a row: the back-off doubles by it (TKT-2). */
    transients: integer().notNull().default(0),
    /** Was with a runner that got lost with others: leased alone from now on (TKT-6). */
    suspect: boolean().notNull().default(false),
    notBefore: moment('not_before'),
    end: text('end_code'),
    verdict: text().$type<'approve' | 'findings' | 'cannot_review'>(),
    partial: boolean().notNull().default(false),
    /** SHA-256 of the result that counted, and the grant it came under (LSE-4). */
    result: text(),
    resultGrant: integer('result_grant'),
    reason: text(),
    /** The row `ticket.ended` of its last end. */
    seq: count(),
    queuedAt: moment('queued_at').notNull(),
    endedAt: moment('ended_at'),
  },
  (t) => [
    index('ticket_ready')
      .on(t.repositoryId, t.provider, t.tag)
      .where(sql`${t.state} = 'pending' and ${t.lane} is not null`),
    // `suspect` before the order: who is leased alone and has no lane 0 yet (TKT-6) is found, and passed, without reading a backlog
    index('ticket_waiting')
      .on(t.runId, t.provider, t.suspect, t.turn, t.id)
      .where(sql`${t.state} = 'pending' and ${t.lane} is null`),
    uniqueIndex('ticket_cell')
      .on(t.runId, t.blockId, sql`sha256(${t.path})`)
      .where(sql`${t.state} in ('pending', 'leased')`),
    index('ticket_held').on(t.runId, sql`sha256(${t.path})`).where(sql`${t.state} = 'held'`),
    index('ticket_over').on(t.runId, t.key).where(sql`${t.state} not in ('pending', 'leased', 'held')`),
    // who reviewed a key before, in any run of the repository (TKT-4)
    index('ticket_reviewed')
      .on(t.repositoryId, t.key)
      .where(sql`${t.state} = 'ended' and ${t.end} = 'reviewed' and not ${t.partial}`),
    index('ticket_due').on(t.notBefore).where(sql`${t.state} = 'pending' and ${t.notBefore} is not null`),
  ],
);
