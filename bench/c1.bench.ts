/** C1: what the Action costs before its first line, over a bare Node (ACT-1). */
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Bench, interleave, versionsOf } from './bench.ts';

const REPS = 31;
const MUST_MS = 20;
const MUST_BYTES = 300_000;
const first = fileURLToPath(new URL('../action/dist/index.js', import.meta.url));
const env = { PATH: process.env['PATH'] ?? '' };

/** Milliseconds from the spawn to the first byte printed, or to the end where nothing is. */
function timed(args: readonly string[], until: 'line' | 'end'): Promise<number> {
  return new Promise((resolve, reject) => {
    const from = performance.now();
    let line: number | null = null;
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    child.stdout.once('data', () => {
      line = performance.now() - from;
    });
    child.stdout.resume();
    child.on('error', reject);
    child.on('close', () => resolve(until === 'line' && line !== null ? line : performance.now() - from));
  });
}

/**
 * Start of the bundle's first file to its first line, over `node -e` printing a line: both clocks stop
 * at the same event. Beside it: `node -e 0` to its end, and the bundle to the end of reading its
 * inputs, which loads the chunk that every job loads.
 */
export const bench: Bench = {
  id: 'C1',
  what: 'Action bundle, start to first line over node -e 0 (first file at most 300 kB)',
  must: MUST_MS,
  aim: 6,
  unit: 'ms over',
  async run() {
    const median = await interleave(REPS, {
      ours: () => timed([first], 'line'),
      peer: () => timed(['-e', "process.stdout.write('x\\n')"], 'line'),
      bare: () => timed(['-e', '0'], 'end'),
      ready: () => timed([first], 'end'),
    });
    const bytes = statSync(first).size;
    const over = median.ours - median.peer;
    return {
      value: over,
      peer: median.peer,
      ok: over <= MUST_MS && bytes <= MUST_BYTES,
      reps: REPS,
      versions: versionsOf([], {
        file: `${path.basename(first)} ${bytes} bytes`,
        inputs_read: `${(median.ready - median.bare).toFixed(1)} ms over node -e 0 to its end`,
      }),
    };
  },
};
