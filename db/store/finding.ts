/** Findings of a run: a projection of the finding rows, one per (run, path, fingerprint) (REV-5, FND-1). */
import { createHash } from 'node:crypto';
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { RowData } from '../../app/domain/ledger/row-kinds.ts';
import { decodePath, encodePath, pathKey, type WirePath } from '../../app/domain/path.ts';
import type { Reader, Tx } from '../client.ts';
import { type FindingDismissals, finding } from '../schema/finding.ts';

/** The one state a finding is in (FND-1). */
export type FindingState = 'open' | 'answered' | 'fixed' | 'dismissed' | 'ungrounded' | 'withdrawn';

/** A finding as projected. Texts are SHA-256 references into the erasable store. */
export interface StoredFinding {
  readonly runId: string;
  /** Shown as F<number>. */
  readonly number: number;
  readonly fingerprint: string;
  readonly path: WirePath;
  readonly side: 'head' | 'base';
  readonly startLine: number;
  readonly endLine: number;
  readonly severity: 'critical' | 'high' | 'medium' | 'low' | 'info';
  readonly lens: string;
  readonly state: FindingState;
  readonly reviewer: string;
  /** Whether a command reviewer raised it: only then does its silence on new content end it (RND-1). */
  readonly command: boolean;
  readonly ticketId: string;
  readonly key: string;
  readonly blob: string | null;
  readonly title: string;
  readonly body: string;
  readonly quote: string;
  readonly suggestion: string | null;
  /** The newest answer, a text reference (FND-2). */
  readonly answer: string | null;
  readonly dismissals: FindingDismissals;
  /** The row that put it into its state. */
  readonly seq: number;
  /** The last row that carried it to another path; null: none (REV-5). */
  readonly carriedSeq: number | null;
}

/** A finding as a report raises it: what people and renames made of it stays as it is. */
export type RaisedFinding = Omit<StoredFinding, 'answer' | 'dismissals' | 'carriedSeq'>;

type Row = typeof finding.$inferSelect;

function plain(row: Row): StoredFinding {
  return { ...row, path: encodePath(row.path) };
}

/**
 * Puts a raised finding: a new one, or a known fingerprint whose lines, ticket and texts are
 * refreshed. The number of a known one stays; the state is what is given (`open` again when its
 * content came back, FND-1). Returns the number in force. `blocks`: it may, by itself, and so is of its path's
 * history (ADM-3).
 */
export async function upsertFinding(tx: Tx, value: RaisedFinding, blocks = true): Promise<number> {
  const raised = {
    repositoryId: sql`(select repository_id from run where id = ${value.runId})`,
    raisedAt: sql`cs_now()`,
  };
  const row = { ...value, path: decodePath(value.path), ...(blocks ? raised : {}) };
  const { runId: _run, number: _number, path: _path, fingerprint: _print, ...rest } = row;
  const [put] = await tx
    .insert(finding)
    .values(row)
    .onConflictDoUpdate({ target: [finding.runId, finding.fingerprint], set: rest })
    .returning({ number: finding.number });
  return put?.number ?? value.number;
}

/** Puts the finding that a `finding.raised` row at `seq` tells of, in the state that the fold gives it; as `upsertFinding`. */
export function projectRaised(
  tx: Tx,
  runId: string,
  data: RowData<'finding.raised'>,
  state: FindingState,
  seq: number,
): Promise<number> {
  const value = {
    runId,
    number: data.finding,
    fingerprint: data.fingerprint,
    path: data.path,
    side: data.side,
    startLine: data.start_line,
    endLine: data.end_line,
    severity: data.severity,
    lens: data.lens,
    state,
    reviewer: data.reviewer,
    command: data.command,
    ticketId: data.ticket,
    key: data.key,
    blob: data.blob,
    title: data.title,
    body: data.body,
    quote: data.quote,
    suggestion: data.suggestion,
    seq,
  };
  return upsertFinding(tx, value, data.read_before === undefined);
}

