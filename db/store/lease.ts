/** Leases (LSE-1, LSE-3): each conditional statement decides by product time. */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { lease } from '../schema/lease.ts';

/** A lease as stored. */
export type Lease = typeof lease.$inferSelect;

/** The lease of that id, or null. */
export async function findLease(reader: Reader, id: string): Promise<Lease | null> {
  const [found] = await reader.select().from(lease).where(eq(lease.id, id)).limit(1);
  return found ?? null;
}

/** What a runner shows to act under a lease (LSE-3). */
export interface LeaseProof {
  readonly id: string;
  readonly runnerId: string;
  readonly tokenHash: Buffer;
  readonly grant: number;
}

const holds = (proof: LeaseProof) =>
  and(
    eq(lease.id, proof.id),
    eq(lease.runnerId, proof.runnerId),
    eq(lease.tokenHash, proof.tokenHash),
    eq(lease.grant, proof.grant),
    eq(lease.state, 'live'),
    sql`${lease.expiresAt} > cs_now()`,
    sql`(${lease.drainUntil} is null or ${lease.drainUntil} > cs_now())`,
  );

/** A heartbeat: one conditional update; null when the lease is not the caller's, not live or past its time (LSE-3). */
export async function renewLease(tx: Reader, proof: LeaseProof, ttlMs: number): Promise<Lease | null> {
  const [renewed] = await tx
    .update(lease)
    .set({ expiresAt: sql`cs_now() + ${ttlMs} * interval '1 millisecond'` })
    .where(holds(proof))
    .returning();
  return renewed ?? null;
}

/** Locks a lease that its proof still holds, for submit and return; null when it does not. */
export async function lockLease(tx: Tx, proof: LeaseProof): Promise<Lease | null> {
  const [held] = await tx.select().from(lease).where(holds(proof)).limit(1).for('update');
  return held ?? null;
}

/** Admission's own condition: the lease as in `lockLease`, not recalled, and of the run's present generation (CTL-2). */
export async function lockForAdmission(tx: Tx, proof: LeaseProof): Promise<Lease | null> {
  const [held] = await tx
    .select()
    .from(lease)
    .where(
      and(
        holds(proof),
        eq(lease.recalled, false),
        sql`${lease.generation} = (select generation from run where id = ${lease.runId} and status = 'open')`,
      ),
    )
    .limit(1)
    .for('update');
  return held ?? null;
}

/** Says that a session was admitted under a lease: from then on a recall comes too late (TKT-3). */
export async function markAdmitted(tx: Tx, id: string): Promise<void> {
  await tx
    .update(lease)
    .set({ admitted: true })
    .where(and(eq(lease.id, id), eq(lease.admitted, false)));
}

/** Keeps the digest of the first refused result of a lease; false when one was kept before. */
export async function keepRefusal(tx: Tx, id: string, digest: string): Promise<boolean> {
  const kept = await tx
    .update(lease)
    .set({ refused: digest })
    .where(and(eq(lease.id, id), sql`${lease.refused} is null`))
    .returning({ id: lease.id });
  return kept.length > 0;
}

/** Live leases of a runner. */
export async function listLeasesOfRunner(reader: Reader, runnerId: string): Promise<Lease[]> {
  return reader
    .select()
    .from(lease)
    .where(and(eq(lease.runnerId, runnerId), eq(lease.state, 'live')))
    .orderBy(asc(lease.id));
}

/** Live leases whose time is up, by expiry or by a drain that ended; at most `limit`. */
export async function listExpiredLeases(reader: Reader, limit: number): Promise<Lease[]> {
  return reader
    .select()
    .from(lease)
    .where(
      and(eq(lease.state, 'live'), sql`(${lease.expiresAt} <= cs_now() or ${lease.drainUntil} <= cs_now())`),
    )
    .orderBy(asc(lease.runId), asc(lease.id))
    .limit(limit);
}

/**
 * Takes from live leases what a clock that stepped back gave them: none ends later than a whole lease from
 * now (case 78). Returns how many that were.
 */
export async function shortenLeases(reader: Reader, ttlMs: number): Promise<number> {
  const most = sql`cs_now() + ${ttlMs} * interval '1 millisecond'`;
  const done = await reader
    .update(lease)
    .set({ expiresAt: most })
    .where(and(eq(lease.state, 'live'), sql`${lease.expiresAt} > ${most} + interval '1 second'`))
    .returning({ id: lease.id });
  return done.length;
}

/** Live leases of runners that ended, at most `limit` (LSE-6). */
export async function listLeasesOfGoneRunners(reader: Reader, limit: number): Promise<Lease[]> {
  const { rows } = await reader.execute<{ id: string }>(sql`
    select l.id from lease l join runner r on r.id = l.runner_id
    where l.state = 'live' and r.ended_at is not null limit ${limit}`);
  if (rows.length === 0) return [];
  return reader
    .select()
    .from(lease)
    .where(
      sql`${lease.id} = any(${sql.param(rows.map((row) => row.id))}::text[]) and ${lease.state} = 'live'`,
    )
    .orderBy(asc(lease.runId), asc(lease.id));
}

/** Locks a lease that is live, expired or not; null when it is not live any more. */
export async function lockLiveLease(tx: Tx, id: string): Promise<Lease | null> {
  const [held] = await tx
    .select()
    .from(lease)
    .where(and(eq(lease.id, id), eq(lease.state, 'live')))
    .for('update');
  return held ?? null;
}

/** Live leases by runner. */
export async function countLeasesOfRunners(
  reader: Reader,
  runnerIds: readonly string[],
): Promise<Map<string, number>> {
  if (runnerIds.length === 0) return new Map();
  const rows = await reader
    .select({ id: lease.runnerId, n: sql<number>`count(*)::int` })
    .from(lease)
    .where(and(sql`${lease.runnerId} = any(${sql.param(runnerIds)}::text[])`, eq(lease.state, 'live')))
    .groupBy(lease.runnerId);
  return new Map(rows.map((row) => [row.id, row.n]));
}

/** Asks the runner of a lease to give its ticket back; only while no session was admitted (TKT-3). False: too late. */
export async function recallLease(tx: Tx, id: string): Promise<boolean> {
  const done = await tx
    .update(lease)
    .set({ recalled: true })
    .where(and(eq(lease.id, id), eq(lease.state, 'live'), eq(lease.admitted, false)))
    .returning({ id: lease.id });
  return done.length > 0;
}

/** Removes leases and sessions that were over for `days` days. */
export async function pruneLeases(tx: Tx, days: number): Promise<number> {
  const { rows } = await tx.execute(sql`
    with gone as (delete from lease where state <> 'live' and ended_at < cs_now() - ${days} * interval '1 day' returning id)
    delete from session s using gone where s.lease_id = gone.id returning s.id`);
  return rows.length;
}

/** Live leases of a run by id, with whether a session was admitted under each. */
export async function listActiveLeaseStates(reader: Reader, runId: string): Promise<Map<string, boolean>> {
  const rows = await reader
    .select({ id: lease.id, admitted: lease.admitted })
    .from(lease)
    .where(and(eq(lease.runId, runId), eq(lease.state, 'live')));
  return new Map(rows.map((row) => [row.id, row.admitted]));
}
