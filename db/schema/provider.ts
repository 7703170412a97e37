/** Providers and pools that are out (POOL-3): strikes, until when they are settled, what their probe is. */
import { boolean, integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bigintId, moment } from './columns.ts';

/** One provider in one installation; `command` is one too and never settles. */
export const provider = pgTable(
  'provider',
  {
    installationId: bigintId('installation_id').notNull(),
    name: text().notNull(),
    /** Tickets of the transient ends in a row, newest last, at most three. */
    strikes: jsonb().$type<string[]>().notNull().default([]),
    /** Null: in service. Past: the next lease takes one ticket as the probe. */
    settledUntil: moment('settled_until'),
    settledSince: moment('settled_since'),
    /** Probes that failed since it settled: 5 minutes doubling to 60. */
    rounds: integer().notNull().default(0),
    probeTicket: text('probe_ticket'),
    detail: text(),
    /** Whether the row `provider.changed` says what is so now. */
    noted: boolean().notNull().default(true),
  },
  (t) => [primaryKey({ columns: [t.installationId, t.name] })],
);

/** One pool of one repository: where its runners come from (POOL-1). */
export const pool = pgTable(
  'pool',
  {
    repositoryId: bigintId('repository_id').notNull(),
    name: text().notNull(),
    installationId: bigintId('installation_id').notNull(),
    /** Dispatches in a row that no runner answered; two settle it. */
    missed: integer().notNull().default(0),
    settledUntil: moment('settled_until'),
    rounds: integer().notNull().default(0),
    detail: text(),
  },
  (t) => [primaryKey({ columns: [t.repositoryId, t.name] })],
);
