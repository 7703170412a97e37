/**
 * Keeps a lease, its login and its runner alive, and tells the runner what is wanted of it (LSE-3, CTL-2).
 *
 * Reads: run. Writes: lease, login, runner. Calls: nothing.
 * May fail with: `expired`, `revoked`, `superseded`, `not_found`, `owner_mismatch`, `forbidden`.
 */
import { renewLease } from '../../db/store/lease.ts';
import { findRun } from '../../db/store/run.ts';
import { renewLogin } from '../../db/store/runner.ts';
import { LIMITS } from '../domain/limits.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { type LeaseClaim, leaseOfClaim, proofOf, refusalOf } from './lease-proof.ts';

/** What a heartbeat answers. */
export interface HeartbeatOutcome {
  readonly expiresAt: Date;
  readonly control: 'none' | 'pause' | 'recall' | 'stop';
  readonly drainUntil: Date | null;
  readonly loginExpiresAt: Date;
}

/** One conditional update each for lease and login; an expired lease is never revived. */
export async function heartbeat(deps: Deps, claim: LeaseClaim): Promise<HeartbeatOutcome> {
  const { db } = deps.database;
  const renewed = await renewLease(db, proofOf(claim), LIMITS.leaseMs.default);
  if (renewed === null) throw await refusalOf(db, await leaseOfClaim(db, claim), claim.grant);
  const loginExpiresAt = await renewLogin(db, claim.login.id, LIMITS.loginMs.default);
  if (loginExpiresAt === null) throw new Refusal('unauthorized', 'the login is over', 'POST /api/v1/login');
  const run = await findRun(db, renewed.runId);
  const control =
    run?.status === 'stopped'
      ? 'stop'
      : run?.status === 'paused'
        ? 'pause'
        : renewed.recalled
          ? 'recall'
          : 'none';
  return { expiresAt: renewed.expiresAt, control, drainUntil: renewed.drainUntil, loginExpiresAt };
}
