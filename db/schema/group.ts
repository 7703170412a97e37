/** Merge groups (GAT-5): which pull requests a group run rests on. */
import { index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bigintId } from './columns.ts';
import { run } from './run.ts';

/** A member of a merge group, as its newest `group.member` row says: a projection, to find the groups of a run. */
export const groupMember = pgTable(
  'group_member',
  {
    runId: text('run_id')
      .notNull()
      .references(() => run.id),
    /** From the front of the queue, 0 first. */
    position: integer().notNull(),
    pull: bigintId().notNull(),
    /** The head that was queued. */
    head: text().notNull(),
    /** The member's own run; null while it has none. */
    memberRun: text('member_run'),
    /** SHA-256 of the verdict of that run that was weighed; null: none yet. */
    digest: text(),
  },
  (t) => [primaryKey({ columns: [t.runId, t.position] }), index('group_member_run').on(t.memberRun)],
);
