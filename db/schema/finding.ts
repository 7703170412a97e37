/** Findings: a projection of the finding rows, one per (run, path, fingerprint) (REV-5, FND-1). */
import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, count, moment } from './columns.ts';
import { run } from './run.ts';

/** One person's dismissal each, as their rows say (FND-2). */
export type FindingDismissals = readonly {
  readonly actor: string;
  readonly severity: 'critical' | 'high' | 'medium' | 'low' | 'info' | null;
  readonly self: boolean;
  readonly seq: number;
}[];

/** A finding and the one state it is in. Texts are references into the erasable store. */
export const finding = pgTable(
  'finding',
  {
    runId: text('run_id')
      .notNull()
      .references(() => run.id),
    number: integer().notNull(),
    fingerprint: text().notNull(),
    path: bytea().notNull(),
    side: text().$type<'head' | 'base'>().notNull(),
    startLine: integer('start_line').notNull(),
    endLine: integer('end_line').notNull(),
    severity: text().$type<'critical' | 'high' | 'medium' | 'low' | 'info'>().notNull(),
    lens: text().notNull(),
    state: text().$type<'open' | 'answered' | 'fixed' | 'dismissed' | 'ungrounded' | 'withdrawn'>().notNull(),
    reviewer: text().notNull(),
    /** Whether a command reviewer raised it: only then does its silence on new content end it (RND-1). */
    command: boolean().notNull(),
    ticketId: text('ticket_id').notNull(),
    /** The review key it was raised under. */
    key: text().notNull(),
    blob: text(),
    title: text().notNull(),
    body: text().notNull(),
    quote: text().notNull(),
    suggestion: text(),
    /** The newest answer (FND-2). */
    answer: text(),
    /** Who asked to dismiss it, in order: whether that is enough depends on the severity (FND-2). */
    dismissals: jsonb().$type<FindingDismissals>().notNull().default([]),
    seq: count().notNull(),
    /** The last row that carried it to another path (REV-5). */
    carriedSeq: count('carried_seq'),
    /** The repository and the time it was raised in, for `review.adaptive` (ADM-3); null: it never blocks by itself. */
    repositoryId: bigintId('repository_id'),
    raisedAt: moment('raised_at'),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.number] }),
    // the fingerprint is over the path too
    uniqueIndex('finding_fingerprint').on(t.runId, t.fingerprint),
    // a path may have 4,096 bytes, an index entry 2,704
    index('finding_history')
      .on(t.repositoryId, sql`sha256(${t.path})`, t.raisedAt)
      .where(sql`${t.raisedAt} is not null`),
  ],
);
