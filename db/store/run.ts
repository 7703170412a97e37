/** Runs, by id and by pull request (RUN-1). Plain objects out; who appends rows locks the run first. */
import { and, asc, desc, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { run } from '../schema/run.ts';

/** A run as stored; ids are decimal strings, times are product times. */
export type Run = typeof run.$inferSelect;
/** What is needed to open a run; `status`, `version` and consent take their first values. */
export type NewRun = typeof run.$inferInsert;
/** What of a run may change; identity never does (RUN-1). */
export type RunPatch = Partial<
  Omit<
    Run,
    'id' | 'installationId' | 'repositoryId' | 'pull' | 'groupHead' | 'epoch' | 'openedAt' | 'version'
  >
>;

/** Statuses of a run that is alive: all but closed and merged (RUN-7). */
export const LIVE_STATUSES = ['open', 'paused', 'stopped'] as const;

/** The run of that id, or null. */
export async function findRun(tx: Reader, id: string): Promise<Run | null> {
  const [found] = await tx.select().from(run).where(eq(run.id, id)).limit(1);
  return found ?? null;
}

/** The newest epoch's run of a pull request, or null. */
export async function findRunOfPull(
  tx: Reader,
  key: { readonly installationId: string; readonly repositoryId: string; readonly pull: string },
): Promise<Run | null> {
  const [found] = await tx
    .select()
    .from(run)
    .where(
      and(
        eq(run.installationId, key.installationId),
        eq(run.repositoryId, key.repositoryId),
        eq(run.pull, key.pull),
      ),
    )
    .orderBy(desc(run.epoch))
    .limit(1);
  return found ?? null;
}

/** The newest epoch's run of a pull request over all installations that ever had it (RUN-1), or null. */
export async function findNewestRun(tx: Reader, repositoryId: string, pull: string): Promise<Run | null> {
  const [found] = await tx
    .select()
    .from(run)
    .where(and(eq(run.repositoryId, repositoryId), eq(run.pull, pull)))
    .orderBy(desc(run.epoch))
    .limit(1);
  return found ?? null;
}

/** Live runs, oldest first, narrowed by installation, repository, base branch or told head. */
export async function listOpenRuns(
  tx: Reader,
  filter: {
    readonly installationId?: string;
    readonly repositoryId?: string;
    readonly baseRef?: string;
    readonly toldHead?: string;
  } = {},
): Promise<Run[]> {
  const where: SQL[] = [inArray(run.status, [...LIVE_STATUSES])];
  if (filter.installationId !== undefined) where.push(eq(run.installationId, filter.installationId));
  if (filter.repositoryId !== undefined) where.push(eq(run.repositoryId, filter.repositoryId));
  if (filter.baseRef !== undefined) where.push(eq(run.baseRef, filter.baseRef));
  if (filter.toldHead !== undefined) where.push(eq(run.toldHead, filter.toldHead));
  return tx
    .select()
    .from(run)
    .where(and(...where))
    .orderBy(asc(run.openedAt), asc(run.id));
}

/** Live runs that stand on a pull request (RUN-3): its head branch is their base, or its head is among their commits. */
export async function listRunsOnTop(
  tx: Reader,
  of: Pick<Run, 'repositoryId' | 'headRef' | 'headRepositoryId' | 'toldHead'>,
): Promise<string[]> {
  const branch = of.headRepositoryId === of.repositoryId ? of.headRef : null;
  const { rows } = await tx.execute<{ id: string }>(sql`
    select r.id from run r
    where r.repository_id = ${of.repositoryId} and r.status in ('open', 'paused', 'stopped')
      and r.told_head <> ${of.toldHead}
      and (r.base_ref = ${branch}
        or exists (select from block b where b.run_id = r.id and b.commits ? ${of.toldHead}))
    order by r.id`);
  return rows.map((row) => row.id);
}

/** Runs of a repository whose told head is this commit, closed ones too (PUB-2, PUB-8). */
export async function listRunsOfHead(tx: Reader, repositoryId: string, head: string): Promise<Run[]> {
  return tx
    .select()
    .from(run)
    .where(and(eq(run.repositoryId, repositoryId), eq(run.toldHead, head)))
    .orderBy(asc(run.openedAt), asc(run.id));
}

/** Adds a run unless its key is taken; null when another process was first. */
export async function insertRun(tx: Tx, values: NewRun): Promise<Run | null> {
  const [added] = await tx.insert(run).values(values).onConflictDoNothing().returning();
  return added ?? null;
}

/** Changes a run and raises its version by one; null when there is no such run. */
export async function updateRun(tx: Tx, id: string, patch: RunPatch): Promise<Run | null> {
  const [changed] = await tx
    .update(run)
    .set({ ...patch, version: sql`${run.version} + 1` })
    .where(eq(run.id, id))
    .returning();
  return changed ?? null;
}

/** Product time, the only clock of product decisions. */
export async function productNow(tx: Reader): Promise<Date> {
  const { rows } = await tx.execute<{ ms: string }>(
    sql`select (extract(epoch from cs_now()) * 1000)::bigint::text as ms`,
  );
  return new Date(Number(rows[0]?.ms));
}
