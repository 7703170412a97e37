/**
 * What time alone decides about leases of receipts (VER-3, LSE-6): of a runner that is gone, past their time, or revoked.
 * Their receipts are aborted, and run again where another runner may do better.
 *
 * Reads: the leases, run. Writes: the leases, receipt; rows `receipt.ended receipt.waiting`. Calls: nothing.
 * Queues: decide-gate. One run's failure stops no other.
 */
import {
  endReceiptLease,
  listLostReceiptLeases,
  lockOpenReceiptLease,
  pruneReceiptLeases,
  type ReceiptLease,
  shortenReceiptLeases,
} from '../../db/store/receipt-lease.ts';
import { findRunner } from '../../db/store/runner.ts';
import { LIMITS } from '../domain/limits.ts';
import { aborted } from '../domain/receipt/pool.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { endReceipt } from './receipt-claim.ts';

/** Most leases one sweep takes; the next one goes on. */
const BATCH = 200;
const KEPT_DAYS = 1;

/** Ends what is lost; answers how many leases that were. */
export async function expireReceipts(deps: Deps): Promise<number> {
  const { db } = deps.database;
  await shortenReceiptLeases(db, LIMITS.leaseMs.default);
  const lost = await loseReceiptLeases(deps, await listLostReceiptLeases(db, BATCH));
  await pruneReceiptLeases(db, KEPT_DAYS);
  return lost;
}

/** Ends leases whose runner is gone, or that were revoked; what came to life meanwhile goes on. */
export async function loseReceiptLeases(deps: Deps, leases: readonly ReceiptLease[]): Promise<number> {
  let lost = 0;
  for (const { id, runId } of leases) {
    try {
      lost += await withRun(deps, runId, (unit) => lose(deps, unit, id));
    } catch (error) {
      deps.log.error({ run: runId, err: error }, 'expire-receipts');
    }
  }
  if (lost > 0) deps.log.info({ leases: lost }, 'expire-receipts');
  return lost;
}

async function lose(deps: Deps, unit: RunUnit, id: string): Promise<number> {
  const lease = await lockOpenReceiptLease(unit.tx, id);
  if (lease === null) return 0;
  const revoked = lease.state === 'revoked';
  const runner = await findRunner(unit.tx, lease.runnerId);
  const gone = runner === null || runner.endedAt !== null;
  // a heartbeat came between the look and the lock
  if (!revoked && !gone && lease.expiresAt > unit.now) return 0;
  const leaseState = revoked ? 'revoked' : 'expired';
  const isOver = unit.run.status === 'closed' || unit.run.status === 'merged';
  // a run that is over, or cut, gets no row; what was revoked before its start waits as it did
  if (unit.broken || isOver || (revoked && lease.startedAt === null)) {
    await endReceiptLease(unit.tx, lease, { state: leaseState, result: null });
    return 1;
  }
  await endReceipt(
    unit,
    lease,
    {
      ...aborted(revoked ? 'stopped' : 'lost'),
      leaseState,
      result: null,
      ms: lease.startedAt === null ? 0 : Math.max(0, unit.now.getTime() - lease.startedAt.getTime()),
      told: undefined,
    },
    {
      actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
      cause: { kind: 'lease', id: lease.id, sha256: null },
    },
  );
  return 1;
}
