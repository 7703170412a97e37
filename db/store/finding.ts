/** Findings of a run: a projection of the finding rows, one per (run, path, fingerprint) (REV-5, FND-1). */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { decodePath, encodePath, type WirePath } from '../../app/domain/path.ts';
import type { Reader, Tx } from '../client.ts';
import { finding } from '../schema/finding.ts';

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
  /** The row that put it into its state. */
  readonly seq: number;
}

type Row = typeof finding.$inferSelect;

function plain(row: Row): StoredFinding {
  return { ...row, path: encodePath(row.path) };
}

/**
 * Puts a raised finding: a new one, or a known fingerprint whose lines, ticket and texts are
 * refreshed. The number of a known one stays; the state is what is given (`open` again when its
 * content came back, FND-1). Returns the number in force.
 */
export async function upsertFinding(tx: Tx, value: StoredFinding): Promise<number> {
  const row: Row = { ...value, path: decodePath(value.path) };
  const { runId: _run, number: _number, path: _path, fingerprint: _print, ...rest } = row;
  const [put] = await tx
    .insert(finding)
    .values(row)
    .onConflictDoUpdate({ target: [finding.runId, finding.fingerprint], set: rest })
    .returning({ number: finding.number });
  return put?.number ?? value.number;
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
