/** Receipts of verify commands (VER-2): projections of their rows; what a gate weighs is the rows themselves. */
import { and, eq, inArray, isNotNull, or, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { receipt } from '../schema/receipt.ts';
import { run } from '../schema/run.ts';

/** A receipt as stored; ids are decimal strings. */
export type StoredReceipt = typeof receipt.$inferSelect;

/** Receipts of a run on one head, by block and id. */
export async function listReceipts(reader: Reader, runId: string, head: string): Promise<StoredReceipt[]> {
  return reader
    .select()
    .from(receipt)
    .where(and(eq(receipt.runId, runId), eq(receipt.head, head)))
    .orderBy(receipt.blockId, receipt.id);
}

/** Adds a receipt that was reserved, or sets what a later row says of it. */
export async function putReceipt(
  tx: Tx,
  value: Omit<StoredReceipt, 'reservedAt' | 'rerunAfter' | 'leaseId' | 'grant' | 'losses' | 'notBefore'>,
): Promise<void> {
  const { state, why, workflowRun, attempt, job, seq } = value;
  await tx
    .insert(receipt)
    .values({ ...value, reservedAt: sql`cs_now()` })
    .onConflictDoUpdate({
      target: [receipt.runId, receipt.blockId, receipt.id],
      set: { state, why, workflowRun, attempt, job, seq },
    });
}

/** Stands for whichever attempt GitHub shows: of a run that ended without the job nobody knows one. */
const ANY_ATTEMPT = 2_147_483_647;

/** Asks for another attempt of these receipts, which are over; a later look at GitHub starts it. */
export async function askRerun(
  tx: Tx,
  runId: string,
  receipts: readonly { readonly blockId: string; readonly id: string }[],
): Promise<void> {
  for (const { blockId, id } of receipts)
    await tx
      .update(receipt)
      .set({ rerunAfter: sql`coalesce(${receipt.attempt}, ${ANY_ATTEMPT}::int)` })
      .where(and(eq(receipt.runId, runId), eq(receipt.blockId, blockId), eq(receipt.id, id)));
}

/** Takes back what was asked of these receipts, as it was read; what was asked since stands. */
export async function clearReruns(tx: Tx, asked: readonly StoredReceipt[]): Promise<void> {
  for (const { runId, blockId, id, rerunAfter } of asked) {
    if (rerunAfter === null) continue;
    await tx
      .update(receipt)
      .set({ rerunAfter: null })
      .where(
        and(
          eq(receipt.runId, runId),
          eq(receipt.blockId, blockId),
          eq(receipt.id, id),
          eq(receipt.rerunAfter, rerunAfter),
        ),
      );
  }
}

/** Ids of live runs with receipts on a commit that is their present head. */
export async function listRunsOfReceipts(
  reader: Reader,
  repositoryId: string,
  head: string,
): Promise<string[]> {
  const rows = await reader
    .selectDistinct({ id: receipt.runId })
    .from(receipt)
    .innerJoin(run, and(eq(run.id, receipt.runId), eq(run.toldHead, receipt.head)))
    .where(
      and(
        eq(receipt.repositoryId, repositoryId),
        eq(receipt.head, head),
        inArray(run.status, ['open', 'paused', 'stopped']),
      ),
    );
  return rows.map(({ id }) => id);
}

/** Ids of live runs of a repository whose present head has a receipt that did not pass: what an event said of it may be lost (VER-4). */
export async function listUnsettledRuns(reader: Reader, repositoryId: string): Promise<string[]> {
  const rows = await reader
    .selectDistinct({ id: run.id })
    .from(run)
    .innerJoin(receipt, and(eq(run.id, receipt.runId), eq(run.toldHead, receipt.head)))
    .where(
      and(
        eq(run.repositoryId, repositoryId),
        inArray(run.status, ['open', 'paused', 'stopped']),
        or(sql`${receipt.state} <> 'passed'`, isNotNull(receipt.rerunAfter)),
      ),
    );
  return rows.map(({ id }) => id);
}
