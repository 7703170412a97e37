/**
 * A runner gives a receipt back (LSE-5): it waits for another one, and it is no failure. Of a head that is not the present
 * one any more nobody runs it again.
 *
 * Reads: the lease, run. Writes: the lease, receipt; rows `receipt.waiting receipt.ended`. Calls: nothing.
 * Queues: decide-gate. May fail with: `expired`, `revoked`, `superseded`, `not_found`, `owner_mismatch`, `forbidden`.
 */
import { endReceiptLease, lockReceiptLease } from '../../db/store/receipt-lease.ts';
import { aborted } from '../domain/receipt/pool.ts';
import { withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { actorOf, type LeaseClaim, proofOf } from './lease-proof.ts';
import {
  type By,
  endReceipt,
  isPresent,
  receiptLeaseOf,
  receiptRefusal,
  waitAgain,
} from './receipt-claim.ts';

/** Gives it back; what its runner let go has ended by then. */
export async function giveBackReceipt(
  deps: Deps,
  claim: LeaseClaim,
  reason: 'stopping' | 'fenced' | 'recalled',
): Promise<void> {
  const seen = await receiptLeaseOf(deps.database.db, claim);
  const by: By = { actor: actorOf(claim.login), cause: { kind: 'lease', id: seen.id, sha256: null } };
  const done = await withRun(deps, seen.runId, async (unit) => {
    const lease = await lockReceiptLease(unit.tx, proofOf(claim));
    if (lease === null) return false;
    if (lease.startedAt !== null && !unit.broken && !isPresent(unit, lease)) {
      const end = { ...aborted('superseded'), leaseState: 'returned', result: null } as const;
      await endReceipt(unit, lease, { ...end, ms: 0, told: undefined }, by);
      return true;
    }
    await endReceiptLease(unit.tx, lease, { state: 'returned', result: null });
    // one that was never let go has no row that says otherwise
    if (lease.startedAt !== null && !unit.broken) await waitAgain(unit, lease, 'given_back', by);
    return true;
  });
  if (!done) throw await receiptRefusal(deps.database.db, claim);
  deps.log.info({ lease: claim.lease, runner: claim.login.runnerId, reason }, 'give-back-receipt');
}
