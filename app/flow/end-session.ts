/**
 * A session is over: its usage is kept and its slot is free (ADM-1, ADM-2). Not fenced: it ends work, and usage
 * that comes after the lease was lost still counts.
 *
 * Reads: session, lease. Writes: session, slot. Calls: nothing.
 * May fail with: `not_found`, `owner_mismatch`, `forbidden`. A repeat answers the same.
 */
import type { Tx } from '../../db/client.ts';
import { endSessionRow, findSession, freeSlot, type Session } from '../../db/store/session.ts';
import { counted, isUsage } from '../domain/budget.ts';
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
    await tellEnd(tx, found, end);
  });
}

/** Keeps what a session came to and frees its slot; figures are a runner's, and cut to what can be counted. */
export async function tellEnd(
  tx: Tx,
  of: Pick<Session, 'id' | 'installationId' | 'provider'>,
  end: Pick<Session, 'end' | 'detail' | 'tokensIn' | 'tokensOut' | 'costMicro'>,
): Promise<void> {
  const figures = {
    tokensIn: counted(end.tokensIn),
    tokensOut: counted(end.tokensOut),
    costMicro: counted(end.costMicro),
  };
  const detail = end.detail?.slice(0, 200) ?? null;
  await endSessionRow(tx, of.id, { ...end, ...figures, detail, known: isUsage(end.end, figures) });
  await freeSlot(tx, of.installationId, of.provider, of.id);
}
