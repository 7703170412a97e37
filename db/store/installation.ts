/** Installations, their repositories, and what is known of each base branch. */
import { and, eq, ne, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { enrolment, installation, repository } from '../schema/installation.ts';

/** An installation as stored. */
export type Installation = typeof installation.$inferSelect;
/** A repository as stored; `id` is its identity, owner and name its address today (RUN-1). */
export type Repository = typeof repository.$inferSelect;
/** What a base branch's policy file says. */
export type Enrolment = typeof enrolment.$inferSelect;

/** The installation of this id, or null. */
export async function findInstallation(db: Reader, id: string): Promise<Installation | null> {
  const [found] = await db.select().from(installation).where(eq(installation.id, id));
  return found ?? null;
}

/** Every installation that is not deleted, oldest id first. */
export async function listInstallations(db: Reader): Promise<Installation[]> {
  return await db
    .select()
    .from(installation)
    .where(ne(installation.status, 'deleted'))
    .orderBy(installation.id);
}

/** What an installation is known by; left out fields keep their stored value. */
export interface InstallationPatch {
  readonly id: string;
  readonly accountId?: string;
  readonly accountLogin?: string;
  readonly status?: Installation['status'];
  readonly permissions?: Readonly<Record<string, string>>;
}

/** Stores what was learnt of an installation; its epoch never changes here. */
export async function upsertInstallation(tx: Tx, patch: InstallationPatch): Promise<Installation> {
  const { id, permissions, ...rest } = patch;
  const set = { ...rest, ...(permissions === undefined ? {} : { permissions: { ...permissions } }) };
  const [stored] = await tx
    .insert(installation)
    .values({
      id,
      accountId: patch.accountId ?? '0',
      accountLogin: patch.accountLogin ?? '',
      status: patch.status ?? 'active',
      permissions: { ...permissions },
      updatedAt: sql`cs_now()`,
    })
    .onConflictDoUpdate({ target: installation.id, set: { ...set, updatedAt: sql`cs_now()` } })
    .returning();
  return stored as Installation;
}

/** The repository of this id, or null. */
export async function findRepository(db: Reader, id: string): Promise<Repository | null> {
  const [found] = await db.select().from(repository).where(eq(repository.id, id));
  return found ?? null;
}

/** Active repositories of one installation, oldest id first. */
export async function listRepositories(db: Reader, installationId: string): Promise<Repository[]> {
  return await db
    .select()
    .from(repository)
    .where(and(eq(repository.installationId, installationId), eq(repository.status, 'active')))
    .orderBy(repository.id);
}

/** What a repository is known by. */
export interface RepositoryPatch {
  readonly id: string;
  readonly installationId: string;
  readonly ownerId: string;
  readonly owner: string;
  readonly name: string;
  readonly defaultBranch: string;
  readonly private: boolean;
  readonly status?: Repository['status'];
}

/** Stores what was learnt of a repository: a rename or transfer moves its address, never its id. */
export async function upsertRepository(tx: Tx, patch: RepositoryPatch): Promise<Repository> {
  const { id, ...rest } = patch;
  const set = { status: 'active' as const, ...rest, updatedAt: sql`cs_now()` };
  const [stored] = await tx
    .insert(repository)
    .values({ id, ...set })
    .onConflictDoUpdate({ target: repository.id, set })
    .returning();
  return stored as Repository;
}

/** Marks repositories as taken out of the installation; false when it was not active there. */
export async function removeRepository(tx: Tx, id: string, installationId: string): Promise<boolean> {
  const removed = await tx
    .update(repository)
    .set({ status: 'removed', updatedAt: sql`cs_now()` })
    .where(
      and(
        eq(repository.id, id),
        eq(repository.installationId, installationId),
        eq(repository.status, 'active'),
      ),
    )
    .returning({ id: repository.id });
  return removed.length > 0;
}

/** Records why an enrolled repository cannot work (RUN-9), or that nothing hinders it (null). */
export async function setSetupCause(tx: Tx, id: string, cause: string | null): Promise<void> {
  await tx.update(repository).set({ setupCause: cause }).where(eq(repository.id, id));
}

/** What is known of a base branch, or null when it was never read. */
export async function findEnrolment(
  db: Reader,
  repositoryId: string,
  baseRef: string,
): Promise<Enrolment | null> {
  const [found] = await db
    .select()
    .from(enrolment)
    .where(and(eq(enrolment.repositoryId, repositoryId), eq(enrolment.baseRef, baseRef)));
  return found ?? null;
}

/** Every base branch of a repository that was read. */
export async function listEnrolments(db: Reader, repositoryId: string): Promise<Enrolment[]> {
  return await db
    .select()
    .from(enrolment)
    .where(eq(enrolment.repositoryId, repositoryId))
    .orderBy(enrolment.baseRef);
}

/** What a reading of a base branch's policy file found. */
export type EnrolmentPatch = Omit<Enrolment, 'enrolledAt' | 'checkedAt'>;

/**
 * Stores a reading. `enrolledAt` is set when the branch first holds a policy file and taken away
 * when the file is gone, so that a later enrolment counts from its own time (RUN-10).
 */
export async function upsertEnrolment(tx: Tx, patch: EnrolmentPatch): Promise<Enrolment> {
  const { repositoryId, baseRef, ...rest } = patch;
  const absent = patch.state === 'absent';
  const [stored] = await tx
    .insert(enrolment)
    .values({ ...patch, enrolledAt: absent ? null : sql`cs_now()`, checkedAt: sql`cs_now()` })
    .onConflictDoUpdate({
      target: [enrolment.repositoryId, enrolment.baseRef],
      set: {
        ...rest,
        enrolledAt: absent ? null : sql`coalesce(${enrolment.enrolledAt}, cs_now())`,
        checkedAt: sql`cs_now()`,
      },
    })
    .returning();
  return stored as Enrolment;
}
