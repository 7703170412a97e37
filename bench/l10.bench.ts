/** L10: how soon a runner that waits has a ticket that is put into the queue. */
import { setTimeout as sleep } from 'node:timers/promises';
import { QUEUE_CHANNEL, untilWoken, wake } from '../app/flow/wake.ts';
import { listenTo } from '../db/listen.ts';
import { addJob } from '../db/store/job.ts';
import { type Bench, median, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { startPeer } from './peers.ts';
import { fillQueue, gatheredTurns, PLACE, queueOne } from './queue.ts';

const REPS = 5;
const EACH = 30;
const MUST = 1;

/** From before the transaction that queues to the lease (theirs: the start of the task), one idle waiter each, in turns. */
export const bench: Bench = {
  id: 'L10',
  what: 'enqueue → leased p50, a runner waiting by long poll, vs graphile-worker enqueue → start',
  must: MUST,
  aim: 0.5,
  unit: 'ms',
  run: () =>
    withBenchDatabase(8, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: 0, runs: 1, slots: 4, parallel: 6 });
      const queue = listenTo(database, QUEUE_CHANNEL, (repository) => wake(database, repository));
      let started: () => void = () => {};
      const peer = await startPeer(url, () => started());
      while (!queue.heard()) await sleep(10);
      const turn = gatheredTurns(database);
      const never = new AbortController();
      const ours = async (): Promise<number> => {
        let from = 0;
        const waiter = (async () => {
          for (;;) {
            const woken = untilWoken(database, PLACE.repositoryId, 1_000, never.signal);
            const held = await turn('runner', [], 1);
            if (held.length > 0) {
              const ms = performance.now() - from;
              await turn('runner', held, 0);
              return ms;
            }
            await woken;
          }
        })();
        await sleep(10); // it waits by now
        from = performance.now();
        await queueOne(database);
        return waiter;
      };
      const theirs = async (): Promise<number> => {
        const running = new Promise<void>((done) => {
          started = done;
        });
        await sleep(10);
        const from = performance.now();
        await addJob(database.db, 'empty', {});
        await running;
        return performance.now() - from;
      };
      try {
        const times: Record<'ours' | 'theirs', number[]> = { ours: [], theirs: [] };
        for (let rep = 0; rep <= REPS; rep++)
          for (let n = 0; n < EACH; n++) {
            const [a, b] = [await ours(), await theirs()];
            if (rep === 0) continue;
            times.ours.push(a);
            times.theirs.push(b);
          }
        const [value, other] = [median(times.ours), median(times.theirs)];
        const versions = versionsOf(['graphile-worker', 'pg'], { postgres: version });
        return {
          value,
          peer: other,
          ratio: value / other,
          ok: value / other <= MUST,
          reps: REPS * EACH,
          versions,
        };
      } finally {
        await peer.stop();
        await queue.close();
      }
    }),
};
