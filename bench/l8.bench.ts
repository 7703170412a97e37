/** L8: a lease that is refused because its provider is full, with 100k tickets behind it. */
import { type Bench, median, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { fillQueue, gatheredTurns } from './queue.ts';

const REPS = 7;
const CALLS = 2_000;
const MUST = 0.1;

/** Round trip from this process over loopback, one caller; `peer` is an empty statement on the same connection. */
export const bench: Bench = {
  id: 'L8',
  what: 'refused lease (provider full, 100k behind it), round trip p50; peer: select 1, the floor of a round trip here',
  must: MUST,
  aim: 0.05,
  unit: 'ms',
  run: () =>
    withBenchDatabase(1, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: 100_000, runs: 100, slots: 4, parallel: 6, provider: 'openai' });
      await database.pool.query(`update slot set session_id = 'taken'`);
      const p50 = async (call: () => Promise<unknown>) => {
        const times: number[] = [];
        for (let i = 0; i < CALLS; i++) {
          const from = performance.now();
          await call();
          times.push(performance.now() - from);
        }
        return median(times);
      };
      // as the API process asks: who was refused looks first whether there is anything
      const turn = gatheredTurns(database);
      const ours: number[] = [];
      const floor: number[] = [];
      for (let rep = 0; rep <= REPS; rep++) {
        const one = await p50(async () => {
          if ((await turn('runner', [], 1)).length !== 0) throw new Error('a full provider gave a ticket');
        });
        const other = await p50(() => database.pool.query({ name: 'one', text: 'select 1' }));
        if (rep > 0) {
          ours.push(one);
          floor.push(other);
        }
      }
      const value = median(ours);
      return {
        value,
        peer: median(floor),
        ratio: value / median(floor),
        ok: value <= MUST,
        reps: REPS,
        versions: versionsOf(['pg'], { postgres: version }),
      };
    }),
};
