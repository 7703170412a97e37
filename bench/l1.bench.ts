/** L1: one ticket leased and ended, eight callers, 100k waiting, every constraint on. */
import { type Bench, interleave, perSecondBy, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { cycle, fillPeer, fillQueue, peerRate } from './queue.ts';

const CALLERS = 8;
const WAITING = 100_000;
const REPS = 7;
const MS = 700;
const MUST = 0.8;

/** The product's own statements, a commit each, against graphile-worker without any of the constraints. */
export const bench: Bench = {
  id: 'L1',
  what: 'lease + end of single tickets, 8 callers, 100k waiting, all constraints, vs graphile-worker without any',
  must: MUST,
  aim: 1.5,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabase(CALLERS, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: WAITING, runs: 100, slots: 64, parallel: 6 });
      await fillPeer(url, WAITING);
      const result = await interleave(REPS, {
        ours: () => perSecondBy(CALLERS, MS, (caller) => cycle(database, `runner-${caller}`)),
        peer: () => peerRate(url, CALLERS, MS),
      });
      const ratio = result.ours / result.peer;
      const versions = versionsOf(['graphile-worker', 'pg'], { postgres: version });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
