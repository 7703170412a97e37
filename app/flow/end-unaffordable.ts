/**
 * Ends the waiting tickets of a run that no admission would take any more: `budget`, as a runner would be told, and no
 * runner is started for it (ADM-2, POOL-2). What sessions under way may give back is waited for.
 *
 * Reads: run, its rows, policy, settings, session, spend, ticket. Writes: spend, ticket; rows `ticket.ended`.
 * Calls: nothing. Queues: decide-gate, dispatch. May fail with: `run_missing`.
 */
import { findRun } from '../../db/store/run.ts';
import { settleSpend } from '../../db/store/spend.ts';
import { fillWindows, listActiveTickets, lockPending } from '../../db/store/ticket.ts';
import { Fault } from '../errors.ts';
import { withRun } from './append-rows.ts';
import { readShort } from './budget-counts.ts';
import type { Deps } from './deps.ts';
import { endUnread } from './end-unread.ts';
import { isWhole } from './verify-run.ts';

/** Sessions that are booked before a budget is called used up. */
const SETTLE = 1_000;
/** Tickets that one transaction ends; the planner asks for the next. */
const BATCH = 500;

/** Ends them; returns how many. */
export async function endUnaffordable(deps: Deps, input: { readonly run: string }): Promise<number> {
  const found = await findRun(deps.database.db, input.run);
  if (found === null) throw new Fault('run_missing', `there is no run ${input.run}`);
  // what ended meanwhile may have cost less than it reserved
  await deps.database.transaction((tx) => settleSpend(tx, found.installationId, SETTLE));
  const ended = await withRun(deps, input.run, async (unit) => {
    const { tx, run } = unit;
    if (run.status !== 'open' || unit.broken || !(await isWhole(deps, run, tx))) return 0;
    const asked = (await listActiveTickets(tx, run.id))
      .filter((ticket) => ticket.state === 'pending')
      .map((ticket) => ({
        ...ticket,
        policyHash: run.policyHash,
        allowedRule: run.allowedRule,
      }));
    const short = [...(await readShort(tx, run.installationId, asked))].filter(([, why]) => why.final);
    const details = new Map(short.slice(0, BATCH).map(([ticket, why]) => [ticket.id, why.detail]));
    const tickets = await lockPending(tx, [...details.keys()]);
    for (const ticket of tickets)
      await endUnread(deps, unit, ticket, {
        end: 'budget',
        detail: details.get(ticket.id) ?? '',
        by: 'end-unaffordable',
      });
    if (tickets.length === 0) return 0;
    await fillWindows(tx, run.id);
    unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
    unit.enqueue('dispatch', { repository: run.repositoryId }, { key: `dispatch:${run.repositoryId}` });
    return tickets.length;
  });
  deps.log.info({ run: input.run, ended }, 'end-unaffordable');
  return ended;
}
