/** Operational reasons of a run: what holds it that no row proves (GAT-1). A step sets and clears its own codes. */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { reason } from '../schema/run.ts';

/** A reason as it stands: product times in milliseconds since the epoch. */
export interface StoredReason {
  readonly code: string;
  readonly sinceMs: number;
  readonly dueAtMs: number | null;
  readonly detail: string | null;
}

/** A reason to set. `dueAtMs` is a moment of product time; `dueInMs` counts from now and never moves a deadline that stands. */
export type NewReason = {
  readonly code: string;
  readonly detail: string | null;
} & ({ readonly dueAtMs: number | null } | { readonly dueInMs: number });

/**
 * Sets a reason; one that stands keeps its `since`. True when anything a person reads or the gate
 * weighs changed: the caller then enqueues decide-gate in the same transaction.
 */
export async function setReason(tx: Tx, runId: string, value: NewReason): Promise<boolean> {
  const moved = 'dueInMs' in value;
  const due = moved
    ? sql`cs_now() + ${value.dueInMs} * interval '1 millisecond'`
    : value.dueAtMs === null
      ? sql`null::timestamptz`
      : sql`to_timestamp(${value.dueAtMs}::float8 / 1000)`;
  // dueInMs: a step that fails again and again must not push its own deadline away
  const kept = moved ? sql`coalesce(${reason.dueAt}, excluded.due_at)` : sql`excluded.due_at`;
  const changed = await tx
    .insert(reason)
    .values({ runId, code: value.code, since: sql`cs_now()`, dueAt: due, detail: value.detail })
    .onConflictDoUpdate({
      target: [reason.runId, reason.code],
      set: { dueAt: kept, detail: sql`excluded.detail` },
      setWhere: sql`(${reason.dueAt}, ${reason.detail}) is distinct from (${kept}, excluded.detail)`,
    })
    .returning({ code: reason.code });
  return changed.length > 0;
}

/** Clears a reason; true when it stood. */
export async function clearReason(tx: Tx, runId: string, code: string): Promise<boolean> {
  const gone = await tx
    .delete(reason)
    .where(and(eq(reason.runId, runId), eq(reason.code, code)))
    .returning({ code: reason.code });
  return gone.length > 0;
}

/** Clears a reason on all live runs of a repository, `but` for these; the runs on which it stood. */
export async function clearReasonEverywhere(
  tx: Tx,
  repositoryId: string,
  code: string,
  but: readonly string[] = [],
): Promise<string[]> {
  const gone = await tx
    .delete(reason)
    .where(
      and(
        eq(reason.code, code),
        sql`${reason.runId} in (select id from run where repository_id = ${repositoryId} and status in ('open', 'paused', 'stopped'))`,
        sql`${reason.runId} <> all(${sql.param(but)}::text[])`,
      ),
    )
    .returning({ run: reason.runId });
  return gone.map((one) => one.run);
}

/** The reasons of a run by code. */
export async function listReasons(reader: Reader, runId: string): Promise<StoredReason[]> {
  const rows = await reader.select().from(reason).where(eq(reason.runId, runId)).orderBy(asc(reason.code));
  return rows.map((row) => ({
    code: row.code,
    sinceMs: row.since.getTime(),
    dueAtMs: row.dueAt?.getTime() ?? null,
    detail: row.detail,
  }));
}
