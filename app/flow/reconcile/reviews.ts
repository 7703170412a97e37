import * as z from 'zod';
import { findReadCursor, saveReadCursor } from '../../../db/store/delivery.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { productNow, type Run } from '../../../db/store/run.ts';
import type { Cause } from '../../domain/ledger/row-fields.ts';
import type { GitHub, PullInfo } from '../../github/port.ts';
import type { Deps } from '../deps.ts';
import { recordReviews } from '../record-reviews.ts';

/** What the pull request's last change was when its reviews were read, and when that was. */
const cursorSchema = z.object({ updated: z.string(), at: z.number() });
/** GitHub tells whole seconds and has a clock of its own: a change this close to the last look may be a later one. */
const SKEW_MS = 60_000;

/**
 * Records reviews whose deliveries were lost: given, dismissed, or turned into a no (GAT-6). GitHub is asked only
 * where the pull request changed since the last look. Answers how many acts came of it.
 */
export async function readReviews(
  deps: Deps,
  github: GitHub,
  repository: Repository,
  run: Run,
  pull: Pick<PullInfo, 'number' | 'updatedAt'>,
  cause: Cause,
): Promise<number> {
  const { db } = deps.database;
  const name = `reviews/${run.id}`;
  const kept = await findReadCursor(db, name);
  const seen = kept === null ? null : cursorSchema.parse(JSON.parse(kept));
  const isOld = seen !== null && seen.at - Date.parse(pull.updatedAt) > SKEW_MS;
  if (isOld && seen.updated === pull.updatedAt) return 0;
  const now = (await productNow(db)).getTime();
  const reviews = await github.listReviews(repository, pull.number);
  const outcome = await recordReviews(deps, github, repository, run, reviews, cause);
  if (!outcome.waiting) {
    const cursor = JSON.stringify({ updated: pull.updatedAt, at: now });
    await deps.database.transaction((tx) => saveReadCursor(tx, name, cursor));
  }
  return outcome.recorded + outcome.revoked;
}
