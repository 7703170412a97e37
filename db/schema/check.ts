/** Check runs as we intend and as GitHub has them (PUB-2), and the comments and commands of a run (CMD-4). */
import { index, integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bigintId, bytea, count, moment } from './columns.ts';

/** One check run of ours: intent first, GitHub's id once known. */
export const checkRun = pgTable(
  'check_run',
  {
    repositoryId: bigintId('repository_id').notNull(),
    sha: text().notNull(),
    name: text().notNull(),
    n: integer().notNull(),
    runId: text('run_id').notNull(),
    githubId: bigintId('github_id'),
    /** `intended` before the create was answered; `open` until concluded. */
    state: text().$type<'intended' | 'open' | 'concluded'>().notNull(),
    conclusion: text(),
    /** Digest of what GitHub shows, and of what it should show (PUB-2). */
    written: text(),
    wanted: text(),
    annotations: integer().notNull().default(0),
    /** Findings as annotations of this check run, in the order they are posted in, and those that could not be placed (PUB-3). */
    plan: jsonb().$type<{ order: number[]; dropped: { finding: number; reason: string }[] }>(),
    /** Writes that failed in a row; the back-off grows with it. */
    attempts: integer().notNull().default(0),
    /** Code of the write that failed last, and since when none went through; null once one did. */
    fault: text(),
    failingSince: moment('failing_since'),
    /** When GitHub first answered for it: what a person can have seen (GAT-6). */
    publishedAt: moment('published_at'),
    writtenAt: moment('written_at'),
    dueAt: moment('due_at'),
    seq: count(),
  },
  (t) => [primaryKey({ columns: [t.repositoryId, t.sha, t.name, t.n] }), index('check_run_due').on(t.dueAt)],
);

/** The gate's last decision per run, for what reads without the ledger (a projection of gate.decided). */
export const gate = pgTable('gate', {
  runId: text('run_id').primaryKey(),
  head: text().notNull(),
  conclusion: text().notNull(),
  digest: text().notNull(),
  seq: count().notNull(),
  decidedAt: moment('decided_at').notNull(),
  /** When the decision changes by itself: the nearest deadline among its reasons. */
  dueAt: moment('due_at'),
});

/** One command of one comment, executed at most once by (comment, index) (CMD-4). */
export const command = pgTable(
  'command',
  {
    commentId: bigintId('comment_id').notNull(),
    index: integer().notNull(),
    runId: text('run_id'),
    repositoryId: bigintId('repository_id').notNull(),
    userId: bigintId('user_id').notNull(),
    login: text().notNull(),
    name: text().notNull(),
    state: text().$type<'taken' | 'done' | 'refused'>().notNull(),
    code: text(),
    reply: bytea(),
    takenAt: moment('taken_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.commentId, t.index] }),
    index('command_person').on(t.runId, t.userId, t.takenAt),
  ],
);

/** The one sticky comment of a pull request. */
export const sticky = pgTable(
  'sticky',
  {
    repositoryId: bigintId('repository_id').notNull(),
    pull: bigintId().notNull(),
    /** Null while its creation is under way or its answer was lost: it is looked for before another is made. */
    commentId: bigintId('comment_id'),
    /** When its creation was begun. */
    intendedAt: moment('intended_at').notNull(),
    /** SHA-256 of the body that GitHub has. */
    written: text(),
  },
  (t) => [primaryKey({ columns: [t.repositoryId, t.pull] })],
);
