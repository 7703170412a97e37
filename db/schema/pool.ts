/** Resident pools: their registration, their tokens, and which repositories name them (POOL-1, AUT-2). */
import { index, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bigintId, bytea, moment } from './columns.ts';

/** A kind of ticket that a pool serves. */
export type PoolKind = 'review';

/** A pool of long-lived runners; its name is its identity on this server. */
export const residentPool = pgTable('resident_pool', {
  name: text().primaryKey(),
  /** Kinds of tickets its runners work. */
  serves: jsonb().$type<PoolKind[]>().notNull(),
  createdAt: moment('created_at').notNull(),
});

/** An installation that a resident pool is registered for. */
export const residentScope = pgTable(
  'resident_scope',
  {
    pool: text().notNull(),
    installationId: bigintId('installation_id').notNull(),
    /** The repositories it may serve there; null: all of them. */
    repositories: jsonb().$type<string[]>(),
    /** When a runner of the pool last got tickets of it: who was served longest ago is next (LSE-1). */
    servedAt: moment('served_at'),
  },
  (t) => [primaryKey({ columns: [t.pool, t.installationId] })],
);

/** A pool token: told once, kept as its hash, revocable (AUT-2). */
export const poolToken = pgTable(
  'pool_token',
  {
    id: text().primaryKey(),
    pool: text().notNull(),
    tokenHash: bytea('token_hash').notNull(),
    createdAt: moment('created_at').notNull(),
    revokedAt: moment('revoked_at'),
  },
  (t) => [uniqueIndex('pool_token_hash').on(t.tokenHash), index('pool_token_pool').on(t.pool)],
);

/**
 * A resident pool that the policy of a base branch names: a runner is given no ticket of a repository
 * that does not name its pool. In the order of the key a lease walks from one such repository to the next.
 */
export const poolUse = pgTable(
  'pool_use',
  {
    pool: text().notNull(),
    installationId: bigintId('installation_id').notNull(),
    repositoryId: bigintId('repository_id').notNull(),
    baseRef: text('base_ref').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.pool, t.installationId, t.repositoryId, t.baseRef] }),
    index('pool_use_repository').on(t.repositoryId, t.baseRef),
  ],
);
