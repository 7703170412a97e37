/** L7: backlogs that would make a search slow: nine tenths behind a full provider, or all in ten hot paths. */
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withBenchDatabases } from './database.ts';
import { fillQueue, gatheredTurns, turnRate } from './queue.ts';

const CALLERS = 8;
const REPS = 5;
const MS = 500;
const MUST = 0.9;

/** The worse of the two counts; three databases of one server take turns. */
export const bench: Bench = {
  id: 'L7',
  what: 'queue turns, 8 callers, 100k waiting: 90 % behind a provider with 2 slots, or all in 10 hot paths, the worse ÷ the even case',
  must: MUST,
  aim: 1,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabases(3, CALLERS, async ([even, capped, hot]) => {
      if (even === undefined || capped === undefined || hot === undefined) throw new Error('three databases');
      const shape = { tickets: 100_000, runs: 100, slots: 64, parallel: 6 };
      await fillQueue(even.url, shape);
      await fillQueue(capped.url, { ...shape, capped: true });
      await fillQueue(hot.url, { ...shape, hot: true });
      const rate = (database: typeof even.database) => turnRate(gatheredTurns(database), CALLERS, MS);
      const result = await interleave(REPS, {
        even: () => rate(even.database),
        capped: () => rate(capped.database),
        hot: () => rate(hot.database),
      });
      const value = Math.min(result.capped, result.hot);
      const ratio = value / result.even;
      const versions = versionsOf(['pg'], {
        postgres: even.version,
        capped: (result.capped / result.even).toFixed(2),
        hot: (result.hot / result.even).toFixed(2),
      });
      return { value, peer: result.even, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
