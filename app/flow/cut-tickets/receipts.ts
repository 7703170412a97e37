/** Receipts of the verify commands that the present head wants (VER-2, VER-4): reserved with its tickets. */
import { putReceipt } from '../../../db/store/receipt.ts';
import { withdrawReceipts } from '../../../db/store/receipt-work.ts';
import { gatePolicyOf } from '../../domain/gate/policy.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import type { Policy } from '../../domain/policy.ts';
import { isOver, receiptId, reusableReceipt, wantedReceipts } from '../../domain/receipt.ts';
import { foldRows } from '../../domain/run-state/fold.ts';
import { presentHead } from '../../domain/run-state/state.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';

/**
 * Reserves a receipt for each command and block that has none on this head, equal commands in one; a command that
 * passed on an earlier head with the same content passes by that. `rows` are the run's verified rows. Answers how
 * many were reserved; what became of them at GitHub is looked up by the job that is queued.
 */
export async function reserveReceipts(
  deps: Deps,
  unit: RunUnit,
  policy: Policy | null,
  rows: readonly AnyRow[],
): Promise<number> {
  const { tx, run } = unit;
  if (policy === null || policy.verify.size === 0 || run.groupHead !== null) return 0;
  const state = foldRows(rows);
  const head = presentHead(state)?.head;
  if (head === undefined || head !== run.head) return 0;
  const by = {
    actor: { kind: 'app' as const, id: deps.github.appId, via: 'schedule' },
    cause: { kind: 'schedule' as const, id: `cut-tickets:${run.id}`, sha256: null },
  };
  const counts = new Map<string, number>();
  for (const { block } of state.receipts.values()) counts.set(block, (counts.get(block) ?? 0) + 1);
  let reserved = 0;
  let waiting = false;
  await withdrawReceipts(tx, run.id, head);
  for (const wanted of wantedReceipts(state, gatePolicyOf(policy).verify)) {
    const { block, commands, definition, receipt } = wanted;
    const command = policy.verify.get(commands[0] ?? '');
    if (receipt?.from === 'pool' && !isOver(receipt)) waiting = true;
    if (receipt !== null || definition === null || command === undefined) continue;
    const n = (counts.get(block) ?? 0) + 1;
    counts.set(block, n);
    reserved += 1;
    const id = receiptId(n);
    const data = { block, receipt: id, commands: [...commands], from: command.from, definition, head };
    let seq = unit.append('receipt.reserved', { block, ...by, data });
    const earlier = reusableReceipt(state, wanted);
    if (earlier !== null) {
      const from = { block: earlier.block, receipt: earlier.id, seq: earlier.seq };
      seq = unit.append('receipt.reused', { block, ...by, data: { block, receipt: id, from } });
    }
    await putReceipt(tx, {
      runId: run.id,
      blockId: block,
      id,
      repositoryId: run.repositoryId,
      head,
      commands,
      definition,
      state: earlier === null ? 'reserved' : 'passed',
      why: null,
      workflowRun: earlier?.job?.workflowRun ?? null,
      attempt: earlier?.job?.attempt ?? null,
      job: earlier?.job?.job ?? null,
      pool: command.from === 'pool' && earlier === null ? command.pool : null,
      seq,
    });
  }
  if (reserved > 0 || waiting)
    unit.enqueue('settle-receipts', { run: run.id }, { key: `settle-receipts:${run.id}` });
  return reserved;
}
