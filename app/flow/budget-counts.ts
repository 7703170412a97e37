/** Which counts a session is held against, and who waits for what no budget has any more (ADM-2). */
import type { Reader } from '../../db/client.ts';
import { readCeiling } from '../../db/store/setting.ts';
import { readPeriod, readSpent, readUncertain, type SpendPlace } from '../../db/store/spend.ts';
import {
  type CountedAt,
  countedOf,
  countsMoney,
  exhausted,
  isOutsider,
  type LimitedScope,
  leastReservation,
  limitsOf,
  saysExhausted,
  saysUnpriced,
} from '../domain/budget.ts';
import type { Policy } from '../domain/policy.ts';
import { COMMAND } from '../domain/provider.ts';
import type { TicketReviewer } from '../domain/review.ts';
import { pointedAt } from '../domain/ticket-spec.ts';
import { knownPolicy } from './known-policy.ts';

/** The counts of these limits, in their order; those of a month are of the present one. */
export async function placesOf(
  reader: Reader,
  limits: readonly LimitedScope[],
  at: CountedAt,
  month?: string,
): Promise<SpendPlace[]> {
  const ofMonth = limits.some(({ scope }) => !OF_RUN.has(scope));
  const period = ofMonth ? (month ?? (await readPeriod(reader))) : '';
  return limits.map(({ scope }) => ({
    scope,
    id: countedOf(scope, at) ?? '',
    period: OF_RUN.has(scope) ? '' : period,
  }));
}

const OF_RUN: ReadonlySet<string> = new Set(['block', 'run']);

/** Tickets of one block that ask the same reviewers, in a run under its policy of now. */
export interface Asked extends CountedAt {
  readonly policyHash: string | null;
  readonly allowedRule: string | null;
  readonly provider: string;
  readonly spec: Parameters<typeof pointedAt>[0];
}

/** No reviewer of theirs would be admitted now; `final`: nor when all that is under way costs nothing. */
export interface Short {
  readonly final: boolean;
  readonly detail: string;
}

/**
 * Those of an installation's waiting tickets that no admission would take. With a command among the reviewers there
 * is work for a runner whatever the budget is.
 */
export async function readShort<T extends Asked>(
  reader: Reader,
  installationId: string,
  asked: readonly T[],
): Promise<ReadonlyMap<T, Short>> {
  const ceiling = await readCeiling(reader, installationId);
  const limited = [];
  for (const of of asked) {
    const reviewers = pointedAt(of.spec, of.provider);
    if (reviewers.length === 0 || reviewers.some((one) => one.uses === COMMAND)) continue;
    const policy = await knownPolicy(reader, of.policyHash);
    const limits = limitsOf(policy?.budget ?? null, ceiling, isOutsider(of.allowedRule));
    if (limits.length > 0) limited.push({ of, reviewers, policy, limits });
  }
  const short = new Map<T, Short>();
  if (limited.length === 0) return short;
  const month = await readPeriod(reader);
  const placed = [];
  for (const one of limited)
    placed.push({ ...one, places: await placesOf(reader, one.limits, one.of, month) });
  const places = placed.flatMap((one) => one.places);
  const spent = await readSpent(reader, places);
  const uncertain = await readUncertain(reader, installationId, places);
  let from = 0;
  for (const { of, reviewers, policy, limits } of placed) {
    const now = spent.slice(from, from + limits.length);
    const least = now.map((count, i) => ({
      sessions: count.sessions,
      tokens: count.tokens - (uncertain[from + i]?.tokens ?? 0),
      micro: count.micro - (uncertain[from + i]?.micro ?? 0),
    }));
    from += limits.length;
    const detail = whyNone(reviewers, policy, limits, now);
    if (detail !== null) short.set(of, { final: whyNone(reviewers, policy, limits, least) !== null, detail });
  }
  return short;
}

/** Why the first of these reviewers would not be admitted; null: one of them would. */
function whyNone(
  reviewers: readonly TicketReviewer[],
  policy: Policy | null,
  limits: readonly LimitedScope[],
  spent: Parameters<typeof exhausted>[1],
): string | null {
  const prices = new Map(Object.entries(policy?.budget.prices ?? {}));
  const whys = reviewers.map(({ name, max_output }) => {
    const price = prices.get(name) ?? null;
    if (price === null && countsMoney(limits)) return saysUnpriced(name);
    const over = exhausted(limits, spent, leastReservation(max_output, price));
    return over === null ? null : `${name}: ${saysExhausted(limits[over.at] as LimitedScope, over.by)}`;
  });
  return whys.includes(null) ? null : (whys[0] ?? null);
}
