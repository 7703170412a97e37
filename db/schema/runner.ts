/** Runners, their logins and the token ids that were used (LSE-6, RID-1, AUT-1). */
import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, moment } from './columns.ts';
import type { PoolKind } from './pool.ts';

/** What was verified about a runner at login, frozen, null fields too (RID-1). */
export interface RunnerIdentity {
  readonly role: 'worker';
  /** Null for a resident runner, with `repository`: its scope is what its pool is registered for. */
  readonly installation: string | null;
  readonly repository: string | null;
  readonly run: string | null;
  readonly workflowRun: string | null;
  readonly attempt: number | null;
  readonly job: string | null;
  readonly pool: string;
  /** Kinds of tickets that a resident runner's pool serves; absent: reviews. */
  readonly serves?: readonly PoolKind[];
}

/** One process that works tickets (LSE-6). */
export const runner = pgTable(
  'runner',
  {
    id: text().primaryKey(),
    /** Null for a resident runner, with `repository_id`. */
    installationId: bigintId('installation_id'),
    repositoryId: bigintId('repository_id'),
    pool: text().notNull(),
    /** A resident runner's own name of its process: a second login of it is the same runner. */
    instance: text(),
    workflowRun: bigintId('workflow_run'),
    attempt: integer(),
    /** The job's check run where the token tells it: jobs of one workflow run are different runners. */
    job: bigintId(),
    version: text().notNull(),
    capacity: integer().notNull(),
    /** The container runtime that a resident runner has for verify commands; null: it takes none (VER-1). */
    runtime: text(),
    /** Names of the variables that hold keys in its job; null: not told (RUN-9). */
    keys: jsonb().$type<string[]>(),
    startedAt: moment('started_at').notNull(),
    heartbeatAt: moment('heartbeat_at').notNull(),
    endedAt: moment('ended_at'),
  },
  (t) => [
    index('runner_repository').on(t.repositoryId, t.endedAt),
    index('runner_workflow').on(t.workflowRun, t.attempt),
    // the live runners of a resident pool
    index('runner_pool').on(t.pool).where(sql`${t.repositoryId} is null and ${t.endedAt} is null`),
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
    /** The pool token it was exchanged for: revoking that one ends it (AUT-2); null for a workflow runner. */
    poolToken: text('pool_token'),
    createdAt: moment('created_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    revokedAt: moment('revoked_at'),
  },
  (t) => [
    uniqueIndex('login_token').on(t.tokenHash),
    index('login_runner').on(t.runnerId),
    index('login_pool_token')
      .on(t.poolToken)
      .where(sql`${t.poolToken} is not null and ${t.revokedAt} is null`),
  ],
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
