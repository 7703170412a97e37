/** The finding that a command names, as the verified rows have it. */
import { isStanding } from '../../domain/run-state/coverage.ts';
import type { FindingFact } from '../../domain/run-state/state.ts';
import { Refusal } from '../../errors.ts';
import type { Given } from './given.ts';

const MOST_NAMED = 20;

/** The finding of that number; refused with `unknown_finding`, which names those that stand. */
export function findingNamed({ judged }: Given, number: number): FindingFact {
  const finding = judged.state.findings.get(number);
  if (finding !== undefined) return finding;
  const known = [...judged.state.findings.values()].filter(isStanding).map((one) => `F${one.number}`);
  throw new Refusal(
    'unknown_finding',
    `there is no finding F${number} here`,
    known.slice(0, MOST_NAMED).join(', ') || 'none is open',
  );
}
