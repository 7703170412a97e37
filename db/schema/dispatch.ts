/** Dispatches: wake-ups of workflow pools, intent first (POOL-4). */
import { index, integer, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, count, moment } from './columns.ts';

/**
 * One `workflow_dispatch`. `intended` (not answered yet), `sent` (GitHub took it), `ambiguous` (no
 * telling: it waits for its reaper), `answered` (a runner logged in by it), `done` (its workflow run
 * completed), `missed` (nobody came in time), `failed` (GitHub refused it, or its run never started a job).
 */
export const dispatch = pgTable(
  'dispatch',
  {
    id: text().primaryKey(),
    installationId: bigintId('installation_id').notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    runId: text('run_id').notNull(),
    pool: text().notNull(),
    workflow: text().notNull(),
    /** The run's generation it was planned under (CTL-2). */
    generation: count().notNull(),
    nonceHash: bytea('nonce_hash').notNull(),
    workflowRun: bigintId('workflow_run'),
    attempt: integer(),
    state: text()
      .$type<'intended' | 'sent' | 'ambiguous' | 'answered' | 'done' | 'missed' | 'failed'>()
      .notNull(),
    detail: text(),
    createdAt: moment('created_at').notNull(),
    /** When nobody having come makes it `missed`. */
    dueAt: moment('due_at'),
    endedAt: moment('ended_at'),
  },
  (t) => [
    uniqueIndex('dispatch_nonce').on(t.nonceHash),
    index('dispatch_repository').on(t.repositoryId, t.state),
    // what went out in the last minute (POOL-4)
    index('dispatch_created').on(t.createdAt),
    index('dispatch_workflow').on(t.workflowRun),
    index('dispatch_due').on(t.dueAt),
    // what ended within the hour, and what is not over (OPS-7)
    index('dispatch_ended').on(t.endedAt),
  ],
);
