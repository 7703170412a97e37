/**
 * Books what sessions came to once they are over (ADM-2), and takes slots back from those that asked for one and do
 * not ask any more (ADM-1). Late usage corrects what a lost lease was charged.
 *
 * Reads: session. Writes: spend, session, slot. Calls: nothing. One installation's failure stops no other.
 */
import { dropUnclaimed } from '../../db/store/session.ts';
import { listUnsettled, pruneSpend, settleSpend } from '../../db/store/spend.ts';
import type { Deps } from './deps.ts';

/** Sessions that one transaction books; the next one goes on. */
const BATCH = 500;
const MOST_BATCHES = 20;
/** Months whose counts are kept beside the present one. */
const KEPT_MONTHS = 13;

/** Books everything that ended; returns how many counts were brought up and slots taken back. */
export async function bookSpend(deps: Deps): Promise<number> {
  const { database } = deps;
  let done = await database.transaction((tx) => dropUnclaimed(tx, BATCH));
  for (const installation of await listUnsettled(database.db)) {
    try {
      for (let n = 0; n < MOST_BATCHES; n++) {
        const booked = await database.transaction((tx) => settleSpend(tx, installation, BATCH));
        done += booked;
        if (booked === 0) break;
      }
    } catch (error) {
      deps.log.error({ installation, err: error }, 'book-spend');
    }
  }
  await database.transaction((tx) => pruneSpend(tx, KEPT_MONTHS));
  return done;
}
