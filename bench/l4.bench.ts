/** L4: against the only way graphile-worker has to our exclusivity, a named queue per (block, path). */
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { fillPeer, peerRate } from './peers.ts';
import { fillQueue, gatheredTurns, turnRate } from './queue.ts';

const CALLERS = 8;
const WAITING = 100_000;
const REPS = 5;
const MS = 700;
const MUST = 40;

/** Turns as in L1. */
export const bench: Bench = {
  id: 'L4',
  what: 'queue turns of 8 callers, single tickets, 100k waiting, vs graphile-worker with a named queue per (block, path)',
  must: MUST,
  aim: 200,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabase(8, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: WAITING, runs: 100, slots: 64, parallel: 6 });
      await fillPeer(url, WAITING, 33_000);

      const result = await interleave(REPS, {
        ours: () => turnRate(gatheredTurns(database), CALLERS, MS),
        peer: () => peerRate(url, CALLERS, MS),
      });

      const ratio = result.ours / result.peer;
      const versions = versionsOf(['graphile-worker', 'pg'], { postgres: version });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
