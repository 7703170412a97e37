/** Sessions, the slots they take, and those that wait for one (ADM-1). */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { session } from '../schema/lease.ts';

/** A session as stored. */
export type Session = typeof session.$inferSelect;

/** Takes a free slot of a provider for a session; null when all are taken (ADM-1). */
export async function takeSlot(
  tx: Tx,
  installationId: string,
  provider: string,
  sessionId: string,
): Promise<number | null> {
  const { rows } = await tx.execute<{ no: number }>(sql`
    update slot set session_id = ${sessionId}
    where installation_id = ${installationId} and provider = ${provider} and no = (
      select no from slot where installation_id = ${installationId} and provider = ${provider} and session_id is null
      limit 1 for update skip locked)
    returning no`);
  return rows[0]?.no ?? null;
}

/** Frees the slot of a session; false when the session holds none. */
export async function freeSlot(
  tx: Tx,
  installationId: string,
  provider: string,
  sessionId: string,
): Promise<boolean> {
  const { rows } = await tx.execute(sql`
    update slot set session_id = null
    where installation_id = ${installationId} and provider = ${provider} and session_id = ${sessionId} returning no`);
  return rows.length > 0;
}

/** A session to add, less what the store sets itself. */
export type NewSession = Omit<typeof session.$inferInsert, 'turn' | 'seenAt' | 'admittedAt' | 'period'>;

/** Adds a session in its state; `period` is the month of product time. False when its id is taken. */
export async function addSession(tx: Tx, values: NewSession): Promise<boolean> {
  const added = await tx
    .insert(session)
    .values({
      ...values,
      period: sql`to_char(cs_now() at time zone 'UTC', 'YYYY-MM')`,
      seenAt: sql`cs_now()`,
      admittedAt: sql`cs_now()`,
    })
    .onConflictDoNothing()
    .returning({ id: session.id });
  return added.length > 0;
}

/** The session that waits for a slot for this reviewer and purpose under a lease, locked and seen; null: none does. */
export async function seeWaiting(
  tx: Tx,
  leaseId: string,
  reviewer: string,
  purpose: Session['purpose'],
): Promise<Session | null> {
  const [seen] = await tx
    .update(session)
    .set({ seenAt: sql`cs_now()` })
    .where(
      sql`${session.id} = (select id from session where lease_id = ${leaseId} and reviewer = ${reviewer}
        and purpose = ${purpose} and state = 'waiting' order by turn limit 1 for update)`,
    )
    .returning();
  return seen ?? null;
}

/** Whether somebody who still asks waits for a slot of that provider before `turn` (null: at all). */
export async function anyBefore(
  tx: Tx,
  installationId: string,
  provider: string,
  turn: number | null,
): Promise<boolean> {
  const { rows } = await tx.execute<{ found: boolean }>(sql`
    select exists (
      select from session where installation_id = ${installationId} and provider = ${provider} and state = 'waiting'
        and slot is null and seen_at > cs_now() - interval '1 minute' and (${turn}::bigint is null or turn < ${turn})) as found`);
  return rows[0]?.found === true;
}

/** A waiting session may start, with the slot it has now. */
export async function admitWaiting(tx: Tx, id: string, slot: number): Promise<void> {
  await tx
    .update(session)
    .set({
      state: 'admitted',
      slot,
      period: sql`to_char(cs_now() at time zone 'UTC', 'YYYY-MM')`,
      admittedAt: sql`cs_now()`,
    })
    .where(and(eq(session.id, id), eq(session.state, 'waiting')));
}

/** A session that may not start, by the name of the budget that is used up. */
export async function refuseSession(tx: Tx, id: string, detail: string): Promise<void> {
  await tx
    .update(session)
    .set({ state: 'refused', slot: null, settled: true, detail })
    .where(eq(session.id, id));
}

/** Lets go of slots that were handed to somebody who does not ask any more, at most `limit`; returns how many. */
export async function dropUnclaimed(tx: Tx, limit: number): Promise<number> {
  const { rows } = await tx.execute<{
    installation_id: string;
    provider: string;
    slot: number;
    id: string;
  }>(sql`
    delete from session where id in (
      select id from session where state = 'waiting' and seen_at <= cs_now() - interval '1 minute' limit ${limit} for update skip locked)
    returning id, installation_id, provider, slot`);
  for (const one of rows)
    if (one.slot !== null) await freeSlot(tx, one.installation_id, one.provider, one.id);
  return rows.length;
}

/** The session of that id, or null. */
export async function findSession(reader: Reader, id: string): Promise<Session | null> {
  const [found] = await reader.select().from(session).where(eq(session.id, id)).limit(1);
  return found ?? null;
}

/** Sessions of a lease, oldest first. */
export async function listSessions(reader: Reader, leaseId: string): Promise<Session[]> {
  return reader
    .select()
    .from(session)
    .where(eq(session.leaseId, leaseId))
    .orderBy(asc(session.admittedAt), asc(session.id));
}

/** What a session came to. */
export type SessionEnd = Pick<Session, 'end' | 'detail' | 'tokensIn' | 'tokensOut' | 'costMicro'> & {
  /** Whether the figures are its usage (ADM-2): without it the reservation stays its charge. */
  readonly known: boolean;
};

/**
 * Ends an admitted session with its usage, or tells the usage of one whose lease ended before it was known;
 * false when it was over and all of it was told.
 */
export async function endSessionRow(tx: Tx, id: string, { known, ...end }: SessionEnd): Promise<boolean> {
  const ended = await tx
    .update(session)
    .set({
      ...end,
      state: 'ended',
      endedAt: sql`coalesce(${session.endedAt}, cs_now())`,
      settled: sql`${session.provider} = 'command'`,
      ...(known ? { usageAt: sql`cs_now()` } : {}),
    })
    .where(
      and(
        eq(session.id, id),
        known
          ? sql`(${session.state} = 'admitted' or (${session.state} = 'ended' and ${session.usageAt} is null))`
          : eq(session.state, 'admitted'),
      ),
    )
    .returning({ id: session.id });
  return ended.length > 0;
}
