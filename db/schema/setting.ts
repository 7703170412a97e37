/** Installation settings (POL-2), and who may throw the kill switch by the API (CTL-5). */
import { jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, moment } from './columns.ts';

/** One setting of one installation; of the whole app where the installation is 0. Each change is a row as well. */
export const setting = pgTable(
  'setting',
  {
    installationId: bigintId('installation_id').notNull(),
    key: text().notNull(),
    value: jsonb().notNull(),
    /** Who set it, by their own word, and why: a reference into the erasable store. */
    actor: text().notNull(),
    reason: text().notNull(),
    setAt: moment('set_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.installationId, t.key] })],
);

/**
 * What a program proves itself with to throw the kill switch by the API (CTL-5): told once, kept as its hash, and gone
 * when it is revoked. Of the whole app where the installation is 0.
 */
export const operatorToken = pgTable(
  'operator_token',
  {
    /** Who is named in the rows of what it does. */
    name: text().primaryKey(),
    installationId: bigintId('installation_id').notNull(),
    tokenHash: bytea('token_hash').notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (t) => [uniqueIndex('operator_token_hash').on(t.tokenHash)],
);
