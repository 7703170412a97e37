/** What a wait means where nothing moves: no review ends by itself, and nobody should wait for it (GAT-3, POOL-3). */
import type { Draft, GateFacts } from './decide.ts';
import type { ReasonCode } from './reason.ts';

/** Reasons under which no review moves, so that none "ends by itself" and nobody should wait for it. */
export const STILL: ReadonlySet<ReasonCode> = new Set([
  'config_invalid',
  'not_enrolled',
  'setup_incomplete',
  'killed',
  'stopped',
  'paused',
  'needs_allow',
]);

/** What is under way, and ends by itself where anything moves. */
export const PENDING: ReadonlySet<ReasonCode> = new Set(['reviews_pending', 'verify_pending']);

/** What is found without what cannot move: under `STILL` nothing is under way, and what waited too long failed. */
export function stillFound(found: readonly Draft[], facts: GateFacts, now: number): readonly Draft[] {
  const asleep = facts.draft && facts.openTickets === 0;
  if (asleep || found.some((draft) => STILL.has(draft.code)))
    return found.filter(({ code }) => !PENDING.has(code));
  const isPast = ({ untilMs }: Draft) => untilMs != null && untilMs <= now;
  if (!found.some((draft) => draft.code === 'provider_down' && isPast(draft))) return found;
  // POOL-3: what waited for the provider until the deadline is not under way, it could not be reviewed
  return found.map((draft) =>
    draft.code === 'reviews_pending' && isPast(draft)
      ? { ...draft, code: 'ticket_unavailable', detail: 'no provider until the deadline', untilMs: null }
      : draft,
  );
}
