/**
 * Rounds of a run as its rows say them (RND-2): one is counted when it read content on which a finding
 * of a model stood; clean content costs none.
 */
import type { RowData } from '../ledger/row-kinds.ts';
import { pathKey, type WirePath } from '../path.ts';
import type { Severity } from '../review.ts';
import { isStanding, severityRank } from './coverage.ts';
import type { FindingFact, RunState } from './state.ts';

/** One round of a path: the worst that stood when it was read, and how deeply it was read. */
export interface RoundFact {
  readonly seq: number;
  readonly worst: Severity;
  readonly level: RowData<'ticket.ended'>['level'];
}

/** Counts a complete review of a path as a round, if findings of models stood there that could block. */
export function countRound(
  state: RunState,
  seq: number,
  { path, level }: Pick<RowData<'ticket.ended'>, 'path' | 'level'>,
): void {
  const standing = findingsAt(state, path).filter(isArgued);
  const [first] = standing;
  if (first === undefined) return;
  const worst = standing.reduce(
    (a, b) => (severityRank(b.severity) < severityRank(a.severity) ? b : a),
    first,
  );
  const rounds = state.rounds.get(pathKey(path)) ?? [];
  state.rounds.set(pathKey(path), [...rounds, { seq, worst: worst.severity, level }]);
}

/** A finding that goes to another path takes the rounds of the old one along: a rename begins no new count. */
export function carryRounds(state: RunState, number: number, from: WirePath, to: WirePath): void {
  leavePath(state, number, from);
  standAt(state, number, to);
  const before = state.rounds.get(pathKey(from)) ?? [];
  const there = state.rounds.get(pathKey(to)) ?? [];
  const all = new Map([...before, ...there].map((round) => [round.seq, round]));
  if (all.size > 0)
    state.rounds.set(
      pathKey(to),
      [...all.values()].sort((a, b) => a.seq - b.seq),
    );
}

/** Notes that a finding is of this path. */
export function standAt(state: RunState, number: number, path: WirePath): void {
  const key = pathKey(path);
  const there = state.numbersAt.get(key);
  if (there === undefined) state.numbersAt.set(key, new Set([number]));
  else there.add(number);
}

function leavePath(state: RunState, number: number, path: WirePath): void {
  state.numbersAt.get(pathKey(path))?.delete(number);
}

/** The findings of a path, whatever became of them. */
export function findingsAt(state: RunState, path: WirePath): FindingFact[] {
  const numbers = state.numbersAt.get(pathKey(path)) ?? [];
  return [...numbers].flatMap((number) => state.findings.get(number) ?? []);
}

/** Whether a finding is one that rounds are about: a model's, standing, and able to block. */
export function isArgued(finding: FindingFact): boolean {
  return isStanding(finding) && !finding.command && !finding.readBefore;
}
