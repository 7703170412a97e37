/** G1: who declares each of 3,000 paths among 4,000 patterns, cold. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Bench, interleave, median, versionsOf } from './bench.ts';

const REPS = 5;
/** Processes a repetition: ours are short, and one in five meets a neighbour on its core. */
const EACH = 5;
const MUST = 60;

/** Each repetition in a new process: a policy's first pull request meets no warm compiler. */
export const bench: Bench = {
  id: 'G1',
  what: 'ownership of 3,000 paths over 4,000 patterns, cold, vs one picomatch alternation a block',
  must: MUST,
  aim: 30,
  unit: 'ms',
  async run() {
    const hits = new Set<number>();
    const { ours, peer } = await interleave(REPS, {
      ours: () => median(Array.from({ length: EACH }, () => cold('ours', hits))),
      peer: () => cold('peer', hits),
    });
    if (hits.size !== 1)
      throw new Error(`both sides must find the same owners, found ${[...hits].join(', ')}`);
    return {
      value: ours,
      peer,
      ratio: ours / peer,
      ok: ours <= MUST,
      reps: REPS,
      versions: versionsOf(['picomatch']),
    };
  },
};

function cold(side: 'ours' | 'peer', hits: Set<number>): number {
  const script = fileURLToPath(new URL('./g1/cold.ts', import.meta.url));
  // the loader of this process is the child's as well
  const out = execFileSync(process.execPath, [...process.execArgv, script, side], { encoding: 'utf8' });
  const measured = JSON.parse(out) as { ms: number; hits: number };
  hits.add(measured.hits);
  return measured.ms;
}
