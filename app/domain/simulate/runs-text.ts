/** What `countersign simulate --runs` prints: a table, why each verdict would be another, and counts. */
import { movedText, type RunSimulation } from './run.ts';

/** A run with its name, as the flow gives it. */
export interface NamedSimulation {
  readonly run: string;
  readonly name: string;
  readonly epoch: number;
  readonly outcome: RunSimulation | { readonly kind: 'broken'; readonly fault: string };
}

/** How many runs came to what. */
export interface Counts {
  readonly runs: number;
  readonly same: number;
  readonly changed: number;
  /** Never decided, or never read: no policy would have had anything to decide. */
  readonly untold: number;
  /** Runs whose rows do not verify, or of which a recorded verdict cannot be had again. */
  readonly faults: number;
  /** Runs of which the proposed policy would have asked reviewers anew. */
  readonly anew: number;
}

/** Counts a simulation. */
export function countRuns(all: readonly NamedSimulation[]): Counts {
  const of = (fits: (outcome: NamedSimulation['outcome']) => boolean) =>
    all.filter(({ outcome }) => fits(outcome)).length;
  return {
    runs: all.length,
    same: of((one) => one.kind === 'decided' && !one.changed),
    changed: of((one) => one.kind === 'decided' && one.changed),
    untold: of((one) => one.kind === 'undecided' || one.kind === 'unread'),
    faults: of(isFault),
    anew: of((one) => one.kind === 'decided' && one.anew > 0),
  };
}

/** 1: a fault, which comes first; 3: a verdict would be another; 0: none would. */
export function exitOf({ faults, changed }: Counts): 0 | 1 | 3 {
  if (faults > 0) return 1;
  return changed > 0 ? 3 : 0;
}

function isFault(outcome: NamedSimulation['outcome']): boolean {
  if (outcome.kind === 'broken') return true;
  return outcome.kind !== 'undecided' && outcome.mismatches.length > 0;
}

const NOT_TOLD = {
  lines: 'a route asks for lines, which rows do not hold: it was left out on both sides',
  owner: 'rows do not name who would own paths that are guarded or orphans now: no block was held by them',
} as const;

/** The lines of the answer. */
export function runsText(all: readonly NamedSimulation[], policy: string): string[] {
  const counts = countRuns(all);
  const table = [
    ['run', 'was', 'would be', 'why'],
    ...all.map(({ name, epoch, outcome }) => [
      epoch === 1 ? name : `${name} (epoch ${epoch})`,
      ...cells(outcome),
    ]),
  ];
  const widths = [0, 1, 2].map((i) => Math.max(...table.map((row) => row[i]?.length ?? 0)));
  const lines = table.map((row) =>
    row
      .map((cell, i) => (i < 3 ? cell.padEnd(widths[i] ?? 0) : cell))
      .join('  ')
      .trimEnd(),
  );
  const untold = new Set(all.flatMap(({ outcome }) => (outcome.kind === 'decided' ? outcome.unknown : [])));
  return [
    ...(all.length === 0 ? ['no run is recorded there'] : lines),
    '',
    `${counts.runs} run(s) under ${policy}: ${counts.same} as they were, ${counts.changed} otherwise, ${counts.untold} with nothing to decide, ${counts.faults} with faults`,
    ...(counts.anew === 0
      ? []
      : [`${counts.anew} run(s) would have asked reviewers anew: what they would find no row tells`]),
    ...[...untold].map((one) => `not told: ${NOT_TOLD[one]}`),
    ...all.flatMap(({ name, outcome }) => faultsOf(outcome).map((fault) => `fault: ${name}: ${fault}`)),
  ];
}

function cells(outcome: NamedSimulation['outcome']): [string, string, string] {
  switch (outcome.kind) {
    case 'broken':
      return ['-', '-', 'the ledger does not verify'];
    case 'undecided':
      return ['-', '-', 'never decided'];
    case 'unread':
      return [words(outcome.was), '-', 'its head was never read'];
    case 'decided':
      return [words(outcome.was), outcome.changed ? words(outcome.would) : 'the same', why(outcome)];
  }
}

function why(outcome: Extract<RunSimulation, { kind: 'decided' }>): string {
  const [then, now] = outcome.modes;
  return [
    ...(then === now ? [] : [`mode ${then} → ${now}`]),
    ...outcome.come.map((one) => `+ ${movedText(one)}`),
    ...outcome.go.map((one) => `- ${one.code}`),
    ...(outcome.anew === 0 ? [] : [`${outcome.anew} file(s) reviewed anew`]),
  ].join('; ');
}

function faultsOf(outcome: NamedSimulation['outcome']): string[] {
  if (outcome.kind === 'broken') return [outcome.fault];
  if (outcome.kind === 'undecided') return [];
  return outcome.mismatches.map(
    ({ seq, recorded, again }) =>
      `row ${seq} recorded ${recorded}; the same rows and facts now give ${again}`,
  );
}

const words = (conclusion: string) => conclusion.replace('_', ' ');
