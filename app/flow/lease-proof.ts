/** What a runner shows to act under a lease, and why it does not hold (LSE-3). */
import { timingSafeEqual } from 'node:crypto';
import type { Reader } from '../../db/client.ts';
import { findLease, type Lease, type LeaseProof } from '../../db/store/lease.ts';
import { findRun, productNow } from '../../db/store/run.ts';
import type { Login } from '../../db/store/runner.ts';
import type { Actor } from '../domain/ledger/row-fields.ts';
import { Refusal } from '../errors.ts';
import { secretHash } from './login.ts';

/** A runner's claim on a lease as it comes from the edge. */
export interface LeaseClaim {
  readonly login: Login;
  readonly lease: string;
  readonly token: string;
  readonly grant: number;
}

/** The runner of a login, as rows name who acted: `via` says how it was proved (RID-1). */
export function actorOf(login: Login): Actor {
  return { kind: 'runner', id: login.runnerId, via: login.poolToken === null ? 'oidc' : 'pool_token' };
}

/** The claim as the store compares it. */
export function proofOf(claim: LeaseClaim): LeaseProof {
  return {
    id: claim.lease,
    runnerId: claim.login.runnerId,
    tokenHash: secretHash(claim.token),
    grant: claim.grant,
  };
}

/** The lease that a claim names, if it was ever this runner's; `not_found` and `forbidden` tell nothing of others' leases. */
export async function leaseOfClaim(reader: Reader, claim: LeaseClaim): Promise<Lease> {
  return ownLease(await findLease(reader, claim.lease), claim);
}

/** The lease that was found for a claim, of a ticket or of a receipt, once it is proved to be the caller's. */
export function ownLease<T extends Pick<Lease, 'runnerId' | 'tokenHash'>>(
  lease: T | null,
  claim: LeaseClaim,
): T {
  if (lease === null) throw new Refusal('not_found', 'there is no such lease');
  if (lease.runnerId !== claim.login.runnerId)
    throw new Refusal('owner_mismatch', 'this lease is of another runner');
  if (!timingSafeEqual(lease.tokenHash, secretHash(claim.token)))
    throw new Refusal('forbidden', 'this is not the token of the lease');
  return lease;
}

/** Why a lease does not hold: `superseded` (another grant, given back), `revoked`, or `expired`. */
export async function whyNotHeld(
  reader: Reader,
  lease: Pick<Lease, 'grant' | 'state' | 'expiresAt'> & { readonly drainUntil?: Date | null },
  grant: number,
): Promise<'expired' | 'revoked' | 'superseded' | null> {
  if (lease.grant !== grant) return 'superseded';
  switch (lease.state) {
    case 'expired':
    case 'revoked':
      return lease.state;
    case 'returned':
    case 'superseded':
    case 'ended':
      return 'superseded';
    case 'live': {
      const now = await productNow(reader);
      const over = lease.expiresAt <= now || (lease.drainUntil != null && lease.drainUntil <= now);
      return over ? 'expired' : null;
    }
  }
}

/** The refusal of an act under a lease that does not hold; `fenced` where a control or a recall stands in the way. */
export async function refusalOf(reader: Reader, lease: Lease, grant: number): Promise<Refusal> {
  const why = await whyNotHeld(reader, lease, grant);
  if (why !== null) return new Refusal(why, `this lease does not hold: ${why}`);
  const run = await findRun(reader, lease.runId);
  if (lease.recalled || run === null || run.status !== 'open' || run.generation !== lease.generation)
    return new Refusal('fenced', 'nothing new may start under this lease', 'give the ticket back');
  return new Refusal('superseded', 'this lease does not hold');
}
