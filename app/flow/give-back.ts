/**
 * A runner gives a ticket back (LSE-5): to the front of its block, behind its `not_before`; no failure.
 *
 * Reads: lease, ticket. Writes: lease, ticket, slot. Calls: nothing. Queues: cut-tickets, dispatch.
 * May fail with: `expired`, `revoked`, `superseded`, `not_found`, `owner_mismatch`, `forbidden`.
 */
import { lockLease, settleLease } from '../../db/store/lease.ts';
import { findTicket } from '../../db/store/ticket.ts';
import { withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { type LeaseClaim, leaseOfClaim, proofOf, refusalOf } from './lease-proof.ts';

/** Puts the ticket of a lease back; `stopping` wakes another runner, a recall cuts anew. */
export async function giveBack(
  deps: Deps,
  claim: LeaseClaim,
  reason: 'stopping' | 'fenced' | 'recalled',
): Promise<void> {
  const seen = await leaseOfClaim(deps.database.db, claim);
  const done = await withRun(deps, seen.runId, async (unit) => {
    const lease = await lockLease(unit.tx, proofOf(claim));
    const ticket = lease === null ? null : await findTicket(unit.tx, lease.ticketId);
    if (lease === null || ticket === null) return false;
    await settleLease(unit.tx, lease.id, {
      leaseState: 'returned',
      ticketState: 'pending',
      front: true,
      notBeforeMs: null,
      losses: ticket.losses,
      timeouts: ticket.timeouts,
      transients: ticket.transients,
      suspect: ticket.suspect,
      end: null,
      verdict: null,
      partial: ticket.partial,
      result: null,
      reason,
      seq: null,
    });
    unit.enqueue('cut-tickets', { run: lease.runId }, { key: `cut-tickets:${lease.runId}` });
    unit.enqueue('dispatch', { repository: lease.repositoryId }, { key: `dispatch:${lease.repositoryId}` });
    return true;
  });
  if (!done) throw await refusalOf(deps.database.db, seen, claim.grant);
  deps.log.info({ lease: claim.lease, runner: claim.login.runnerId, reason }, 'give-back');
}
