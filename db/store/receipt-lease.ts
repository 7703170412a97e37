/** Leases of receipts (VER-1, LSE-3): each conditional statement decides by product time. */
import { and, asc, eq, inArray, isNull, or, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { receipt, receiptLease } from '../schema/receipt.ts';
import type { LeaseProof } from './lease.ts';
import type { StoredReceipt } from './receipt.ts';

/** A lease of a receipt as stored. */
export type ReceiptLease = typeof receiptLease.$inferSelect;

/** The lease of that id, or null. */
export async function findReceiptLease(reader: Reader, id: string): Promise<ReceiptLease | null> {
  const [found] = await reader.select().from(receiptLease).where(eq(receiptLease.id, id)).limit(1);
  return found ?? null;
}

const holds = (proof: LeaseProof) =>
  and(
    eq(receiptLease.id, proof.id),
    eq(receiptLease.runnerId, proof.runnerId),
    eq(receiptLease.tokenHash, proof.tokenHash),
    eq(receiptLease.grant, proof.grant),
    eq(receiptLease.state, 'live'),
    sql`${receiptLease.expiresAt} > cs_now()`,
  );

/** A heartbeat: one conditional update; null when the lease is not the caller's, not live or past its time (LSE-3). */
export async function renewReceiptLease(
  reader: Reader,
  proof: LeaseProof,
  ttlMs: number,
): Promise<ReceiptLease | null> {
  const [renewed] = await reader
    .update(receiptLease)
    .set({ expiresAt: sql`cs_now() + ${ttlMs} * interval '1 millisecond'` })
    .where(holds(proof))
    .returning();
  return renewed ?? null;
}

/** Locks a lease that its proof still holds, for submit and return; null when it does not. */
export async function lockReceiptLease(tx: Tx, proof: LeaseProof): Promise<ReceiptLease | null> {
  const [held] = await tx.select().from(receiptLease).where(holds(proof)).limit(1).for('update');
  return held ?? null;
}

/**
 * The start's own condition: the lease as in `lockReceiptLease`, of the run's present generation and head (CTL-2). It says
 * when it was started; a repeat changes nothing.
 */
export async function startReceiptLease(tx: Tx, proof: LeaseProof): Promise<ReceiptLease | null> {
  const [started] = await tx
    .update(receiptLease)
    .set({ startedAt: sql`coalesce(${receiptLease.startedAt}, cs_now())` })
    .where(
      and(
        holds(proof),
        sql`exists (select from run where run.id = ${receiptLease.runId} and run.status = 'open'
          and run.generation = ${receiptLease.generation} and run.head = ${receiptLease.head})`,
      ),
    )
    .returning();
  return started ?? null;
}

/** Locks a lease that nobody said the end of yet, live or revoked; null when it is over. */
export async function lockOpenReceiptLease(tx: Tx, id: string): Promise<ReceiptLease | null> {
  const [held] = await tx
    .select()
    .from(receiptLease)
    .where(and(eq(receiptLease.id, id), isNull(receiptLease.endedAt)))
    .for('update');
  return held ?? null;
}

/** Ends a lease and frees its receipt. */
export async function endReceiptLease(
  tx: Tx,
  lease: ReceiptLease,
  end: { readonly state: ReceiptLease['state']; readonly result: string | null },
): Promise<void> {
  await tx
    .update(receiptLease)
    .set({ ...end, endedAt: sql`cs_now()` })
    .where(eq(receiptLease.id, lease.id));
  await tx
    .update(receipt)
    .set({ leaseId: null })
    .where(
      and(
        eq(receipt.runId, lease.runId),
        eq(receipt.blockId, lease.blockId),
        eq(receipt.id, lease.receiptId),
        eq(receipt.leaseId, lease.id),
      ),
    );
}

/** Keeps the digest of the first refused result of a lease; false when one was kept before. */
export async function keepReceiptRefusal(tx: Tx, id: string, digest: string): Promise<boolean> {
  const kept = await tx
    .update(receiptLease)
    .set({ refused: digest })
    .where(and(eq(receiptLease.id, id), isNull(receiptLease.refused)))
    .returning({ id: receiptLease.id });
  return kept.length > 0;
}

/** Revokes the live leases of runs: their runners are told at the next heartbeat (CTL-2, CTL-5). */
export async function revokeReceiptLeases(tx: Tx, runIds: readonly string[]): Promise<number> {
  if (runIds.length === 0) return 0;
  const revoked = await tx
    .update(receiptLease)
    .set({ state: 'revoked' })
    .where(and(inArray(receiptLease.runId, [...runIds]), eq(receiptLease.state, 'live')))
    .returning({ id: receiptLease.id });
  return revoked.length;
}

/** Leases of a runner whose end nobody said yet. */
export async function listReceiptLeasesOfRunner(reader: Reader, runnerId: string): Promise<ReceiptLease[]> {
  return reader
    .select()
    .from(receiptLease)
    .where(and(eq(receiptLease.runnerId, runnerId), isNull(receiptLease.endedAt)))
    .orderBy(asc(receiptLease.id));
}

/** Leases whose receipts wait for a word on their end: past their time, revoked, or of runners that ended; at most `limit`. */
export async function listLostReceiptLeases(reader: Reader, limit: number): Promise<ReceiptLease[]> {
  return reader
    .select()
    .from(receiptLease)
    .where(
      and(
        isNull(receiptLease.endedAt),
        or(
          eq(receiptLease.state, 'revoked'),
          sql`${receiptLease.expiresAt} <= cs_now()`,
          sql`exists (select from runner w where w.id = ${receiptLease.runnerId} and w.ended_at is not null)`,
        ),
      ),
    )
    .orderBy(asc(receiptLease.runId), asc(receiptLease.id))
    .limit(limit);
}

/** As `shortenLeases` for tickets: a clock that stepped back lengthens nothing (case 78). */
export async function shortenReceiptLeases(reader: Reader, ttlMs: number): Promise<void> {
  const most = sql`cs_now() + ${ttlMs} * interval '1 millisecond'`;
  await reader
    .update(receiptLease)
    .set({ expiresAt: most })
    .where(and(isNull(receiptLease.endedAt), sql`${receiptLease.expiresAt} > ${most} + interval '1 second'`));
}

/** Removes leases that were over for `days` days. */
export async function pruneReceiptLeases(reader: Reader, days: number): Promise<void> {
  await reader
    .delete(receiptLease)
    .where(sql`${receiptLease.endedAt} < cs_now() - ${days} * interval '1 day'`);
}

/** The receipt of a lease as stored. */
export async function findLeasedReceipt(tx: Tx, lease: ReceiptLease): Promise<StoredReceipt | null> {
  const [found] = await tx
    .select()
    .from(receipt)
    .where(
      and(
        eq(receipt.runId, lease.runId),
        eq(receipt.blockId, lease.blockId),
        eq(receipt.id, lease.receiptId),
      ),
    );
  return found ?? null;
}
