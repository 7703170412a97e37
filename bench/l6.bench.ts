/** L6: the rate at 100k waiting against the rate at 1k, for 1, 100 and 1,000 runs. */
import type { Granted } from '../db/store/turn.ts';
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withBenchDatabases } from './database.ts';
import { fillQueue, gatheredTurns, refill, type Turn } from './queue.ts';

const CALLERS = 8;
const REPS = 5;
const MUST = 0.9;
/** Tickets of one window: few enough that 1k waiting stay about 1k. */
const TAKEN = 400;

/** The smallest of the ratios of 100k counts; 10k is told beside it. All sizes lie in databases of one server and take turns. */
export const bench: Bench = {
  id: 'L6',
  what: 'queue turns, 8 callers: rate at 100k waiting ÷ rate at 1k, least of 1, 100 and 1,000 runs',
  must: MUST,
  aim: 1,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabases(3, CALLERS, async ([small, middle, large]) => {
      if (small === undefined || middle === undefined || large === undefined)
        throw new Error('three databases');
      let least = { ratio: Number.POSITIVE_INFINITY, value: 0, peer: 0 };
      const figures: Record<string, string> = {};
      for (const runs of [1, 100, 1_000]) {
        const shape = { runs, slots: 64, parallel: 16 };
        await fillQueue(small.url, { ...shape, tickets: 1_000 });
        await fillQueue(middle.url, { ...shape, tickets: 10_000 });
        await fillQueue(large.url, { ...shape, tickets: 100_000 });
        const rates = await interleave(REPS, {
          // the larger ones go on from where they are: a window takes less than a two-hundredth of the largest
          large: () => window(gatheredTurns(large.database)),
          middle: () => window(gatheredTurns(middle.database)),
          small: async () => {
            const rate = await window(gatheredTurns(small.database));
            await refill(small.url);
            return rate;
          },
        });
        const told = (rate: number) => `${Math.round(rate)} (${(rate / rates.small).toFixed(2)})`;
        figures[`${runs} runs`] =
          `1k ${Math.round(rates.small)}, 10k ${told(rates.middle)}, 100k ${told(rates.large)} tickets/s`;
        if (rates.large / rates.small < least.ratio)
          least = { ratio: rates.large / rates.small, value: rates.large, peer: rates.small };
      }
      const versions = versionsOf(['pg'], { postgres: large.version });
      return { ...least, ok: least.ratio >= MUST, reps: REPS, versions, figures };
    }),
};

/** The rate over a fixed number of tickets, by eight callers. */
async function window(turn: Turn): Promise<number> {
  let left = TAKEN;
  const from = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      let held: readonly Granted[] = [];
      while (left > 0) {
        held = await turn(`runner-${caller}`, held, 1);
        // after the await: `left -= await …` would lose what the other callers took meanwhile
        left -= held.length;
      }
      await turn(`runner-${caller}`, held, 0);
    }),
  );
  return (TAKEN * 1_000) / (performance.now() - from);
}
