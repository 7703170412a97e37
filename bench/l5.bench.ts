/** L5: against single fetches of pg-boss. */
import { type Bench, interleave, perSecondBy, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { bossCycle, startBoss } from './peers.ts';
import { fillQueue, gatheredTurns, turnRate } from './queue.ts';

const CALLERS = 8;
const WAITING = 100_000;
const REPS = 5;
const MS = 700;
const MUST = 100;

/** Turns as in L1. */
export const bench: Bench = {
  id: 'L5',
  what: 'queue turns of 8 callers, single tickets, 100k waiting, vs pg-boss: fetch one, complete it',
  must: MUST,
  aim: 400,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabase(8, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: WAITING, runs: 100, slots: 64, parallel: 6 });
      const boss = await startBoss(url, WAITING);

      const result = await interleave(REPS, {
        ours: () => turnRate(gatheredTurns(database), CALLERS, MS),
        peer: () => perSecondBy(CALLERS, MS, () => bossCycle(boss)),
      });
      await boss.stop({ graceful: false });
      const ratio = result.ours / result.peer;
      const versions = versionsOf(['pg-boss', 'pg'], { postgres: version });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
