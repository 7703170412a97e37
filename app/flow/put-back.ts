/** What becomes of a ticket whose lease ended without an end of its own: it waits at the front of its block as it was (LSE-5). */
import type { Ticket } from '../../db/store/ticket.ts';
import type { Settlement } from '../../db/store/turn.ts';

/** Back in the queue, with nothing counted against it. */
export function asItWas(
  ticket: Pick<Ticket, 'losses' | 'timeouts' | 'transients' | 'suspect' | 'partial'>,
  leaseState: Settlement['leaseState'],
  reason: string,
): Settlement {
  return {
    leaseState,
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
  };
}
