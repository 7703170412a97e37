/** The sessions of one file's ranges as one reviewer's word (REV-2): a file is reviewed when every range was. */
import type { ReviewOutcome } from '../reviewer.ts';
import type { Range } from './ranges.ts';

type Spoken = Extract<ReviewOutcome, { kind: 'reviewed' }>;

/**
 * Joins the outcomes of `ranges`, in order; they end with the first that is no review. Only ranges that
 * were read are claimed: one that was not makes the whole unavailable, and what was found stays beside it.
 */
export function joinRanges(outcomes: readonly ReviewOutcome[], ranges: readonly Range[]): ReviewOutcome {
  const spoken = outcomes.filter((one): one is Spoken => one.kind === 'reviewed');
  const last = outcomes.at(-1);
  const [first] = spoken;
  if (last === undefined) throw new TypeError('a file has at least one range');
  if (last.kind !== 'reviewed') {
    const range = ranges[outcomes.length - 1];
    if (last.kind !== 'unavailable' || range === undefined || ranges.length === 1) return last;
    const { reviewer } = last;
    const said = last.detail.startsWith(`${reviewer}: `)
      ? last.detail.slice(reviewer.length + 2)
      : last.detail;
    return {
      ...last,
      detail: `${reviewer}: lines ${range.from} to ${range.of} of ${range.of} were not read: ${said}`,
      found: spoken.flatMap((one) => one.findings),
    };
  }
  if (first === undefined || spoken.length === 1) return last;
  const findings = spoken.flatMap((one) => one.findings);
  const unplaced = spoken.flatMap((one) => one.unplaced);
  // one range may not see what another one does, so a doubt anywhere is the word of the file
  const doubts = spoken.some((one) => one.verdict === 'cannot_review');
  const all = spoken.flatMap((one) => one.clauses ?? []);
  const clauses = [...new Set(all.map((one) => one.index))].map((index) => ({
    index,
    status: all.some((one) => one.index === index && one.status === 'unmet')
      ? ('unmet' as const)
      : ('met' as const),
  }));
  return {
    kind: 'reviewed',
    reviewer: first.reviewer,
    verdict: doubts ? 'cannot_review' : findings.length + unplaced.length > 0 ? 'findings' : 'approve',
    findings,
    unplaced,
    answers: spoken.flatMap((one) => one.answers),
    clauses,
  };
}
