/** L1: one ticket leased and ended, eight callers, 100k waiting, every constraint on. */
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { fillPeer, peerRate } from './peers.ts';
import { fillQueue, gatheredTurns, singleTurns, turnRate } from './queue.ts';

const CALLERS = 8;
const WAITING = 100_000;
const REPS = 7;
const MS = 700;
const MUST = 0.8;

/**
 * Inside: what the API process does to the queue for a submit that asks for the next lease, gathered over
 * its callers as there (app/flow/take-turn.ts), and the commit. Not inside: HTTP, and the run's unit of
 * work with its signed rows (A2 and A4 measure that). `ungathered`: the same turns, a commit for each.
 */
export const bench: Bench = {
  id: 'L1',
  what: 'queue turns (end + next lease) of 8 callers, single tickets, 100k waiting, all constraints, vs graphile-worker without any; no HTTP, no rows',
  must: MUST,
  aim: 1.5,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabase(CALLERS, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: WAITING, runs: 100, slots: 64, parallel: 6 });
      await fillPeer(url, WAITING);
      const result = await interleave(REPS, {
        ours: () => turnRate(gatheredTurns(database), CALLERS, MS),
        single: () => turnRate(singleTurns(database), CALLERS, MS),
        peer: () => peerRate(url, CALLERS, MS),
      });
      const ratio = result.ours / result.peer;
      const versions = versionsOf(['graphile-worker', 'pg'], {
        postgres: version,
        ungathered: `${Math.round(result.single)} tickets/s`,
      });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
