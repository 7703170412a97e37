import type { Database } from '../../db/client.ts';
import { type NewDelivery, storeDeliveries } from '../../db/store/delivery.ts';
import { Fault } from '../errors.ts';

/**
 * Most rows of one statement, and most statements at a time: more did not help when measured
 * (performance.md §4). A second one is sent for a full batch only: half the cost of a small statement
 * is the statement, and the queue's NOTIFY lets one transaction commit at a time anyhow.
 */
const MOST_ROWS = 16;
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_IN_FLIGHT = 2;

/** Stores a verified delivery; resolves once it and its job are committed, with whether its id was new. */
export type StoreDelivery = (delivery: {
  readonly id: string;
  readonly event: string;
  readonly body: Buffer;
}) => Promise<{ readonly fresh: boolean }>;

interface Waiting {
  readonly delivery: NewDelivery;
  readonly done: ((outcome: { fresh: boolean }) => void)[];
  readonly failed: ((error: unknown) => void)[];
}

/**
 * The arrow from the edge to the inbox (OPS-1): exact bytes and the job in one transaction, deliveries
 * that arrive together in one commit.
 *
 * Reads: nothing. Writes: delivery, its job. Calls: nothing outside.
 * May fail with: `database_unreachable` (retryable), nothing stored.
 */
export function storeDelivery(database: Pick<Database, 'pool'>): StoreDelivery {
  const waiting = new Map<string, Waiting>();
  let inFlight = 0;

  const pump = () => {
    while (inFlight < MOST_IN_FLIGHT && waiting.size >= (inFlight === 0 ? 1 : MOST_ROWS)) {
      const batch = takeBatch(waiting);
      inFlight += 1;
      void write(batch).finally(() => {
        inFlight -= 1;
        pump();
      });
    }
  };

  const write = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const stored = await storeDeliveries(
        database.pool,
        batch.map((one) => one.delivery),
      );
      const fresh = new Set(stored);
      for (const one of batch) for (const done of one.done) done({ fresh: fresh.has(one.delivery.id) });
    } catch (cause) {
      // one delivery that Postgres refuses must not take its neighbours with it
      if (batch.length > 1) {
        for (const one of batch) await write([one]);
        return;
      }
      const error = new Fault('database_unreachable', 'the delivery could not be stored', {
        cause,
        retryable: true,
      });
      for (const one of batch) for (const failed of one.failed) failed(error);
    }
  };

  return ({ id, event, body }) =>
    new Promise((done, failed) => {
      const known = waiting.get(id);
      if (known === undefined) {
        waiting.set(id, { delivery: { id, event, body }, done: [done], failed: [failed] });
      } else {
        known.done.push(done);
        known.failed.push(failed);
      }
      pump();
    });
}

function takeBatch(waiting: Map<string, Waiting>): Waiting[] {
  const batch: Waiting[] = [];
  let bytes = 0;
  for (const [id, one] of waiting) {
    if (batch.length > 0 && (batch.length === MOST_ROWS || bytes + one.delivery.body.length > MOST_BYTES))
      break;
    waiting.delete(id);
    batch.push(one);
    bytes += one.delivery.body.length;
  }
  return batch;
}
