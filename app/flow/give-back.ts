/**
 * A runner gives a ticket back (LSE-5): to the front of its block, behind its `not_before`; no failure.
 *
 * Reads: lease, ticket. Writes: lease, ticket, slot. Calls: nothing. Queues: cut-tickets, dispatch.
 * May fail with: `expired`, `revoked`, `superseded`, `not_found`, `owner_mismatch`, `forbidden`.
 */
import { listLeasesOfRunner, lockLease, lockLiveLease } from '../../db/store/lease.ts';
import type { Login } from '../../db/store/runner.ts';
import { findTicket, type Ticket } from '../../db/store/ticket.ts';
import { settleLease } from '../../db/store/turn.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { type LeaseClaim, leaseOfClaim, proofOf, refusalOf } from './lease-proof.ts';
import { asItWas } from './put-back.ts';
import { lookInFront } from './take-turn.ts';

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
    await putBack(unit, lease.id, ticket, reason);
    return true;
  });
  if (!done) throw await refusalOf(deps.database.db, seen, claim.grant);
  lookInFront(deps, seen.repositoryId);
  deps.log.info({ lease: claim.lease, runner: claim.login.runnerId, reason }, 'give-back');
}

/**
 * Takes back what a request of this runner was granted and whose answer it never had (LSE-5): the runner
 * says so by asking again under the same name, or it went away before it was told. No grant is lost by it.
 */
export async function takeBackUnheard(deps: Deps, login: Login, request: string): Promise<number> {
  const unheard = (await listLeasesOfRunner(deps.database.db, login.runnerId)).filter(
    (one) => one.request === request && !one.admitted,
  );
  let taken = 0;
  for (const seen of unheard) {
    taken += await withRun(deps, seen.runId, async (unit) => {
      const lease = await lockLiveLease(unit.tx, seen.id);
      const ticket = lease === null ? null : await findTicket(unit.tx, lease.ticketId);
      if (lease === null || lease.admitted || ticket === null) return 0;
      await putBack(unit, lease.id, ticket, 'unheard');
      return 1;
    });
    lookInFront(deps, seen.repositoryId);
  }
  if (taken > 0) deps.log.info({ runner: login.runnerId, leases: taken }, 'take-back');
  return taken;
}

async function putBack(unit: RunUnit, leaseId: string, ticket: Ticket, reason: string): Promise<void> {
  await settleLease(unit.tx, leaseId, asItWas(ticket, 'returned', reason));
  unit.enqueue('cut-tickets', { run: unit.run.id }, { key: `cut-tickets:${unit.run.id}` });
  unit.enqueue(
    'dispatch',
    { repository: unit.run.repositoryId },
    { key: `dispatch:${unit.run.repositoryId}` },
  );
}
