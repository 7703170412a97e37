/**
 * Carries findings to where renames took their content, ends those whose path left the change, and
 * raises again those whose content is back (REV-5, FND-1): rows and projection.
 */
import { carryFinding, endFinding, nextFindingNumber, projectRaised } from '../../../db/store/finding.ts';
import { readTexts } from '../../../db/store/text.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import { carryFindings, movesOf } from '../../domain/run-state/carry-findings.ts';
import { stateRaised } from '../../domain/run-state/fold.ts';
import { knownPaths, settleFindings } from '../../domain/run-state/settle-findings.ts';
import type { FindingFact, RunState } from '../../domain/run-state/state.ts';
import type { RunUnit } from '../append-rows.ts';
import type { HeadPlan } from './plan.ts';
import type { Truth } from './read.ts';
import type { Append } from './record.ts';

/** Records it; true when anything was written. */
export async function recordFindings(
  unit: RunUnit,
  append: Append,
  state: RunState,
  truth: Truth,
  plan: HeadPlan,
  rows: readonly AnyRow[],
): Promise<boolean> {
  const { tx, run } = unit;
  const { head } = truth.pull;
  const { findings, moved } = await carry(unit, append, state, truth, plan, rows);
  const { ended, raised, anew } = settleFindings(rows, findings, plan.files, moved);
  for (const { finding, reason } of ended) {
    const seq = append('finding.ended', null, { finding, state: 'fixed', reason, head, text: null });
    await endFinding(tx, run.id, finding, 'fixed', seq);
  }
  let next = anew.length === 0 ? 0 : await nextFindingNumber(tx, run.id);
  const again = [
    ...raised,
    ...anew.map(({ block, data }) => ({ block, data: { ...data, finding: next++ } })),
  ];
  for (const { block, data } of again) {
    const seq = append('finding.raised', block, data);
    await projectRaised(tx, run.id, data, stateRaised(findings.get(data.finding), data), seq);
  }
  return moved.size + ended.length + again.length > 0;
}

/** What renames carry, and the findings as they are afterwards. */
async function carry(
  { tx, run }: RunUnit,
  append: Append,
  state: RunState,
  truth: Truth,
  plan: HeadPlan,
  rows: readonly AnyRow[],
): Promise<{ readonly findings: ReadonlyMap<number, FindingFact>; readonly moved: ReadonlySet<number> }> {
  if (state.findings.size === 0) return { findings: state.findings, moved: new Set() };
  const moves = movesOf({
    findings: state.findings,
    before: state.files,
    files: plan.files,
    similar: truth.content?.similar ?? [],
    known: knownPaths(rows, plan.files),
  });
  if (moves.length === 0) return { findings: state.findings, moved: new Set() };
  const refs = moves.flatMap(({ finding }) => [finding.title, finding.quote]);
  const findings = new Map(state.findings);
  const moved = new Set<number>();
  for (const carried of carryFindings(moves, state.findings, await readTexts(tx, refs))) {
    const { finding, path, fingerprint } = carried;
    const seq = append('finding.carried', null, { ...carried, head: truth.pull.head });
    await carryFinding(tx, run.id, finding, { path, fingerprint, seq });
    const before = findings.get(finding);
    if (before !== undefined) findings.set(finding, { ...before, path, fingerprint, carriedSeq: seq });
    moved.add(finding);
  }
  return { findings, moved };
}
