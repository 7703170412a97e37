/**
 * The figures of the queue, of runners, providers and spending for whoever watches the server (OPS-7).
 *
 * Reads: tickets, leases, sessions, slots, providers, pools, runners, dispatches, settings, spend. Writes: nothing.
 * Calls: nothing. May fail with: what Postgres does.
 */
import { type Figures, readFigures as read } from '../../db/store/figure.ts';
import type { Deps } from './deps.ts';

/** What stands now; ages in seconds of product time, money in millionths of a dollar. */
export type { Figures } from '../../db/store/figure.ts';

/** Reads them in one statement. */
export function readFigures({ database }: Pick<Deps, 'database'>): Promise<Figures> {
  return read(database.db);
}
