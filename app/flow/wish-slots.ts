import { putSlotWish } from '../../db/store/provider.ts';
import type { QueuePlace } from '../../db/store/turn.ts';
import type { Deps } from './deps.ts';

/** Often enough for a wish to hold from one poll to the next, in ms. */
const EVERY_MS = 500;

const told = new WeakMap<Deps, Map<string, number>>();

/**
 * A runner asked and got nothing: where slots are taken by other repositories of the installation, the next that comes
 * free is left to its places (LSE-1). Said twice a second for each `who`, a repository or a pool, however many ask.
 *
 * Reads: provider, slot, ticket, run, lease. Writes: slot wish. Calls: nothing.
 */
export async function wishSlots(
  deps: Deps,
  who: string,
  placesOf: () => Promise<readonly QueuePlace[]>,
): Promise<void> {
  const mine = told.get(deps) ?? new Map<string, number>();
  told.set(deps, mine);
  const now = performance.now();
  if (now - (mine.get(who) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
  mine.set(who, now);
  for (const place of await placesOf()) await putSlotWish(deps.database.db, place);
}
