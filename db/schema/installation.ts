/** Installations, their repositories, and what is known of each base branch (GAT-4, RUN-9). */
import { boolean, index, integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bigintId, bytea, moment } from './columns.ts';

/** One installation of the App; `epoch` rises on a re-install. */
export const installation = pgTable('installation', {
  id: bigintId().primaryKey(),
  accountId: bigintId('account_id').notNull(),
  accountLogin: text('account_login').notNull(),
  status: text().$type<'active' | 'suspended' | 'deleted'>().notNull(),
  permissions: jsonb().$type<Record<string, string>>().notNull(),
  epoch: integer().notNull().default(1),
  updatedAt: moment('updated_at').notNull(),
});

/** One repository, keyed by its id; owner and name are display and address, never identity (RUN-1). */
export const repository = pgTable(
  'repository',
  {
    id: bigintId().primaryKey(),
    installationId: bigintId('installation_id').notNull(),
    ownerId: bigintId('owner_id').notNull(),
    owner: text().notNull(),
    name: text().notNull(),
    defaultBranch: text('default_branch').notNull(),
    private: boolean().notNull(),
    status: text().$type<'active' | 'removed'>().notNull(),
    /** Why an enrolled repository cannot work (`setup_incomplete`, RUN-9): one cause, null when none. */
    setupCause: text('setup_cause'),
    updatedAt: moment('updated_at').notNull(),
  },
  (t) => [index('repository_installation').on(t.installationId)],
);

/** What a base branch's policy file says, kept so that a gate can exist before git is read (GAT-4). */
export const enrolment = pgTable(
  'enrolment',
  {
    repositoryId: bigintId('repository_id').notNull(),
    baseRef: text('base_ref').notNull(),
    state: text().$type<'absent' | 'valid' | 'invalid'>().notNull(),
    policyHash: text('policy_hash'),
    commit: text().notNull(),
    mode: text().$type<'enforce' | 'advisory'>().notNull(),
    error: jsonb().$type<{ code: string; line: number | null; message: string }>(),
    /** When this base branch was first seen enrolled (RUN-10). */
    enrolledAt: moment('enrolled_at'),
    checkedAt: moment('checked_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.repositoryId, t.baseRef] })],
);

/** Policy bytes by their SHA-256 (RUN-8). */
export const policy = pgTable('policy', {
  hash: text().primaryKey(),
  bytes: bytea().notNull(),
  storedAt: moment('stored_at').notNull(),
});
