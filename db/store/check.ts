/** Check runs as we intend them and as GitHub has them (PUB-2): intent first, GitHub's id once known. */
import { and, asc, desc, eq, gte, lte, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { checkRun } from '../schema/check.ts';

/** What publishing is serialised by: one name on one commit of one repository. */
export interface CheckUnit {
  readonly repositoryId: string;
  readonly sha: string;
  readonly name: string;
}

/** Findings as annotations, in the order they are posted in, and those that could not be placed. */
export interface AnnotationPlan {
  readonly order: number[];
  readonly dropped: { finding: number; reason: string }[];
}

/** One check run of ours; `n` counts those of its unit from 1, the newest governs. */
export interface StoredCheck extends CheckUnit {
  readonly n: number;
  readonly runId: string;
  readonly githubId: string | null;
  readonly state: 'intended' | 'open' | 'concluded';
  readonly conclusion: string | null;
  readonly written: string | null;
  readonly wanted: string | null;
  readonly annotations: number;
  readonly plan: AnnotationPlan | null;
  readonly attempts: number;
  /** Code of the write that failed last, since when none went through; null when the last one did. */
  readonly fault: string | null;
  readonly failingSinceMs: number | null;
  readonly writtenAtMs: number | null;
  readonly dueAtMs: number | null;
  readonly seq: number | null;
}

type Row = typeof checkRun.$inferSelect;

function plain(row: Row): StoredCheck {
  const { writtenAt, dueAt, failingSince, publishedAt: _, ...rest } = row;
  const ms = (at: Date | null) => at?.getTime() ?? null;
  return { ...rest, writtenAtMs: ms(writtenAt), dueAtMs: ms(dueAt), failingSinceMs: ms(failingSince) };
}

const unitIs = (unit: CheckUnit) =>
  and(eq(checkRun.repositoryId, unit.repositoryId), eq(checkRun.sha, unit.sha), eq(checkRun.name, unit.name));

const checkIs = (unit: CheckUnit, n: number) => and(unitIs(unit), eq(checkRun.n, n));

/** Check runs of a unit, newest first. */
export async function listChecks(reader: Reader, unit: CheckUnit): Promise<StoredCheck[]> {
  const rows = await reader.select().from(checkRun).where(unitIs(unit)).orderBy(desc(checkRun.n));
  return rows.map(plain);
}

/** The newest check run of each (sha, name) that a run has published on. */
export async function listChecksOfRun(
  reader: Reader,
  repositoryId: string,
  runId: string,
): Promise<StoredCheck[]> {
  const rows = await reader
    .selectDistinctOn([checkRun.sha, checkRun.name])
    .from(checkRun)
    .where(and(eq(checkRun.repositoryId, repositoryId), eq(checkRun.runId, runId)))
    .orderBy(asc(checkRun.sha), asc(checkRun.name), desc(checkRun.n));
  return rows.map(plain);
}

/** Names of the check runs that we published on a commit. */
export async function listCheckNames(reader: Reader, repositoryId: string, sha: string): Promise<string[]> {
  const rows = await reader
    .selectDistinct({ name: checkRun.name })
    .from(checkRun)
    .where(and(eq(checkRun.repositoryId, repositoryId), eq(checkRun.sha, sha)))
    .orderBy(asc(checkRun.name));
  return rows.map((row) => row.name);
}

/** Commits the intent to create check run `n`, before GitHub is asked; `retryInMs` is when a sweep looks if we die. */
export async function intendCheck(
  tx: Tx,
  unit: CheckUnit,
  value: { n: number; runId: string; wanted: string; plan: AnnotationPlan | null; retryInMs: number },
): Promise<StoredCheck> {
  const [row] = await tx
    .insert(checkRun)
    .values({
      ...unit,
      n: value.n,
      runId: value.runId,
      state: 'intended',
      wanted: value.wanted,
      plan: value.plan,
      dueAt: inMs(value.retryInMs),
    })
    .returning();
  if (row === undefined) throw new Error('an insert without its row');
  return plain(row);
}

/** Takes down GitHub's id of an intended check run. */
export async function identifyCheck(
  reader: Reader,
  unit: CheckUnit,
  n: number,
  githubId: string,
): Promise<void> {
  await reader
    .update(checkRun)
    .set({
      githubId,
      state: 'open',
      ...WENT_THROUGH,
      publishedAt: sql`coalesce(${checkRun.publishedAt}, cs_now())`,
    })
    .where(and(checkIs(unit, n), eq(checkRun.state, 'intended')));
}

/** Says what is about to be written, so that a write that got lost is seen; `retryInMs` as in `intendCheck`. */
export async function wantCheck(
  reader: Reader,
  unit: CheckUnit,
  n: number,
  value: { runId: string; wanted: string; plan: AnnotationPlan | null; retryInMs: number },
): Promise<void> {
  await reader
    .update(checkRun)
    .set({ runId: value.runId, wanted: value.wanted, plan: value.plan, dueAt: inMs(value.retryInMs) })
    .where(checkIs(unit, n));
}

/** Takes down that GitHub shows what was wanted. `dueInMs` is when to look again, null for never. */
export async function writtenCheck(
  reader: Reader,
  unit: CheckUnit,
  n: number,
  value: {
    conclusion: string | null;
    written: string;
    annotations: number;
    seq: number | null;
    dueInMs: number | null;
    /** GitHub's id, where a create that was answered wrote everything at once. */
    githubId?: string;
  },
): Promise<void> {
  await reader
    .update(checkRun)
    .set({
      state: value.conclusion === null ? 'open' : 'concluded',
      conclusion: value.conclusion,
      written: value.written,
      annotations: value.annotations,
      seq: value.seq,
      ...(value.githubId === undefined ? {} : { githubId: value.githubId }),
      ...WENT_THROUGH,
      // a create that wrote everything is told here alone (GAT-6 asks when people could first see it)
      publishedAt: sql`coalesce(${checkRun.publishedAt}, cs_now())`,
      writtenAt: sql`cs_now()`,
      dueAt: value.dueInMs === null ? null : inMs(value.dueInMs),
    })
    .where(checkIs(unit, n));
}

/** Takes down how far the annotations of a check run got, or which were dropped from its plan. */
export async function advanceAnnotations(
  reader: Reader,
  unit: CheckUnit,
  n: number,
  value: { annotations: number; plan: AnnotationPlan | null },
): Promise<void> {
  await reader
    .update(checkRun)
    .set({ annotations: value.annotations, plan: value.plan })
    .where(checkIs(unit, n));
}

/** Waits: the sweep looks again in `dueInMs`; `fault` is the code of a write that failed, and counts it. */
export async function deferCheck(
  reader: Reader,
  unit: CheckUnit,
  n: number,
  dueInMs: number,
  fault: string | null,
): Promise<void> {
  await reader
    .update(checkRun)
    .set({
      dueAt: inMs(dueInMs),
      ...(fault === null
        ? {}
        : {
            attempts: sql`${checkRun.attempts} + 1`,
            fault,
            failingSince: sql`coalesce(${checkRun.failingSince}, cs_now())`,
          }),
    })
    .where(checkIs(unit, n));
}

/** Units of which a check run is due, longest due first. */
export async function listDueChecks(reader: Reader, limit: number): Promise<CheckUnit[]> {
  const rows = await reader
    .select({ repositoryId: checkRun.repositoryId, sha: checkRun.sha, name: checkRun.name })
    .from(checkRun)
    .where(lte(checkRun.dueAt, sql`cs_now()`))
    .orderBy(asc(checkRun.dueAt))
    .limit(limit);
  return rows;
}

/** Check runs of a run (null: of all) that could not be written `attempts` times in a row, longest failing first. */
export async function listStuckChecks(
  reader: Reader,
  runId: string | null,
  attempts: number,
  limit: number,
): Promise<StoredCheck[]> {
  const rows = await reader
    .select()
    .from(checkRun)
    .where(and(gte(checkRun.attempts, attempts), ...(runId === null ? [] : [eq(checkRun.runId, runId)])))
    .orderBy(asc(checkRun.failingSince), asc(checkRun.name))
    .limit(limit);
  return rows.map(plain);
}

const WENT_THROUGH = { attempts: 0, fault: null, failingSince: null };

const inMs = (ms: number) => sql`cs_now() + ${ms} * interval '1 millisecond'`;
