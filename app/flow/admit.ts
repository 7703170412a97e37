/**
 * Admits one session of one reviewer under a lease (ADM-1, ADM-2): stored before it is answered, and all of lease,
 * generation and budget are looked at each time it is asked, before and after a wait.
 *
 * Reads: lease, ticket, run, policy, settings. Writes: lease, slot, session, spend. Calls: nothing.
 * May fail with: `bad_request` (a reviewer the ticket does not name), `budget`, `fenced`, `expired`, `revoked`,
 * `superseded`.
 */
import type { Tx } from '../../db/client.ts';
import { type Lease, lockForAdmission, markAdmitted } from '../../db/store/lease.ts';
import { findRun } from '../../db/store/run.ts';
import {
  addSession,
  admitWaiting,
  anyBefore,
  findSession,
  freeSlot,
  listSessions,
  type NewSession,
  refuseSession,
  seeWaiting,
  takeSlot,
} from '../../db/store/session.ts';
import { readCeiling } from '../../db/store/setting.ts';
import { readSpent, type SpendPlace, settleSpend, takeSpend } from '../../db/store/spend.ts';
import { findTicket } from '../../db/store/ticket.ts';
import {
  countsMoney,
  exhausted,
  isOutsider,
  type LimitedScope,
  limitsOf,
  type Reservation,
  reservationOf,
  saysExhausted,
  saysUnpriced,
} from '../domain/budget.ts';
import { COMMAND, providerOf } from '../domain/provider.ts';
import { Refusal } from '../errors.ts';
import { placesOf } from './budget-counts.ts';
import type { Deps } from './deps.ts';
import { knownPolicy } from './known-policy.ts';
import { type LeaseClaim, leaseOfClaim, proofOf, refusalOf } from './lease-proof.ts';

/** Whether a session may start. */
export type AdmitOutcome =
  | { readonly outcome: 'admitted'; readonly session: string }
  | { readonly outcome: 'provider_capacity'; readonly retryMs: number };

/** What a runner asks for. */
export interface AdmitAsk {
  readonly reviewer: string;
  readonly purpose: 'review' | 'fallback' | 'repair';
  readonly promptTokens: number;
}

/** How long a runner waits before it asks again for a slot, in ms. */
const RETRY_MS = 500;
/** Sessions that are booked at once before a budget is called used up. */
const SETTLE = 1_000;

/** Rolls an admission back whose budget is used up: nothing of it stays. */
class Exhausted extends Error {
  readonly says: string;
  constructor(says: string) {
    super(says);
    this.says = says;
  }
}

/**
 * The slot that came with the lease is that of the first session with its provider; every other session takes its
 * own, in the order of asking. A budget that is used up is the refusal `budget`, by name; nothing was spent then.
 */
export async function admit(deps: Deps, claim: LeaseClaim, of: AdmitAsk): Promise<AdmitOutcome> {
  const seen = await leaseOfClaim(deps.database.db, claim);
  const fresh = deps.ids.next();
  const once = () => deps.database.transaction((tx) => admitLocked(tx, claim, of, fresh));
  let outcome: AdmitOutcome | null;
  try {
    outcome = await once().catch(async (error: unknown) => {
      if (!(error instanceof Exhausted)) throw error;
      // what ended meanwhile may have cost less than it reserved
      const booked = await deps.database.transaction((tx) => settleSpend(tx, seen.installationId, SETTLE));
      if (booked === 0) throw error;
      return once();
    });
  } catch (error) {
    if (!(error instanceof Exhausted)) throw error;
    await deps.database.transaction((tx) => keepRefused(tx, claim, of, fresh, error.says));
    deps.log.warn({ lease: claim.lease, ticket: seen.ticketId, reviewer: of.reviewer }, 'admit.budget');
    throw new Refusal(
      'budget',
      error.says,
      'another month, a larger budget, or a person who answers for the file',
    );
  }
  if (outcome === null) throw await refusalOf(deps.database.db, seen, claim.grant);
  return outcome;
}

async function admitLocked(
  tx: Tx,
  claim: LeaseClaim,
  of: AdmitAsk,
  fresh: string,
): Promise<AdmitOutcome | null> {
  const lease = await lockForAdmission(tx, proofOf(claim));
  if (lease === null) return null;
  const { base, budget } = await describe(tx, lease, of);
  if (base.provider === COMMAND) {
    await addSession(tx, { ...base, id: fresh, state: 'admitted', settled: true });
    await markAdmitted(tx, lease.id);
    return { outcome: 'admitted', session: fresh };
  }
  if (budget.unpriced !== null) throw new Exhausted(budget.unpriced);
  const found = await slotFor(tx, lease, of, base.provider, fresh);
  if (found.slot === null) {
    const short = exhausted(budget.limits, await readSpent(tx, budget.places), budget.reservation);
    if (short !== null) throw new Exhausted(wordsOf(budget.limits, short));
    if (!found.waits) await addSession(tx, { ...base, id: found.id, state: 'waiting' });
    return { outcome: 'provider_capacity', retryMs: RETRY_MS };
  }
  if (found.waits) await admitWaiting(tx, found.id, found.slot);
  else await addSession(tx, { ...base, id: found.id, slot: found.slot, state: 'admitted' });
  await markAdmitted(tx, lease.id);
  // last: the counts it locks are let go with the commit that follows
  const short = await takeSpend(
    tx,
    found.id,
    budget.places.map((place, i) => ({ ...place, limit: (budget.limits[i] as LimitedScope).limit })),
    budget.reservation,
  );
  if (short !== null) throw new Exhausted(wordsOf(budget.limits, short));
  return { outcome: 'admitted', session: found.id };
}

