/** Sessions and the slots they take (ADM-1). */
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

/** Adds an admitted session; false when its id is taken. */
export async function addSession(
  tx: Tx,
  values: Omit<typeof session.$inferInsert, 'state' | 'admittedAt'>,
): Promise<boolean> {
  const added = await tx
    .insert(session)
    .values({ ...values, state: 'admitted', admittedAt: sql`cs_now()` })
    .onConflictDoNothing()
    .returning({ id: session.id });
  return added.length > 0;
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

/** Ends an admitted session with its usage; false when it was over. */
export async function endSessionRow(
  tx: Tx,
  id: string,
  end: Pick<Session, 'end' | 'detail' | 'tokensIn' | 'tokensOut' | 'costMicro'>,
): Promise<boolean> {
  const ended = await tx
    .update(session)
    .set({ ...end, state: 'ended', endedAt: sql`cs_now()` })
    .where(and(eq(session.id, id), eq(session.state, 'admitted')))
    .returning({ id: session.id });
  return ended.length > 0;
}
