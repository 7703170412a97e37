/**
 * Keeps the lease of a receipt, its login and its runner alive, and tells the runner whether to go on (LSE-3, VER-3).
 *
 * Reads: run. Writes: the lease, login, runner. Calls: nothing.
 * May fail with: `expired`, `revoked`, `superseded`, `unauthorized`, `not_found`, `owner_mismatch`, `forbidden`.
 */
import { renewReceiptLease } from '../../db/store/receipt-lease.ts';
import { findRun } from '../../db/store/run.ts';
import { renewLogin } from '../../db/store/runner.ts';
import { LIMITS } from '../domain/limits.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { type LeaseClaim, proofOf } from './lease-proof.ts';
import { receiptLeaseOf, receiptRefusal } from './receipt-claim.ts';

/** What a heartbeat answers; `recall`: another head took the place of the one it runs on. */
export interface ReceiptHeartbeat {
  readonly expiresAt: Date;
  readonly control: 'none' | 'recall' | 'stop';
  readonly loginExpiresAt: Date;
}

/** One conditional update each for lease and login; an expired lease is never revived. */
export async function heartbeatReceipt(deps: Deps, claim: LeaseClaim): Promise<ReceiptHeartbeat> {
  const { db } = deps.database;
  await receiptLeaseOf(db, claim);
  const renewed = await renewReceiptLease(db, proofOf(claim), LIMITS.leaseMs.default);
  if (renewed === null) throw await receiptRefusal(db, claim);
  const loginExpiresAt = await renewLogin(db, claim.login.id, LIMITS.loginMs.default);
  if (loginExpiresAt === null) throw new Refusal('unauthorized', 'the login is over', 'POST /api/v1/login');
  const run = await findRun(db, renewed.runId);
  // what began before a pause goes on (CTL-2)
  const goesOn = run?.status === 'open' || run?.status === 'paused';
  const control = !goesOn ? 'stop' : run.head === renewed.head ? 'none' : 'recall';
  return { expiresAt: renewed.expiresAt, control, loginExpiresAt };
}
