/** What a policy that a pull request brings would decide (RUN-9), rendered and waiting to be shown. */
import { index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bigintId, moment } from './columns.ts';

/** The newest preview of a pull request, of the head it was made for. */
export const preview = pgTable(
  'preview',
  {
    repositoryId: bigintId('repository_id').notNull(),
    pull: bigintId().notNull(),
    sha: text().notNull(),
    /** Only about validity: `success` or `failure`. */
    conclusion: text().$type<'success' | 'failure'>().notNull(),
    title: text().notNull(),
    summary: text().notNull(),
    madeAt: moment('made_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.repositoryId, t.pull] }), index('preview_head').on(t.repositoryId, t.sha)],
);
