/** What an end makes of a ticket (TKT-2, TKT-6) and of its provider (POOL-3): pure. */
import { doubled, LIMITS } from './limits.ts';
import type { TicketEnd } from './review.ts';

/** Ends that put a ticket back into the queue. */
export const TRANSIENT: ReadonlySet<TicketEnd> = new Set<TicketEnd>([
  'quota',
  'rate_limited',
  'provider_error',
  'timeout',
  'lost_runner',
]);

/** Transient ends that say something of the provider; a lost runner does not. */
const STRIKES: ReadonlySet<TicketEnd> = new Set<TicketEnd>([
  'quota',
  'rate_limited',
  'provider_error',
  'timeout',
]);

/** The least wait, and how many ends in a row are taken at a provider's word before the back-off is the least. */
const LEAST_MS = 1_000;
const TOLD_TRIES = 3;

/** What a ticket has behind it. */
export interface TicketPast {
  readonly losses: number;
  readonly timeouts: number;
  readonly transients: number;
  readonly suspect: boolean;
}
/** What an end makes of it; `notBeforeMs` counts from now, null where it is final. */
export interface EndOutcome extends TicketPast {
  readonly final: boolean;
  readonly notBeforeMs: number | null;
}

/**
 * A final end ends the ticket; a transient one puts it back with the provider's retry-after, from the
 * fourth in a row on no less than the back-off, else 30 s doubling to 15 min. Three lost grants or three time-outs are final. A loss counts only when
 * the runner had nothing else, so only the guilty ticket is counted; the others are suspects and are
 * leased alone from then on (TKT-6).
 */
export function endTicketWith(
  past: TicketPast,
  end: TicketEnd,
  facts: { readonly retryAfterMs: number | null; readonly alone: boolean },
): EndOutcome {
  if (!TRANSIENT.has(end)) return { ...past, transients: 0, final: true, notBeforeMs: null };
  const losses = past.losses + (end === 'lost_runner' && facts.alone ? 1 : 0);
  const timeouts = past.timeouts + (end === 'timeout' ? 1 : 0);
  const suspect = past.suspect || end === 'lost_runner';
  const final = losses >= LIMITS.lostGrants.default || timeouts >= LIMITS.lostGrants.default;
  const { default: min } = LIMITS.backoffMinMs;
  const own = doubled(min, LIMITS.backoffMaxMs.default, past.transients);
  // a provider that says "at once" again and again would cost a session and a row each second
  const least = past.transients < TOLD_TRIES ? LEAST_MS : own;
  const told =
    facts.retryAfterMs === null
      ? own
      : Math.min(Math.max(least, facts.retryAfterMs), LIMITS.settledMaxMs.default);
  return {
    losses,
    timeouts,
    suspect,
    transients: past.transients + 1,
    final,
    notBeforeMs: final ? null : told,
  };
}

/** A provider as far as its outages go. */
export interface ProviderState {
  readonly strikes: readonly string[];
  readonly settled: boolean;
  readonly rounds: number;
  readonly probe: string | null;
}
/** What an end makes of a provider. */
export type ProviderStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'strikes'; readonly strikes: readonly string[] }
  | { readonly kind: 'settle'; readonly ms: number; readonly rounds: number }
  | { readonly kind: 'revive' };

/**
 * POOL-3: three transient ends in a row over two tickets settle a provider for 5 minutes; each probe
 * that fails doubles that, up to 60; any end that shows it works revives it. `asked`: whether a
 * session of it was admitted at all.
 */
export function stepProvider(
  state: ProviderState,
  ticket: string,
  end: TicketEnd,
  asked: boolean,
): ProviderStep {
  const probe = state.settled && state.probe === ticket;
  const settle = (rounds: number): ProviderStep => ({
    kind: 'settle',
    rounds,
    ms: doubled(LIMITS.settledMinMs.default, LIMITS.settledMaxMs.default, rounds),
  });
  if (STRIKES.has(end) && asked) {
    if (state.settled) return probe ? settle(state.rounds + 1) : { kind: 'none' };
    const strikes = [...state.strikes, ticket].slice(-LIMITS.strikes.default);
    const enough =
      strikes.length >= LIMITS.strikes.default && new Set(strikes).size >= LIMITS.strikeTickets.default;
    return enough ? settle(0) : { kind: 'strikes', strikes };
  }
  // a probe that came to nothing says nothing: the next one goes after the same wait
  if (!asked || end === 'lost_runner') return { kind: 'none' };
  if (state.settled) return { kind: 'revive' };
  return state.strikes.length > 0 ? { kind: 'strikes', strikes: [] } : { kind: 'none' };
}
