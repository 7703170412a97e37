import { updateRun } from '../../db/store/run.ts';
import { cancelTicketsOfRun, clearDue } from '../../db/store/ticket.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import type { RowData } from '../domain/ledger/row-kinds.ts';
import { withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';

/** What ends a run. */
export interface CloseRunInput {
  readonly run: string;
  readonly reason: RowData<'run.closed'>['reason'];
  readonly actor: Actor;
  readonly cause: Cause;
}

/**
 * Ends a run (RUN-7): its tickets are cancelled and its leases revoked in the transaction of the
 * row that says so. A run that is over is left as it is.
 *
 * Reads: run. Writes: run, ticket, lease, `run.closed`, a job for its check runs. Calls: nothing.
 * May fail with: `run_missing`.
 */
export function closeRun(deps: Deps, input: CloseRunInput): Promise<'closed' | 'over'> {
  return withRun(deps, input.run, async (unit) => {
    const { run, tx } = unit;
    if (run.status === 'closed' || run.status === 'merged') return 'over';
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
    await clearDue(tx, run.id);
    unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}`, priority: -10 });
    return 'closed';
  });
}