/**
 * Which of these paths had, in any run of the repository, a finding of one of these severities in the last `days`
 * days of product time that nobody found to be none (ADM-3); by their keys.
 */
export async function listBlockedPaths(
  reader: Reader,
  repositoryId: string,
  paths: readonly WirePath[],
  severities: readonly string[],
  days: number,
): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  const digests = paths.map((path) => `\\x${createHash('sha256').update(decodePath(path)).digest('hex')}`);
  const { rows } = await reader.execute<{ path: Buffer }>(sql`
    select distinct path from finding
    where repository_id = ${repositoryId} and sha256(path) = any(${sql.param(digests)}::bytea[])
      and raised_at > cs_now() - ${days} * interval '1 day' and severity = any(${sql.param([...severities])}::text[])
      and state in ('open', 'answered', 'fixed')`);
  return new Set(rows.map((row) => pathKey(encodePath(row.path))));
}

/** The number the next new finding of a run takes; call it under the run's lock. */
export async function nextFindingNumber(tx: Tx, runId: string): Promise<number> {
  const [row] = await tx
    .select({ last: sql<number>`coalesce(max(${finding.number}), 0)::int` })
    .from(finding)
    .where(eq(finding.runId, runId));
  return (row?.last ?? 0) + 1;
}

/** Findings of a run that are `open` or `answered`, by number; those of one path when it is given. */
export async function listOpenFindings(
  reader: Reader,
  runId: string,
  path?: WirePath,
): Promise<StoredFinding[]> {
  const rows = await reader
    .select()
    .from(finding)
    .where(
      and(
        eq(finding.runId, runId),
        inArray(finding.state, ['open', 'answered']),
        path === undefined ? undefined : eq(finding.path, decodePath(path)),
      ),
    )
    .orderBy(asc(finding.number));
  return rows.map(plain);
}

/** Every finding of a run by number; those of one path when it is given. */
export async function listFindings(reader: Reader, runId: string, path?: WirePath): Promise<StoredFinding[]> {
  const rows = await reader
    .select()
    .from(finding)
    .where(and(eq(finding.runId, runId), path === undefined ? undefined : eq(finding.path, decodePath(path))))
    .orderBy(asc(finding.number));
  return rows.map(plain);
}

/** Puts a finding into another state, as the row `seq` says (FND-1). False when it does not exist. */
export async function endFinding(
  tx: Tx,
  runId: string,
  number: number,
  state: FindingState,
  seq: number,
): Promise<boolean> {
  const rows = await tx
    .update(finding)
    .set({ state, seq })
    .where(and(eq(finding.runId, runId), eq(finding.number, number)))
    .returning({ number: finding.number });
  return rows.length > 0;
}

/** Moves a finding to another path under the fingerprint it has there, as the row `seq` says (REV-5). */
export async function carryFinding(
  tx: Tx,
  runId: string,
  number: number,
  to: { readonly path: WirePath; readonly fingerprint: string; readonly seq: number },
): Promise<void> {
  await tx
    .update(finding)
    .set({ path: decodePath(to.path), fingerprint: to.fingerprint, carriedSeq: to.seq })
    .where(and(eq(finding.runId, runId), eq(finding.number, number)));
}

/** Keeps the answer to a finding, which is `answered` from then on (FND-2). */
export async function answerFinding(
  tx: Tx,
  runId: string,
  number: number,
  answer: string,
  seq: number,
): Promise<void> {
  await tx
    .update(finding)
    .set({ state: 'answered', answer, seq })
    .where(and(eq(finding.runId, runId), eq(finding.number, number)));
}

/** Keeps one more person's dismissal, after those there are (FND-2). */
export async function addDismissal(
  tx: Tx,
  runId: string,
  number: number,
  dismissal: FindingDismissals[number],
): Promise<void> {
  await tx
    .update(finding)
    .set({ dismissals: sql`${finding.dismissals} || ${JSON.stringify([dismissal])}::jsonb` })
    .where(and(eq(finding.runId, runId), eq(finding.number, number)));
}
