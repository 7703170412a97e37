import * as z from 'zod';
import { deliveryStates, findReadCursor, saveReadCursor } from '../../../db/store/delivery.ts';
import type { Deps } from '../deps.ts';

/** Events whose loss is noticed in no other way than by asking for them again, or is noticed sooner so. */
const MATTERS = new Set([
  'pull_request',
  'pull_request_review',
  'merge_group',
  'issue_comment',
  'push',
  'installation',
  'installation_repositories',
  'repository',
  'check_run',
  'check_suite',
  'workflow_run',
  'workflow_job',
]);
/** Most pages of GitHub's list in one pass: an older loss is found by comparing pull requests. */
const MOST_PAGES = 20;
/** A delivery that fails each time is asked for so often and no more. */
const MOST_TRIES = 3;
const KEPT_TRIES = 500;

const cursorSchema = z.object({
  /** The newest delivery that was looked at. */
  id: z.string(),
  /** How often each guid was asked for again. */
  tries: z.record(z.string(), z.int()),
});

/** Asks GitHub for the deliveries that failed since the last look (case 4): it repeats none by itself, and keeps them three days. Answers how many. */
export async function requestFailedDeliveries(deps: Deps): Promise<number> {
  const { db } = deps.database;
  const kept = await findReadCursor(db, 'deliveries');
  const before = kept === null ? { id: '0', tries: {} } : cursorSchema.parse(JSON.parse(kept));
  const seen = BigInt(before.id);
  let newest = seen;
  /** Newest failed attempt by guid; an attempt that arrived takes the guid out. */
  const failed = new Map<string, string>();
  const arrived = new Set<string>();
  let page: string | null = null;
  for (let n = 0; n < MOST_PAGES; n++) {
    const { deliveries, cursor } = await deps.github.listDeliveries(page);
    const fresh = deliveries.filter((one) => BigInt(one.id) > seen);
    for (const one of fresh) {
      if (BigInt(one.id) > newest) newest = BigInt(one.id);
      if (one.ok) arrived.add(one.guid);
      else if (MATTERS.has(one.event) && !failed.has(one.guid)) failed.set(one.guid, one.id);
    }
    if (cursor === null || fresh.length < deliveries.length) break;
    page = cursor;
  }
  const states = await deliveryStates(db, [...failed.keys()]);
  const tries: Record<string, number> = { ...before.tries };
  let asked = 0;
  // as they came: what a queue asked for before what it threw away
  for (const [guid, id] of [...failed].reverse()) {
    // what is in the inbox is the queue's, whatever GitHub believes (case 3)
    if (arrived.has(guid) || states.has(guid) || (tries[guid] ?? 0) >= MOST_TRIES) continue;
    await deps.github.redeliver(id);
    tries[guid] = (tries[guid] ?? 0) + 1;
    asked += 1;
  }
  const bounded = Object.fromEntries(Object.entries(tries).slice(-KEPT_TRIES));
  const after = JSON.stringify({ id: String(newest), tries: bounded });
  if (after !== kept) await deps.database.transaction((tx) => saveReadCursor(tx, 'deliveries', after));
  return asked;
}
