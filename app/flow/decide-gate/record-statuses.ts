/** What a verdict makes of the blocks (BLK-5): final ones as rows, all of them as their projection. */
import { listStatuses, setStatuses } from '../../../db/store/block.ts';
import { isLoose } from '../../../db/store/held.ts';
import { isUndecided, withoutOverride } from '../../domain/gate/block.ts';
import { blockStatuses } from '../../domain/gate/dependency.ts';
import type { RowData, RowKind } from '../../domain/ledger/row-kinds.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Judged } from '../judge-run.ts';

/**
 * Records it; where blocks wait for others, queues the cut that holds or frees their tickets (LSE-1).
 *
 * Reads: block, ticket. Writes: block, rows `block.ended block.reopened`. Queues: cut-tickets.
 */
export async function recordStatuses(unit: RunUnit, judged: Judged): Promise<void> {
  const { state, verified } = judged;
  const decision = withoutOverride(judged.decision);
  // of another head, of nothing that may be reviewed or adds up: what was known of the blocks stays
  if (verified === null || isUndecided(decision)) return;
  const { tx, run } = unit;
  const append = <K extends RowKind>(kind: K, block: string, data: RowData<K>) =>
    unit.append(kind, {
      block,
      actor: { kind: 'app', id: 'countersign', via: 'schedule' },
      cause: { kind: 'schedule', id: `decide-gate:${run.id}`, sha256: null },
      data,
    });
  const statuses = blockStatuses(state, decision.reasons);
  for (const [block, status] of statuses) {
    const ended = state.blocks.get(block)?.ended ?? null;
    if (status === 'passed' || status === 'failed') {
      if (ended !== status) append('block.ended', block, { block, status });
    } else if (ended !== null) append('block.reopened', block, { block });
  }
  const stored = await listStatuses(tx, run.id);
  const changed = [...statuses].filter(([id, status]) => stored.has(id) && stored.get(id) !== status);
  await setStatuses(tx, run.id, changed);
  const depends = [...state.blocks.values()].some((block) => block.after.length > 0);
  if (depends && (await isLoose(tx, run.id)))
    unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}` });
}
