/** Findings: a projection of the finding rows, one per (run, path, fingerprint) (REV-5, FND-1). */
import { boolean, integer, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bytea, count } from './columns.ts';
import { run } from './run.ts';

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
    seq: count().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.number] }),
    // the fingerprint is over the path too
    uniqueIndex('finding_fingerprint').on(t.runId, t.fingerprint),
  ],
);
