/** What runners claim under leases of receipts (LSE-3), and what is written when one of them is over. */
import type { Reader } from '../../db/client.ts';
import {
  endReceiptLease,
  findLeasedReceipt,
  findReceiptLease,
  type ReceiptLease,
} from '../../db/store/receipt-lease.ts';
import { setPooledReceipt } from '../../db/store/receipt-work.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import type { RowData } from '../domain/ledger/row-kinds.ts';
import { type PoolEnd, triesAgainAfter } from '../domain/receipt/pool.ts';
import { Refusal } from '../errors.ts';
import type { RunUnit } from './append-rows.ts';
import { type LeaseClaim, ownLease, whyNotHeld } from './lease-proof.ts';

/** The lease of a receipt that a claim names, if it was ever this runner's. */
export async function receiptLeaseOf(reader: Reader, claim: LeaseClaim): Promise<ReceiptLease> {
  return ownLease(await findReceiptLease(reader, claim.lease), claim);
}

/** The refusal of an act under a lease that does not hold; `fenced` where a control or another head stands in the way. */
export async function receiptRefusal(reader: Reader, claim: LeaseClaim): Promise<Refusal> {
  const why = await whyNotHeld(reader, await receiptLeaseOf(reader, claim), claim.grant);
  return why === null
    ? new Refusal('fenced', 'the run was paused, stopped or closed, or has another head', 'give it back')
    : new Refusal(why, `this lease does not hold: ${why}`);
}

/** Who did it and why, as rows name it. */
export interface By {
  readonly actor: Actor;
  readonly cause: Cause;
}

/** Whether a run has this head still, and goes on. */
export function isPresent({ run, broken }: RunUnit, lease: ReceiptLease): boolean {
  return !broken && run.status !== 'closed' && run.status !== 'merged' && run.head === lease.head;
}

/** Says that a receipt waits, and offers it to its pool again where that is said. */
export async function waitAgain(
  unit: RunUnit,
  lease: ReceiptLease,
  why: string,
  by: By,
  more: Parameters<typeof setPooledReceipt>[2] = {},
): Promise<void> {
  const { block, receipt } = nameOf(lease);
  const seq = unit.append('receipt.waiting', { block, ...by, data: { block, receipt, why } });
  await setPooledReceipt(unit.tx, keyOf(lease), { state: 'waiting', why, seq, ...more });
}

/**
 * Ends a lease with what became of its receipt. One that nobody ran to its end is tried again by itself as long as
 * others may do better (TKT-6); of another head, or of a run that is over, it is not.
 */
export async function endReceipt(
  unit: RunUnit,
  lease: ReceiptLease,
  end: PoolEnd & {
    readonly leaseState: ReceiptLease['state'];
    readonly result: string | null;
    readonly ms: number;
    readonly told: RowData<'receipt.ended'>['told'];
  },
  by: By,
): Promise<void> {
  const { block, receipt } = nameOf(lease);
  const { state, why, conclusion, ms, told } = end;
  await endReceiptLease(unit.tx, lease, { state: end.leaseState, result: end.result });
  const seq = unit.append('receipt.ended', {
    block,
    ...by,
    data: {
      block,
      receipt,
      state,
      why,
      job: null,
      conclusion,
      ms,
      lease: lease.id,
      ...(told === undefined ? {} : { told }),
    },
  });
  const before = (await findLeasedReceipt(unit.tx, lease))?.losses ?? 0;
  const losses = state === 'aborted' ? before + (why === 'stopped' ? 0 : 1) : 0;
  await setPooledReceipt(unit.tx, keyOf(lease), { state, why, seq, losses });
  const afterMs = state === 'aborted' && isPresent(unit, lease) ? triesAgainAfter(why, losses) : null;
  if (afterMs !== null) await waitAgain(unit, lease, 'again', by, { afterMs });
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
}

/** The names of a lease's receipt in rows. */
export function nameOf({ blockId, receiptId }: ReceiptLease): { block: string; receipt: string } {
  return { block: blockId, receipt: receiptId };
}

/** The key of a lease's receipt in its projection. */
export function keyOf({ runId, blockId, receiptId }: ReceiptLease) {
  return { runId, blockId, id: receiptId };
}
