/**
 * A runner is about to let a container go (VER-2, CTL-2): refused where a control, another head or the end of the lease
 * came between. A repeat answers the same.
 *
 * Reads: run. Writes: the lease, receipt; row `receipt.started`. Calls: nothing. Queues: decide-gate.
 * May fail with: `fenced`, `expired`, `revoked`, `superseded`, `not_found`, `owner_mismatch`, `forbidden`.
 */
import { findReceiptLease, startReceiptLease } from '../../db/store/receipt-lease.ts';
import { setPooledReceipt } from '../../db/store/receipt-work.ts';
import { withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { actorOf, type LeaseClaim, proofOf } from './lease-proof.ts';
import { keyOf, nameOf, receiptLeaseOf, receiptRefusal } from './receipt-claim.ts';

/** Records the start; nothing is let go before it returned. */
export async function startReceipt(deps: Deps, claim: LeaseClaim): Promise<void> {
  const seen = await receiptLeaseOf(deps.database.db, claim);
  const started = await withRun(deps, seen.runId, async (unit) => {
    // under the run's lock: of two starts at once one is the first
    const before = await findReceiptLease(unit.tx, seen.id);
    const lease = unit.broken ? null : await startReceiptLease(unit.tx, proofOf(claim));
    if (lease === null) return false;
    if (before?.startedAt !== null) return true;
    const { block, receipt } = nameOf(lease);
    const { id, grant } = lease;
    const seq = unit.append('receipt.started', {
      block,
      actor: actorOf(claim.login),
      cause: { kind: 'lease', id, sha256: null },
      data: { block, receipt, lease: id, grant, pool: claim.login.identity.pool },
    });
    await setPooledReceipt(unit.tx, keyOf(lease), { state: 'running', why: null, seq });
    unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
    return true;
  });
  if (!started) throw await receiptRefusal(deps.database.db, claim);
  deps.log.info({ lease: claim.lease, runner: claim.login.runnerId }, 'start-receipt');
}
