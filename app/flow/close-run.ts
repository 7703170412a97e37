import { revokeReceiptLeases } from '../../db/store/receipt-lease.ts';
import { withdrawReceipts } from '../../db/store/receipt-work.ts';
import { listRunsOnTop, updateRun } from '../../db/store/run.ts';
import { cancelTicketsOfRun, clearDue } from '../../db/store/ticket.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import type { RowData } from '../domain/ledger/row-kinds.ts';
import { withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { wakeSharers } from './share-head.ts';
import { isWhole } from './verify-run.ts';

/** What ends a run. */
export interface CloseRunInput {
  readonly run: string;
  readonly reason: RowData<'run.closed'>['reason'];
  readonly actor: Actor;
  readonly cause: Cause;
}

/**
 * Ends a run (RUN-7): its tickets are cancelled and its leases revoked in the transaction of the
 * row that says so. A run that is over is left as it is. A chain that does not verify is evidence and
 * gets no row on top.
 *
 * Reads: run, its rows. Writes: run, ticket, lease, `run.closed`, jobs for its check runs and those of
 * others on its head. Calls: nothing.
 * May fail with: `run_missing`.
 */
export function closeRun(deps: Deps, input: CloseRunInput): Promise<'closed' | 'over'> {
  return withRun(deps, input.run, async (unit) => {
    const { run, tx } = unit;
    if (run.status === 'closed' || run.status === 'merged') return 'over';
    if (await isWhole(deps, run, tx))
      unit.append('run.closed', {
        block: null,
        actor: input.actor,
        cause: input.cause,
        data: { reason: input.reason },
      });
    await updateRun(tx, run.id, {
      status: input.reason === 'merged' ? 'merged' : 'closed',
      // raised, so that what was planned before starts nothing any more (CTL-2)
      generation: run.generation + 1,
    });
    await cancelTicketsOfRun(tx, run.id, 'closed');
    await revokeReceiptLeases(tx, [run.id]);
    await withdrawReceipts(tx, run.id, null);
    await clearDue(tx, run.id);
    unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}`, priority: -10 });
    await wakeSharers(unit, run.toldHead);
    // what stands on a branch that merged has another base or another merge base now (RUN-3)
    for (const child of input.reason === 'merged' ? await listRunsOnTop(tx, run) : [])
      unit.enqueue('sync-run', { run: child }, { key: `sync-run:${child}`, priority: 10 });
    return 'closed';
  });
}
