/** Findings of a run with their texts, the one state each is in, and the rows that brought it there. */

import { plain } from '../../domain/neutralise.ts';
import { showPath } from '../../domain/path.ts';
import { severityRank } from '../../domain/run-state/coverage.ts';
import type { Fact } from '../../domain/run-state/fact.ts';
import type { FindingFact, RunState } from '../../domain/run-state/state.ts';
import type { Texts } from '../../domain/summary/report.ts';

/** A finding for its page. Texts are null once erased. */
export interface FindingView {
  readonly number: number;
  readonly severity: FindingFact['severity'];
  readonly lens: string;
  readonly state: FindingFact['state'];
  readonly blocks: boolean;
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  readonly side: 'head' | 'base';
  readonly reviewer: string;
  readonly title: string | null;
  readonly body: string | null;
  readonly suggestion: string | null;
  readonly rows: readonly { readonly seq: number; readonly kind: string; readonly atMs: number }[];
}

/** Most findings of a page, open and worst first. */
const MOST = 200;

/** References of the texts of those findings. */
export function findingRefs(state: RunState): string[] {
  return order(state).flatMap((finding) => [
    finding.title,
    finding.body,
    ...(finding.suggestion === null ? [] : [finding.suggestion]),
  ]);
}

/** The findings, open and worst first; `rows` are verified, `blocking` are numbers. */
export function readFindings(
  state: RunState,
  blocking: readonly number[],
  rows: readonly Fact[],
  texts: Texts,
): FindingView[] {
  const blocks = new Set(blocking);
  const history = new Map<number, { seq: number; kind: string; atMs: number }[]>();
  for (const row of rows) {
    const number = numberOf(row);
    if (number === null) continue;
    const one = { seq: row.seq, kind: row.kind, atMs: Date.parse(row.at) };
    history.set(number, [...(history.get(number) ?? []), one]);
  }
  const text = (ref: string | null) => {
    const found = ref === null ? null : (texts.get(ref) ?? null);
    return found === null ? null : plain(found);
  };
  return order(state).map((finding) => ({
    number: finding.number,
    severity: finding.severity,
    lens: finding.lens,
    state: finding.state,
    blocks: blocks.has(finding.number),
    path: plain(showPath(finding.path)),
    startLine: finding.startLine,
    endLine: finding.endLine,
    side: finding.side,
    reviewer: finding.reviewer,
    title: text(finding.title),
    body: text(finding.body),
    suggestion: text(finding.suggestion),
    rows: history.get(finding.number) ?? [],
  }));
}

function order(state: RunState): FindingFact[] {
  const over = (finding: FindingFact) => (finding.state === 'open' || finding.state === 'answered' ? 0 : 1);
  return [...state.findings.values()]
    .sort(
      (a, b) =>
        over(a) - over(b) || severityRank(a.severity) - severityRank(b.severity) || a.number - b.number,
    )
    .slice(0, MOST);
}

/** The finding that a row is about. */
function numberOf(row: Fact): number | null {
  const { data } = row;
  return row.kind.startsWith('finding.') && 'finding' in data && typeof data.finding === 'number'
    ? data.finding
    : null;
}
