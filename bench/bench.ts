/** What a bench is and how it measures: both sides in the same run, interleaved, medians (performance.md). */
import { createRequire } from 'node:module';

/** What one bench measured. */
export interface BenchResult {
  /** Our median, in the bench's unit. */
  readonly value: number;
  /** The peer's median in the same unit; null where the target is a limit and not a peer. */
  readonly peer: number | null;
  /** Ours by the peer's, so that `must` and `aim` can be read against it. */
  readonly ratio?: number;
  /** Whether `must` is met. */
  readonly ok: boolean;
  /** Repetitions behind each median. */
  readonly reps: number;
  /** What was measured with: runtime, server, libraries. */
  readonly versions: Readonly<Record<string, string>>;
  /** What else was counted on the way, by name. */
  readonly figures?: Readonly<Record<string, string>>;
}

/** One row of performance.md. */
export interface Bench {
  readonly id: string;
  /** What is measured against what, in one line. */
  readonly what: string;
  readonly must: number;
  readonly aim: number;
  readonly unit: string;
  run(): Promise<BenchResult>;
}

/** The middle of measured values; the mean of the two middle ones for an even count. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
}

/** Measures every side once a repetition, in an order that turns, so that drift of the machine hits all alike; medians by side. */
export async function interleave<S extends string>(
  reps: number,
  sides: Readonly<Record<S, () => number | Promise<number>>>,
): Promise<Record<S, number>> {
  const names = Object.keys(sides) as S[];
  const measured = new Map<S, number[]>(names.map((name) => [name, []]));
  for (const name of names) await sides[name](); // caches, plans and the compiler warm up uncounted
  for (let rep = 0; rep < reps; rep++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + rep) % names.length] as S;
      measured.get(name)?.push(await sides[name]());
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(measured.get(name) ?? [])])) as Record<
    S,
    number
  >;
}

/** Calls `step` for about `ms` and gives how many units it did a second; `step` gives the units of one call. */
export async function perSecond(ms: number, step: () => number | Promise<number>): Promise<number> {
  const start = performance.now();
  let units = 0;
  while (performance.now() - start < ms) units += await step();
  return (units * 1_000) / (performance.now() - start);
}

/** The same with `callers` at a time, each waiting for its own call. */
export async function perSecondBy(
  callers: number,
  ms: number,
  step: (caller: number) => Promise<number>,
): Promise<number> {
  const start = performance.now();
  const counts = await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      let units = 0;
      while (performance.now() - start < ms) units += await step(caller);
      return units;
    }),
  );
  return (counts.reduce((sum, one) => sum + one, 0) * 1_000) / (performance.now() - start);
}

/** Versions of the runtime and of packages, with whatever else is given (a server's). */
export function versionsOf(
  packages: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const require = createRequire(import.meta.url);
  const found = packages.map((name) => {
    const { version } = require(`../node_modules/${name}/package.json`) as { version: string };
    return [name, version] as const;
  });
  return { node: process.versions.node, ...Object.fromEntries(found), ...more };
}
