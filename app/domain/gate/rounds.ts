/**
 * Where rounds end (RND-2): after `review.rounds` of them a block gets one round at L3, and what a
 * model still holds against it then is a person's to judge. Blocking never loops on.
 */
import { pathKey } from '../path.ts';
import { type PathStanding, severityRank, standings } from '../run-state/coverage.ts';
import { findingsAt, isArgued, type RoundFact } from '../run-state/rounds.ts';
import type { FindingFact, RunState } from '../run-state/state.ts';
import type { GatePolicy } from './decide.ts';
import { type Asking, needOf } from './person.ts';

/** The part of a policy that rounds hang on. */
export type RoundRules = Pick<GatePolicy, 'rounds' | 'blockAt'>;

/** Rounds of a path in which something blocked. */
export function roundsOf(
  state: RunState,
  { blockAt }: RoundRules,
  path: PathStanding['file']['path'],
): RoundFact[] {
  const rounds = state.rounds.get(pathKey(path)) ?? [];
  return rounds.filter((round) => severityRank(round.worst) <= severityRank(blockAt));
}

/**
 * Where a path is: `under` its cap, `called` for the round at L3, or `over`: that one was had too. A
 * path that no model holds anything against is `under`.
 */
export function roundState(
  state: RunState,
  rules: RoundRules,
  path: PathStanding['file']['path'],
): 'under' | 'called' | 'over' {
  const argued = findingsAt(state, path).some(
    (finding) => isArgued(finding) && severityRank(finding.severity) <= severityRank(rules.blockAt),
  );
  const rounds = roundsOf(state, rules, path);
  if (!argued || rounds.length < rules.rounds) return 'under';
  // the last one within the cap may have been at L3 by a route already
  return rounds.length > rules.rounds || rounds.at(-1)?.level === 'L3' ? 'over' : 'called';
}

/** Blocks whose files the next round reads at L3. */
export function deepBlocks(state: RunState, rules: RoundRules): ReadonlySet<string> {
  // most runs never get near the cap
  if ([...state.rounds.values()].every((rounds) => rounds.length < rules.rounds)) return new Set();
  return new Set(
    standings(state)
      .filter((path) => roundState(state, rules, path.file.path) === 'called')
      .map((path) => path.block),
  );
}

/** Findings that rounds leave to a person, and those of them that one has answered for. */
export interface HandedOver {
  readonly handed: ReadonlySet<number>;
  readonly settled: ReadonlySet<number>;
}

/**
 * Asks a person about each block whose rounds are over: its blocking findings of models, all but the
 * critical ones, which two people dismiss (FND-2). Whoever answers does so for what stands now.
 */
export function askRounds(
  state: RunState,
  asking: Asking,
  policy: GatePolicy,
  paths: readonly PathStanding[],
  blocking: readonly FindingFact[],
): HandedOver {
  const handed = new Set<number>();
  const settled = new Set<number>();
  if (state.rounds.size === 0) return { handed, settled };
  const over = new Set(
    paths
      .filter((path) => path.standing === 'counted' && roundState(state, policy, path.file.path) === 'over')
      .map((path) => path.block),
  );
  const owner = new Map(paths.map((path) => [pathKey(path.file.path), path]));
  const byBlock = new Map<string, { path: PathStanding; finding: FindingFact }[]>();
  for (const finding of blocking) {
    const path = owner.get(pathKey(finding.path));
    if (path === undefined || !over.has(path.block) || finding.severity === 'critical') continue;
    if (!isArgued(finding)) continue;
    byBlock.set(path.block, [...(byBlock.get(path.block) ?? []), { path, finding }]);
  }
  for (const [block, left] of byBlock) {
    const numbers = left.map(({ finding }) => finding.number);
    for (const number of numbers) handed.add(number);
    const [first] = left;
    if (first === undefined) continue;
    const need = needOf('rounds_exhausted', first.path, {
      paths: left.map(({ path }) => path.file.path),
      sinceSeq: Math.max(...left.map(({ finding }) => finding.seq)),
    });
    if (asking.isCleared(need)) for (const number of numbers) settled.add(number);
    else
      asking.found.push({
        code: 'rounds_exhausted',
        blocks: [block],
        findings: numbers,
        detail: `${block}: review.rounds is ${policy.rounds}, and one more was had at L3`,
      });
  }
  return { handed, settled };
}
