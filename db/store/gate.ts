/** The gate's last decision of each run: a projection of `gate.decided` for what reads without the ledger. */
import { and, asc, eq, inArray, lte, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { gate } from '../schema/check.ts';
import { file } from '../schema/run.ts';
import { ticket } from '../schema/ticket.ts';

/** A decision as projected; times in milliseconds of product time. */
export interface StoredGate {
  readonly runId: string;
  readonly head: string;
  readonly conclusion: string;
  readonly digest: string;
  readonly seq: number;
  readonly decidedAtMs: number;
  readonly dueAtMs: number | null;
}

/** The last decision of a run, null before the first. */
export async function findGate(reader: Reader, runId: string): Promise<StoredGate | null> {
  const [row] = await reader.select().from(gate).where(eq(gate.runId, runId));
  if (row === undefined) return null;
  return {
    runId: row.runId,
    head: row.head,
    conclusion: row.conclusion,
    digest: row.digest,
    seq: row.seq,
    decidedAtMs: row.decidedAt.getTime(),
    dueAtMs: row.dueAt?.getTime() ?? null,
  };
}

/** Puts the decision that stands now, with the moment at which it has to be taken again. */
export async function putGate(tx: Tx, value: StoredGate): Promise<void> {
  const row = {
    runId: value.runId,
    head: value.head,
    conclusion: value.conclusion,
    digest: value.digest,
    seq: value.seq,
    decidedAt: new Date(value.decidedAtMs),
    dueAt: value.dueAtMs === null ? null : new Date(value.dueAtMs),
  };
  await tx.insert(gate).values(row).onConflictDoUpdate({ target: gate.runId, set: row });
}

/** Runs whose decision changes by itself and whose time has come, longest due first. */
export async function listDueGates(reader: Reader, limit: number): Promise<string[]> {
  const rows = await reader
    .select({ runId: gate.runId })
    .from(gate)
    .where(lte(gate.dueAt, sql`cs_now()`))
    .orderBy(asc(gate.dueAt))
    .limit(limit);
  return rows.map((row) => row.runId);
}

/** Marks a due decision as handed to a job, so that the next sweep does not hand it again before `againInMs`. */
export async function deferGate(reader: Reader, runId: string, againInMs: number): Promise<void> {
  await reader
    .update(gate)
    .set({ dueAt: sql`cs_now() + ${againInMs} * interval '1 millisecond'` })
    .where(eq(gate.runId, runId));
}

/**
 * How many tickets of keys that the present head wants wait for a runner or are being worked (a rerun is
 * one of them). What waits for another block is under no review and not counted.
 */
export async function countOpenTickets(reader: Reader, runId: string): Promise<number> {
  const [row] = await reader
    .select({ n: sql<number>`count(distinct ${ticket.id})::int` })
    .from(ticket)
    .innerJoin(file, and(eq(file.runId, ticket.runId), eq(file.key, ticket.key)))
    .where(
      and(
        eq(ticket.runId, runId),
        inArray(ticket.state, ['pending', 'leased', 'held']),
        sql`not (${ticket.state} = 'held' and exists (select from block b
          where b.run_id = ${ticket.runId} and b.id = ${file.blockId} and b.status = 'waiting'))`,
      ),
    );
  return row?.n ?? 0;
}
