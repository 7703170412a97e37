/** L2: 32 callers of one ticket each over one API process, which gathers them. */
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { fillPeer, peerRate } from './peers.ts';
import { fillQueue, gatheredTurns, turnRate } from './queue.ts';

const CALLERS = 32;
const WAITING = 100_000;
const REPS = 5;
const MS = 700;
const MUST = 3;

/** Turns as in L1. */
export const bench: Bench = {
  id: 'L2',
  what: 'queue turns of 32 callers, single tickets, gathered by the API process, 100k waiting, vs graphile-worker with 32',
  must: MUST,
  aim: 6,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabase(8, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: WAITING, runs: 100, slots: 64, parallel: 6 });
      await fillPeer(url, WAITING);

      const result = await interleave(REPS, {
        ours: () => turnRate(gatheredTurns(database), CALLERS, MS),
        peer: () => peerRate(url, CALLERS, MS),
      });

      const ratio = result.ours / result.peer;
      const versions = versionsOf(['graphile-worker', 'pg'], { postgres: version });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
