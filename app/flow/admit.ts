/**
 * Admits one session of one reviewer under a lease (ADM-1): stored before it is answered.
 *
 * Reads: lease, ticket, session. Writes: lease, slot, session. Calls: nothing.
 * May fail with: `bad_request` (a reviewer the ticket does not name), `fenced`, `expired`, `revoked`, `superseded`.
 */
import { markAdmitted } from '../../db/store/lease.ts';
import { addSession, findSession, takeSlot } from '../../db/store/session.ts';
import { findTicket } from '../../db/store/ticket.ts';
import { COMMAND, providerOf } from '../domain/provider.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { type LeaseClaim, leaseOfClaim, proofOf, refusalOf } from './lease-proof.ts';

/** Whether a session may start. */
export type AdmitOutcome =
  | { readonly outcome: 'admitted'; readonly session: string }
  | { readonly outcome: 'provider_capacity'; readonly retryMs: number };

/** How long a runner waits before it asks again for a slot, in ms. */
const RETRY_MS = 500;

/** The slot that came with the lease is that of the first session with its provider; every other session takes its own. */
export async function admit(
  deps: Deps,
  claim: LeaseClaim,
  of: {
    readonly reviewer: string;
    readonly purpose: 'review' | 'fallback' | 'repair';
    readonly promptTokens: number;
  },
): Promise<AdmitOutcome> {
  const seen = await leaseOfClaim(deps.database.db, claim);
  const fresh = deps.ids.next();
  const outcome = await deps.database.transaction(async (tx): Promise<AdmitOutcome | 'refused'> => {
    const lease = await markAdmitted(tx, proofOf(claim));
    if (lease === null) return 'refused';
    const ticket = await findTicket(tx, lease.ticketId);
    const reviewer = [...(ticket?.spec.reviewers ?? []), ...(ticket?.spec.fallbacks ?? [])].find(
      (one) => one.name === of.reviewer,
    );
    if (reviewer === undefined)
      throw new Refusal(
        'bad_request',
        'the ticket names no such reviewer',
        'a reviewer or fallback of the ticket',
      );
    const provider = providerOf(reviewer);
    const base = {
      leaseId: lease.id,
      ticketId: lease.ticketId,
      installationId: lease.installationId,
      reviewer: of.reviewer,
      provider,
      purpose: of.purpose,
      promptTokens: of.promptTokens,
    };
    const own = lease.sessionId;
    if (provider === COMMAND) {
      await addSession(tx, { ...base, id: fresh, slot: null });
      return { outcome: 'admitted', session: fresh };
    }
    if (own !== null && provider === lease.provider && (await findSession(tx, own)) === null) {
      await addSession(tx, { ...base, id: own, slot: lease.slot });
      return { outcome: 'admitted', session: own };
    }
    const slot = await takeSlot(tx, lease.installationId, provider, fresh);
    if (slot === null) return { outcome: 'provider_capacity', retryMs: RETRY_MS };
    await addSession(tx, { ...base, id: fresh, slot });
    return { outcome: 'admitted', session: fresh };
  });
  if (outcome === 'refused') throw await refusalOf(deps.database.db, seen, claim.grant);
  return outcome;
}
