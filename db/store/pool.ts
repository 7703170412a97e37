/** Resident pools: registration, tokens, and where their runners find work (POOL-1, AUT-2, LSE-1). */
import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { type PoolKind, poolToken, poolUse, residentPool, residentScope } from '../schema/pool.ts';
import { login, runner } from '../schema/runner.ts';

/** A kind of ticket that a pool serves. */
export type { PoolKind } from '../schema/pool.ts';
/** A resident pool as stored. */
export type ResidentPool = typeof residentPool.$inferSelect;
/** An installation that a pool is registered for. */
export type ResidentScope = typeof residentScope.$inferSelect;
/** A pool token as stored: its hash alone. */
export type PoolToken = typeof poolToken.$inferSelect;

/** Waits for, then holds, the right to change or to count a pool until the transaction ends (LSE-6). */
export async function lockResidentPool(tx: Tx, name: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended('countersign pool ' || ${name}, 0))`);
}

/** The resident pool of that name, or null. */
export async function findResidentPool(reader: Reader, name: string): Promise<ResidentPool | null> {
  const [found] = await reader.select().from(residentPool).where(eq(residentPool.name, name));
  return found ?? null;
}

/** Every resident pool, by name. */
export async function listResidentPools(reader: Reader): Promise<ResidentPool[]> {
  return reader.select().from(residentPool).orderBy(asc(residentPool.name));
}

/** What a pool is registered for, in the order of installation ids. */
export async function listScopes(reader: Reader, pool: string): Promise<ResidentScope[]> {
  return reader
    .select()
    .from(residentScope)
    .where(eq(residentScope.pool, pool))
    .orderBy(asc(residentScope.installationId));
}

/** Registers a pool; one that exists keeps what it is. */
export async function addResidentPool(tx: Tx, name: string, serves: readonly PoolKind[]): Promise<void> {
  await tx
    .insert(residentPool)
    .values({ name, serves: [...serves], createdAt: sql`cs_now()` })
    .onConflictDoNothing();
}

/** Registers a pool for an installation, of all its repositories (null) or of some; says it anew where it was. */
export async function putScope(
  tx: Tx,
  pool: string,
  installationId: string,
  repositories: readonly string[] | null,
): Promise<void> {
  const list = repositories === null ? null : [...repositories];
  await tx
    .insert(residentScope)
    .values({ pool, installationId, repositories: list })
    .onConflictDoUpdate({
      target: [residentScope.pool, residentScope.installationId],
      set: { repositories: list },
    });
}

/** Removes a pool with its registration, and revokes its tokens. */
export async function removeResidentPool(tx: Tx, name: string): Promise<void> {
  await revokePoolTokens(tx, name, null);
  await tx.delete(residentScope).where(eq(residentScope.pool, name));
  await tx.delete(residentPool).where(eq(residentPool.name, name));
}

/** Keeps the hash of a new token of a pool. */
export async function addPoolToken(
  tx: Tx,
  of: { readonly id: string; readonly pool: string; readonly tokenHash: Buffer },
): Promise<void> {
  await tx.insert(poolToken).values({ ...of, createdAt: sql`cs_now()` });
}

/** The token of that hash while it holds, or null. */
export async function findPoolToken(reader: Reader, tokenHash: Buffer): Promise<PoolToken | null> {
  const [found] = await reader
    .select()
    .from(poolToken)
    .where(and(eq(poolToken.tokenHash, tokenHash), isNull(poolToken.revokedAt)));
  return found ?? null;
}

/** Tokens of a pool that hold, oldest first. */
export async function listPoolTokens(reader: Reader, pool: string): Promise<PoolToken[]> {
  return reader
    .select()
    .from(poolToken)
    .where(and(eq(poolToken.pool, pool), isNull(poolToken.revokedAt)))
    .orderBy(asc(poolToken.createdAt), asc(poolToken.id));
}

/**
 * Revokes tokens of a pool, one or all (null), and ends the logins and the runners they let in: their leases
 * end with the next sweep. Returns the ids of the tokens.
 */
export async function revokePoolTokens(tx: Tx, pool: string, id: string | null): Promise<string[]> {
  const revoked = await tx
    .update(poolToken)
    .set({ revokedAt: sql`cs_now()` })
    .where(
      and(
        eq(poolToken.pool, pool),
        isNull(poolToken.revokedAt),
        id === null ? undefined : eq(poolToken.id, id),
      ),
    )
    .returning({ id: poolToken.id });
  const ids = revoked.map((one) => one.id);
  if (ids.length > 0)
    await tx.execute(sql`
      with gone as (
        update ${login} set revoked_at = cs_now()
        where pool_token = any(${sql.param(ids)}::text[]) and pool_token is not null and revoked_at is null returning runner_id
      )
      update ${runner} r set ended_at = cs_now() from gone where r.id = gone.runner_id and r.ended_at is null`);
  return ids;
}

/** Says which resident pools the policy of a base branch names. */
export async function putPoolUse(
  tx: Tx,
  of: { readonly installationId: string; readonly repositoryId: string; readonly baseRef: string },
  pools: readonly string[],
): Promise<void> {
  const { installationId, repositoryId, baseRef } = of;
  await tx.delete(poolUse).where(and(eq(poolUse.repositoryId, repositoryId), eq(poolUse.baseRef, baseRef)));
  if (pools.length === 0) return;
  const rows = [...new Set(pools)].map((pool) => ({ pool, installationId, repositoryId, baseRef }));
  await tx.insert(poolUse).values(rows).onConflictDoNothing();
}

/** Whether a pool is registered for a repository and the policy of one of its branches names it. */
export async function servesRepository(reader: Reader, pool: string, repositoryId: string): Promise<boolean> {
  const { rows } = await reader.execute<{ found: boolean }>(sql`
    select exists (
      select from pool_use u join resident_scope s on s.pool = u.pool and s.installation_id = u.installation_id
      where u.pool = ${pool} and u.repository_id = ${repositoryId}
        and (s.repositories is null or s.repositories ? ${repositoryId})) as found`);
  return rows[0]?.found === true;
}

/** Which of some pools are registered for a repository. */
export async function listRegistered(
  reader: Reader,
  pools: readonly string[],
  of: { readonly installationId: string; readonly repositoryId: string },
): Promise<string[]> {
  if (pools.length === 0) return [];
  const { rows } = await reader.execute<{ pool: string }>(sql`
    select pool from resident_scope
    where pool = any(${sql.param(pools)}::text[]) and installation_id = ${of.installationId}
      and (repositories is null or repositories ? ${of.repositoryId})
    order by pool`);
  return rows.map((row) => row.pool);
}

/** Base branches that name a pool, of repositories that cannot work yet (RUN-9). */
export async function listUnready(
  reader: Reader,
  pool: string,
): Promise<{ readonly repositoryId: string; readonly baseRef: string }[]> {
  const { rows } = await reader.execute<{ id: string; base_ref: string }>(sql`
    select r.id::text as id, u.base_ref from pool_use u join repository r on r.id = u.repository_id
    where u.pool = ${pool} and r.setup_cause is not null and r.status = 'active' order by r.id, u.base_ref`);
  return rows.map((row) => ({ repositoryId: row.id, baseRef: row.base_ref }));
}

/** A repository where a runner of a pool finds a ticket; `tag` orders them, `servedAt` is its installation's. */
export interface PoolPlace {
  readonly installationId: string;
  readonly repositoryId: string;
  readonly tag: number;
  readonly servedAtMs: number | null;
}

/**
 * Where a pool has work, and by installation where a look that was cut short goes on (LSE-1). `full` are installations
 * whose providers count as well while none of their slots is free.
 */
export async function listPoolPlaces(
  reader: Reader,
  pool: string,
  after: ReadonlyMap<string, string>,
  most: number,
  full: readonly string[] = [],
): Promise<{ readonly places: readonly PoolPlace[]; readonly after: ReadonlyMap<string, string> }> {
  const { rows } = await reader.$client.query<{
    installation_id: string;
    repository_id: string;
    tag: string | null;
    served_at: Date | null;
  }>({
    name: 'pool-places',
    text: 'select * from pool_places($1, $2::bigint[], $3::bigint[], $4, $5::bigint[])',
    values: [pool, [...after.keys()], [...after.values()], most, [...full]],
  });
  const next = new Map<string, string>();
  const places: PoolPlace[] = [];
  for (const row of rows) {
    if (row.tag === null) next.set(row.installation_id, row.repository_id);
    else
      places.push({
        installationId: row.installation_id,
        repositoryId: row.repository_id,
        tag: Number(row.tag),
        servedAtMs: row.served_at?.getTime() ?? null,
      });
  }
  return { places, after: next };
}

/** Notes that installations were given tickets by a pool now, the last of the list last. */
export async function markServed(
  reader: Reader,
  pool: string,
  installations: readonly string[],
): Promise<void> {
  await reader.execute(sql`
    update resident_scope s set served_at = cs_now() + o.nth * interval '1 millisecond'
    from unnest(${sql.param(installations)}::bigint[]) with ordinality as o(id, nth)
    where s.pool = ${pool} and s.installation_id = o.id`);
}

/** What a runner of a resident pool could take now. */
export interface ResidentRoom {
  readonly pool: string;
  readonly runner: string;
  readonly capacity: number;
  readonly leased: number;
  /** Its container runtime, where it takes verify commands (VER-1). */
  readonly runtime: string | null;
}

/** Live runners of some resident pools, or of all (null), with what they hold (POOL-1). */
export async function listResidentRooms(
  reader: Reader,
  pools: readonly string[] | null,
  freshMs: number,
): Promise<ResidentRoom[]> {
  if (pools?.length === 0) return [];
  const named = pools === null ? sql`true` : sql`r.pool = any(${sql.param(pools)}::text[])`;
  const { rows } = await reader.execute<{
    pool: string;
    id: string;
    capacity: number;
    runtime: string | null;
    leased: number;
  }>(sql`
    select r.pool, r.id, r.capacity, r.runtime, (select count(*) from lease l where l.runner_id = r.id and l.state = 'live')::int
      + (select count(*) from receipt_lease l where l.runner_id = r.id and l.ended_at is null)::int as leased
    from runner r
    where ${named} and r.repository_id is null and r.ended_at is null
      and r.heartbeat_at > cs_now() - ${freshMs} * interval '1 millisecond'
    order by r.pool, r.started_at, r.id`);
  return rows.map(({ id, ...row }) => ({ ...row, runner: id }));
}
