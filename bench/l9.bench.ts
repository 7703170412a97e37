/** L9: the rate while somebody's long transaction keeps every dead row alive. */
import { type Bench, median, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { fillQueue, gatheredTurns, turnRate } from './queue.ts';

const CALLERS = 8;
const REPS = 5;
const MS = 500;
/** Leases under the snapshot before the rate is taken. */
const LEASES = 20_000;
/** A machine that is busy with other things takes what it got through in this time. */
const MOST_MS = 25_000;
const MUST = 0.3;

/** `peer` is our own rate before; `under` tells how many leases the snapshot was held over. */
export const bench: Bench = {
  id: 'L9',
  what: 'queue turns, 8 callers, 100k waiting, after 20k leases under a snapshot that is still held ÷ before it',
  must: MUST,
  aim: 0.7,
  unit: 'tickets/s',
  run: () =>
    withBenchDatabase(CALLERS + 1, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: 100_000, runs: 100, slots: 64, parallel: 6 });
      const turns = gatheredTurns(database);
      const rates = async () => {
        const found: number[] = [];
        for (let rep = 0; rep < REPS; rep++) found.push(await turnRate(turns, CALLERS, MS));
        return median(found);
      };
      await turnRate(turns, CALLERS, MS);
      const before = await rates();
      const holder = await database.pool.connect();
      try {
        await holder.query('begin isolation level repeatable read');
        await holder.query('select count(*) from lease');
        let under = 0;
        for (const from = performance.now(); under < LEASES && performance.now() - from < MOST_MS; )
          under += ((await turnRate(turns, CALLERS, MS, 8)) * MS) / 1_000;
        const during = await rates();
        const ratio = during / before;
        const versions = versionsOf(['pg'], { postgres: version, under: `${Math.round(under)} leases` });
        return { value: during, peer: before, ratio, ok: ratio >= MUST, reps: REPS, versions };
      } finally {
        await holder.query('rollback');
        holder.release();
      }
    }),
};
