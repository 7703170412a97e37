/** L6: the rate at 100k waiting against the rate at 1k, for 1, 100 and 1,000 runs. */
import { type Bench, median, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { cycle, fillQueue, refill } from './queue.ts';

const CALLERS = 8;
const REPS = 5;
const MUST = 0.9;
/** Tickets of one window: few enough that 1k waiting stay about 1k. */
const TAKEN = 400;

/** The smallest of the three ratios counts. Both sizes lie in databases of one server and take turns. */
export const bench: Bench = {
  id: 'L6',
  what: 'lease + end, 8 callers: rate at 100k waiting ÷ rate at 1k, least of 1, 100 and 1,000 runs',
  must: MUST,
  aim: 1,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabase(CALLERS, async (small) =>
      withBenchDatabase(CALLERS, async (large) => {
        let least = { ratio: Number.POSITIVE_INFINITY, value: 0, peer: 0 };
        for (const runs of [1, 100, 1_000]) {
          const shape = { runs, slots: 64, parallel: 16 };
          await fillQueue(small.url, { ...shape, tickets: 1_000 });
          await fillQueue(large.url, { ...shape, tickets: 100_000 });
          const rates: Record<'small' | 'large', number[]> = { small: [], large: [] };
          for (let rep = 0; rep <= REPS; rep++) {
            for (const name of rep % 2 === 0
              ? (['small', 'large'] as const)
              : (['large', 'small'] as const)) {
              const { database, url } = name === 'small' ? small : large;
              const rate = await window((caller) => cycle(database, `runner-${caller}`));
              await refill(url);
              if (rep > 0) rates[name].push(rate);
            }
          }
          const value = median(rates.large);
          const peer = median(rates.small);
          if (value / peer < least.ratio) least = { ratio: value / peer, value, peer };
        }
        const versions = versionsOf(['pg'], { postgres: large.version });
        return { ...least, ok: least.ratio >= MUST, reps: REPS, versions };
      }),
    ),
};

/** The rate over a fixed number of tickets, by eight callers. */
async function window(step: (caller: number) => Promise<number>): Promise<number> {
  let left = TAKEN;
  const from = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      while (left > 0) {
        const taken = await step(caller);
        // after the await: `left -= await …` would lose what the other callers took meanwhile
        left -= taken;
      }
    }),
  );
  return (TAKEN * 1_000) / (performance.now() - from);
}
