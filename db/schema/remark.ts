/** Review comments of ours (PUB-5). */
import { index, integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bigintId, moment } from './columns.ts';

/** The one review of ours on a head of a pull request: intent first, GitHub's id once known. */
export const remark = pgTable(
  'remark',
  {
    repositoryId: bigintId('repository_id').notNull(),
    pull: bigintId().notNull(),
    sha: text().notNull(),
    runId: text('run_id').notNull(),
    /** `intended` until GitHub answered; `refused` where it takes none of it. */
    state: text().$type<'intended' | 'posted' | 'refused'>().notNull(),
    githubId: bigintId('github_id'),
    /** Numbers of the findings whose suggestions are in it. */
    findings: jsonb().$type<number[]>().notNull(),
    attempts: integer().notNull().default(0),
    intendedAt: moment('intended_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.repositoryId, t.pull, t.sha] }), index('remark_run').on(t.runId)],
);
