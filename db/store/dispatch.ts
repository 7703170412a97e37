/** Dispatches of workflow pools: intent, call, effect (POOL-4). */
import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { dispatch } from '../schema/dispatch.ts';

/** A dispatch as stored. */
export type Dispatch = typeof dispatch.$inferSelect;

/** States in which a runner may still come. */
export const WAITING_DISPATCH = ['intended', 'sent', 'ambiguous'] as const;

/** Records the intent of a dispatch that somebody must have answered within `dueMs`. */
export async function addDispatch(
  tx: Tx,
  values: Pick<
    Dispatch,
    'id' | 'installationId' | 'repositoryId' | 'runId' | 'pool' | 'workflow' | 'generation' | 'nonceHash'
  >,
  dueMs: number,
): Promise<void> {
  await tx.insert(dispatch).values({
    ...values,
    state: 'intended',
    createdAt: sql`cs_now()`,
    dueAt: sql`cs_now() + ${dueMs} * interval '1 millisecond'`,
  });
}

/** Records what the call came to, unless a runner or the reaper was faster. */
export async function markDispatch(
  tx: Reader,
  id: string,
  to: {
    readonly state: 'sent' | 'ambiguous' | 'failed';
    readonly workflowRun: string | null;
    readonly detail: string | null;
  },
): Promise<boolean> {
  const done = await tx
    .update(dispatch)
    .set({
      state: to.state,
      workflowRun: sql`coalesce(${dispatch.workflowRun}, ${to.workflowRun}::bigint)`,
      attempt: to.workflowRun === null ? dispatch.attempt : sql`coalesce(${dispatch.attempt}, 1)`,
      detail: to.detail,
      ...(to.state === 'failed' ? { dueAt: null, endedAt: sql`cs_now()` } : {}),
    })
    .where(and(eq(dispatch.id, id), eq(dispatch.state, 'intended')))
    .returning({ id: dispatch.id });
  return done.length > 0;
}

/** The dispatch of that id, or null. */
export async function findDispatch(reader: Reader, id: string): Promise<Dispatch | null> {
  const [found] = await reader.select().from(dispatch).where(eq(dispatch.id, id)).limit(1);
  return found ?? null;
}

/** Locks the dispatch of a repository that a nonce names; null when there is none. */
export async function lockDispatchOfNonce(
  tx: Tx,
  repositoryId: string,
  nonceHash: Buffer,
): Promise<Dispatch | null> {
  const [found] = await tx
    .select()
    .from(dispatch)
    .where(and(eq(dispatch.repositoryId, repositoryId), eq(dispatch.nonceHash, nonceHash)))
    .for('update');
  return found ?? null;
}

/** Locks the dispatch that became a workflow run; null when none is known to. */
export async function lockDispatchOfWorkflow(
  tx: Tx,
  repositoryId: string,
  workflowRun: string,
): Promise<Dispatch | null> {
  const [found] = await tx
    .select()
    .from(dispatch)
    .where(and(eq(dispatch.repositoryId, repositoryId), eq(dispatch.workflowRun, workflowRun)))
    .for('update');
  return found ?? null;
}

/** Binds a dispatch to the workflow run that brought its nonce, once; false when it is bound to another or over. */
export async function answerDispatch(
  tx: Tx,
  id: string,
  workflowRun: string,
  attempt: number,
): Promise<boolean> {
  const done = await tx
    .update(dispatch)
    .set({ state: 'answered', workflowRun, attempt, dueAt: null })
    .where(
      and(
        eq(dispatch.id, id),
        inArray(dispatch.state, ['intended', 'sent', 'ambiguous', 'answered', 'missed']),
        sql`(${dispatch.workflowRun} is null or ${dispatch.workflowRun} = ${workflowRun}::bigint)`,
        sql`(${dispatch.attempt} is null or ${dispatch.attempt} = ${attempt})`,
      ),
    )
    .returning({ id: dispatch.id });
  return done.length > 0;
}

/** Ends a dispatch; false when it was over. */
export async function endDispatch(
  tx: Tx,
  id: string,
  state: 'done' | 'missed' | 'failed',
  detail: string | null,
): Promise<boolean> {
  const done = await tx
    .update(dispatch)
    .set({ state, detail, dueAt: null, endedAt: sql`cs_now()` })
    .where(and(eq(dispatch.id, id), inArray(dispatch.state, ['intended', 'sent', 'ambiguous', 'answered'])))
    .returning({ id: dispatch.id });
  return done.length > 0;
}

/** Dispatches of a repository that are not over, oldest first. */
export async function listOpenDispatches(reader: Reader, repositoryId: string): Promise<Dispatch[]> {
  return reader
    .select()
    .from(dispatch)
    .where(
      and(
        eq(dispatch.repositoryId, repositoryId),
        inArray(dispatch.state, [...WAITING_DISPATCH, 'answered']),
        isNull(dispatch.endedAt),
      ),
    )
    .orderBy(asc(dispatch.createdAt), asc(dispatch.id));
}

/** How many dispatches of a repository were planned in the last `withinMs`, whatever became of them. */
export async function countRecentDispatches(
  reader: Reader,
  repositoryId: string,
  withinMs: number,
): Promise<number> {
  return reader.$count(
    dispatch,
    and(
      eq(dispatch.repositoryId, repositoryId),
      sql`${dispatch.createdAt} > cs_now() - ${withinMs} * interval '1 millisecond'`,
    ),
  );
}

/** Repositories of which at least `n` dispatches were planned in the last `withinMs`. */
export async function listHurried(reader: Reader, withinMs: number, n: number): Promise<string[]> {
  const rows = await reader
    .select({ id: dispatch.repositoryId })
    .from(dispatch)
    .where(sql`${dispatch.createdAt} > cs_now() - ${withinMs} * interval '1 millisecond'`)
    .groupBy(dispatch.repositoryId)
    .having(sql`count(*) >= ${n}`);
  return rows.map((row) => row.id);
}

/** Dispatches that nobody answered in time, oldest first, at most `limit`. */
export async function listDueDispatches(reader: Reader, limit: number): Promise<Dispatch[]> {
  return reader
    .select()
    .from(dispatch)
    .where(sql`${dispatch.dueAt} <= cs_now()`)
    .orderBy(asc(dispatch.dueAt))
    .limit(limit);
}

/** Repositories of installations with dispatches that are not over. */
export async function listDispatching(reader: Reader, installationIds: readonly string[]): Promise<string[]> {
  const rows = await reader
    .selectDistinct({ id: dispatch.repositoryId })
    .from(dispatch)
    .where(
      and(
        inArray(dispatch.installationId, [...installationIds]),
        inArray(dispatch.state, [...WAITING_DISPATCH, 'answered']),
      ),
    )
    .orderBy(asc(dispatch.repositoryId));
  return rows.map((row) => row.id);
}
