/** Runners, their logins and the token ids that were used (LSE-6, RID-1, AUT-1). */
import { index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, moment } from './columns.ts';

/** What was verified about a runner at login, frozen, null fields too (RID-1). */
export interface RunnerIdentity {
  readonly role: 'worker';
  readonly installation: string;
  readonly repository: string;
  readonly run: string | null;
  readonly workflowRun: string | null;
  readonly attempt: number | null;
  readonly job: string | null;
  readonly pool: string;
}

/** One process that works tickets (LSE-6). */
export const runner = pgTable(
  'runner',
  {
    id: text().primaryKey(),
    installationId: bigintId('installation_id').notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    pool: text().notNull(),
    workflowRun: bigintId('workflow_run'),
    attempt: integer(),
    /** The job's check run where the token tells it: jobs of one workflow run are different runners. */
    job: bigintId(),
    version: text().notNull(),
    capacity: integer().notNull(),
    /** Reviewer names it has a key for; null: not told (RUN-9). */
    keys: jsonb().$type<string[]>(),
    startedAt: moment('started_at').notNull(),
    heartbeatAt: moment('heartbeat_at').notNull(),
    endedAt: moment('ended_at'),
  },
  (t) => [
    index('runner_repository').on(t.repositoryId, t.endedAt),
    index('runner_workflow').on(t.workflowRun, t.attempt),
  ],
);

/** One authenticated connection of a runner; only the hash of its token is kept. */
export const login = pgTable(
  'login',
  {
    id: text().primaryKey(),
    runnerId: text('runner_id').notNull(),
    tokenHash: bytea('token_hash').notNull(),
    identity: jsonb().$type<RunnerIdentity>().notNull(),
    /** SHA-256 over the token that was exchanged. */
    claims: text().notNull(),
    createdAt: moment('created_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    revokedAt: moment('revoked_at'),
  },
  (t) => [uniqueIndex('login_token').on(t.tokenHash), index('login_runner').on(t.runnerId)],
);

/** A token id that was exchanged: single use, kept until the token can no longer pass (AUT-1). */
export const jti = pgTable(
  'jti',
  {
    issuer: text().notNull(),
    id: text().notNull(),
    expiresAt: moment('expires_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.issuer, t.id] }), index('jti_expiry').on(t.expiresAt)],
);
