/** Leases (LSE-1, LSE-3): each conditional statement decides by product time. */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { lease } from '../schema/lease.ts';

/** A lease as stored. */
export type Lease = typeof lease.$inferSelect;

/** A lease as granted. */
export interface Granted {
  readonly leaseId: string;
  readonly ticketId: string;
  readonly grant: number;
  readonly expiresAt: Date;
  readonly sessionId: string | null;
}

/**
 * LSE-1: grants tickets of one repository to one runner, at most as many as ids are given, in one
 * statement and without waiting for anybody. Ids, token hashes and session ids are used in order.
 */
export async function takeLeases(
  reader: Reader,
  input: {
    readonly runnerId: string;
    readonly installationId: string;
    readonly repositoryId: string;
    readonly runId: string | null;
    readonly ids: readonly string[];
    readonly tokenHashes: readonly Buffer[];
    readonly sessionIds: readonly string[];
    readonly ttlMs: number;
  },
): Promise<Granted[]> {
  const { rows } = await reader.$client.query<{
    lease_id: string;
    ticket_id: string;
    grant_no: number;
    expires_at: Date;
    session_id: string | null;
  }>({
    // a name keeps the statement prepared on its connection
    name: 'take-leases',
    text: "select * from lease_tickets($1, $2, $3, $4, $5::text[], $6::bytea[], $7::text[], $8 * interval '1 millisecond')",
    values: [
      input.runnerId,
      input.installationId,
      input.repositoryId,
      input.runId,
      input.ids,
      input.tokenHashes.map((hash) => `\\x${hash.toString('hex')}`),
      input.sessionIds,
      input.ttlMs,
    ],
  });
  return rows.map((row) => ({
    leaseId: row.lease_id,
    ticketId: row.ticket_id,
    grant: row.grant_no,
    expiresAt: row.expires_at,
    sessionId: row.session_id,
  }));
}

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
export async function markAdmitted(tx: Tx, proof: LeaseProof): Promise<Lease | null> {
  const [admitted] = await tx
    .update(lease)
    .set({ admitted: true })
    .where(
      and(
        holds(proof),
        eq(lease.recalled, false),
        sql`${lease.generation} = (select generation from run where id = ${lease.runId} and status = 'open')`,
      ),
    )
    .returning();
  return admitted ?? null;
}

/** What becomes of a ticket when its lease ends. */
export interface Settlement {
  readonly leaseState: 'ended' | 'returned' | 'expired' | 'revoked' | 'superseded';
  readonly ticketState: 'pending' | 'ended' | 'superseded' | 'cancelled';
  readonly front: boolean;
  readonly notBeforeMs: number | null;
  readonly losses: number;
  readonly timeouts: number;
  readonly transients: number;
  readonly suspect: boolean;
  readonly end: string | null;
  readonly verdict: string | null;
  readonly partial: boolean;
  readonly result: string | null;
  readonly reason: string | null;
  readonly seq: number | null;
}

/**
 * Ends a live lease with everything that hangs on it: slots, sessions, ticket, the held ticket of
 * the same cell, the lane. `notBeforeMs` counts from now. False: it was not live any more.
 */
export async function settleLease(tx: Reader, id: string, to: Settlement): Promise<boolean> {
  const { rows } = await tx.$client.query<{ done: boolean }>({
    name: 'settle-lease',
    text: `select settle_lease($1, $2, $3, $4,
      case when $5::float8 is null then null else cs_now() + $5::float8 * interval '1 millisecond' end,
      $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) as done`,
    values: [
      id,
      to.leaseState,
      to.ticketState,
      to.front,
      to.notBeforeMs,
      to.losses,
      to.timeouts,
      to.transients,
      to.suspect,
      to.end,
      to.verdict,
      to.partial,
      to.result,
      to.reason,
      to.seq,
    ],
  });
  return rows[0]?.done === true;
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
