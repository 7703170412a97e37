/** Visits: people who signed in to the pages (OPS-8). No token of GitHub's is kept. */
import { boolean, index, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import { bigintId, bytea, moment } from './columns.ts';

/** One signed-in browser under one secret; a renewal is a row of its own in the same family. */
export const visit = pgTable(
  'visit',
  {
    /** SHA-256 of the secret in the cookie. */
    secretHash: bytea('secret_hash').primaryKey(),
    /** What began with one sign-in and ends with one sign-out. */
    family: text().notNull(),
    userId: bigintId('user_id').notNull(),
    /** The login as of the sign-in: an address to ask GitHub by, never an identity. */
    login: text().notNull(),
    /** Installations that GitHub told the person can reach, as of the sign-in: where to look for runs. What may be seen is asked anew. */
    installations: jsonb().$type<string[]>().notNull(),
    signedInAt: moment('signed_in_at').notNull(),
    /** When this secret was made. */
    madeAt: moment('made_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    /** A newer secret took its place: it holds for the requests under way and is renewed no more. */
    replaced: boolean().notNull().default(false),
  },
  (t) => [index('visit_family').on(t.family), index('visit_expiry').on(t.expiresAt)],
);
