/** The summary of a block's check run: the gate's report, narrowed to what is the block's (PUB-1). */
import type { Shows } from '../finding/show.ts';
import type { BlockVerdict } from '../gate/block.ts';
import { pathKey, type WirePath } from '../path.ts';
import { severityRank } from '../run-state/coverage.ts';
import type { RunState } from '../run-state/state.ts';
import { makeReport, type Report, type Texts } from './report.ts';

/** What a person reads of one block. */
export function makeBlockReport(
  state: RunState,
  verdict: BlockVerdict,
  texts: Texts,
  rest: Pick<Report, 'published' | 'places'>,
  shows?: Shows,
): Report {
  const { hidden: _, ...whole } = makeReport(state, verdict.decision, texts, { ...rest, shared: [] }, shows);
  const own = ({ path }: { readonly path: WirePath }) => verdict.paths.has(pathKey(path));
  return {
    ...whole,
    block: { id: verdict.id, title: texts.get(verdict.title) ?? null },
    blocks: [],
    notes: (whole.notes ?? []).filter((note) => note.block === verdict.id),
    findings: whole.findings.filter(own),
    missing: whole.missing.filter(own),
    unreviewed: whole.unreviewed.filter(own),
    // what a run costs, and what came and went in it, is the gate's to tell
    usage: { sessions: 0, tokensIn: 0, tokensOut: 0, costMicro: 0, ms: 0 },
    since: null,
  };
}

/** References of the texts that it shows; `most` findings at most, worst first. */
export function blockReportRefs(state: RunState, verdict: BlockVerdict, most: number): string[] {
  const findings = [...state.findings.values()]
    .filter((finding) => finding.state !== 'fixed' && verdict.paths.has(pathKey(finding.path)))
    .sort((a, b) => severityRank(a.severity) - severityRank(b.severity) || a.number - b.number);
  return [verdict.title, ...findings.slice(0, most).map((finding) => finding.title)];
}