interface Budget {
  readonly limits: readonly LimitedScope[];
  readonly places: readonly SpendPlace[];
  readonly reservation: Reservation;
  /** Money is limited and this reviewer has no price; null: it can be counted. */
  readonly unpriced: string | null;
}

/** The session as it would be stored, and the counts it is held against: by the run's policy of now, and the settings. */
async function describe(
  tx: Tx,
  lease: Lease,
  of: AdmitAsk,
): Promise<{ base: Omit<NewSession, 'id' | 'state'>; budget: Budget }> {
  const ticket = await findTicket(tx, lease.ticketId);
  const reviewer = [...(ticket?.spec.reviewers ?? []), ...(ticket?.spec.fallbacks ?? [])].find(
    (one) => one.name === of.reviewer,
  );
  if (ticket === null || reviewer === undefined)
    throw new Refusal(
      'bad_request',
      'the ticket names no such reviewer',
      'a reviewer or fallback of the ticket',
    );
  const run = await findRun(tx, lease.runId);
  const policy = await knownPolicy(tx, run?.policyHash ?? ticket.policyHash);
  const prices = new Map(Object.entries(policy?.budget.prices ?? {}));
  const price = prices.get(of.reviewer) ?? null;
  const outsider = isOutsider(run?.allowedRule ?? null);
  const reservation = reservationOf(of.promptTokens, reviewer.max_output, price);
  const limits = limitsOf(policy?.budget ?? null, await readCeiling(tx, lease.installationId), outsider);
  return {
    base: {
      leaseId: lease.id,
      ticketId: lease.ticketId,
      installationId: lease.installationId,
      repositoryId: lease.repositoryId,
      runId: lease.runId,
      blockId: ticket.blockId,
      outsider,
      reviewer: of.reviewer,
      provider: providerOf(reviewer),
      purpose: of.purpose,
      promptTokens: of.promptTokens,
      priceIn: price?.input ?? null,
      priceOut: price?.output ?? null,
      reservedTokens: reservation.tokens,
      reservedMicro: reservation.micro,
    },
    budget: {
      limits,
      places: await placesOf(tx, limits, {
        runId: lease.runId,
        blockId: ticket.blockId,
        repositoryId: lease.repositoryId,
        installationId: lease.installationId,
      }),
      reservation,
      unpriced: price === null && countsMoney(limits) ? saysUnpriced(of.reviewer) : null,
    },
  };
}

/** The slot of a session: that of the lease, one that was handed to it, or a free one that nobody waits for before it. */
async function slotFor(
  tx: Tx,
  lease: Lease,
  of: AdmitAsk,
  provider: string,
  fresh: string,
): Promise<{ readonly id: string; readonly slot: number | null; readonly waits: boolean }> {
  const own = lease.sessionId;
  if (own !== null && provider === lease.provider && (await findSession(tx, own)) === null)
    return { id: own, slot: lease.slot, waits: false };
  const waiting = await seeWaiting(tx, lease.id, of.reviewer, of.purpose);
  if (waiting !== null && waiting.slot !== null) return { id: waiting.id, slot: waiting.slot, waits: true };
  const id = waiting?.id ?? fresh;
  const later = await anyBefore(tx, lease.installationId, provider, waiting?.turn ?? null);
  const slot = later ? null : await takeSlot(tx, lease.installationId, provider, id);
  return { id, slot, waits: waiting !== null };
}

/** Keeps the refusal, once a reviewer and purpose, and gives back a slot that it had waited for. */
async function keepRefused(
  tx: Tx,
  claim: LeaseClaim,
  of: AdmitAsk,
  fresh: string,
  says: string,
): Promise<void> {
  const lease = await lockForAdmission(tx, proofOf(claim));
  if (lease === null) return;
  const mine = (await listSessions(tx, lease.id)).filter(
    (one) => one.reviewer === of.reviewer && one.purpose === of.purpose,
  );
  const waiting = mine.find((one) => one.state === 'waiting');
  if (waiting !== undefined) {
    await refuseSession(tx, waiting.id, says);
    if (waiting.slot !== null) await freeSlot(tx, waiting.installationId, waiting.provider, waiting.id);
  } else if (!mine.some((one) => one.state === 'refused')) {
    const { base } = await describe(tx, lease, of);
    await addSession(tx, { ...base, id: fresh, state: 'refused', settled: true, detail: says });
  }
}

function wordsOf(
  limits: readonly LimitedScope[],
  short: { readonly at: number; readonly by: 'sessions' | 'tokens' | 'micro' },
): string {
  const limit = limits[short.at];
  return limit === undefined ? 'the budget is used up' : saysExhausted(limit, short.by);
}
