/**
 * A session is over: its usage is kept and its slot is free (ADM-1). Not fenced: it ends work.
 *
 * Reads: session, lease. Writes: session, slot. Calls: nothing.
 * May fail with: `not_found`, `owner_mismatch`, `forbidden`. A repeat answers the same.
 */
import { endSessionRow, findSession, freeSlot, type Session } from '../../db/store/session.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { type LeaseClaim, leaseOfClaim } from './lease-proof.ts';

/** Ends one session of a lease; usage that arrives after the lease ended still counts. */
export async function endSession(
  deps: Deps,
  claim: Omit<LeaseClaim, 'lease'>,
  session: string,
  end: Pick<Session, 'end' | 'detail' | 'tokensIn' | 'tokensOut' | 'costMicro'>,
): Promise<void> {
  const found = await findSession(deps.database.db, session);
  if (found === null) throw new Refusal('not_found', 'there is no such session');
  await leaseOfClaim(deps.database.db, { ...claim, lease: found.leaseId });
  await deps.database.transaction(async (tx) => {
    await endSessionRow(tx, session, { ...end, detail: end.detail?.slice(0, 200) ?? null });
    await freeSlot(tx, found.installationId, found.provider, session);
  });
}
