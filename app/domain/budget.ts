/**
 * Budgets (ADM-2): what a session reserves before it starts, what it is charged once its usage is known, and
 * which counts have a limit. Money is counted in millionths of a US dollar, and only where the policy gives prices.
 */
import type { Policy } from './policy.ts';

/** What is counted, in the order in which counts are locked. */
export const SPEND_SCOPES = ['block', 'run', 'outsiders', 'month', 'ceiling'] as const;
/** One of them: a block of a run, a run, outsiders of a repository in a month, a repository, an installation in a month. */
export type SpendScope = (typeof SPEND_SCOPES)[number];

/** Where a session is counted. */
export interface CountedAt {
  readonly runId: string;
  readonly blockId: string;
  readonly repositoryId: string | null;
  readonly installationId: string;
}

/** Of what the count of a scope is. */
export function countedOf(scope: SpendScope, at: CountedAt): string | null {
  switch (scope) {
    case 'block':
      return `${at.runId}/${at.blockId}`;
    case 'run':
      return at.runId;
    case 'outsiders':
    case 'month':
      return at.repositoryId;
    case 'ceiling':
      return at.installationId;
  }
}

/** A limit of one count; null: none of that kind. */
export interface SpendLimit {
  readonly sessions: number | null;
  readonly tokens: number | null;
  readonly micro: number | null;
}

/** The monthly ceiling of an installation (POL-2). */
export interface Ceiling {
  readonly tokens: number | null;
  readonly usd: number | null;
}
/** No ceiling. */
export const NO_CEILING: Ceiling = { tokens: null, usd: null };

/** What a session may cost, before it starts. */
export interface Reservation {
  readonly tokens: number;
  readonly micro: number;
}
/** US dollars for a million tokens, which is millionths of a dollar a token. */
export interface Price {
  readonly input: number;
  readonly output: number;
}

/** Reserved for a session of which nobody says how much it may answer. */
export const UNKNOWN_TOKENS = 20_000;
/** No session has more: a runner's figures are foreign, and a count must not overflow by them. */
const MOST_TOKENS = 1_000_000_000;
/** The part of a month's budget that is outsiders', where the policy does not say. */
const OUTSIDERS_PART = 5;
const MICRO = 1_000_000;

/** A runner's figure as it may be counted. */
export function counted(figure: number): number {
  return Math.min(Math.max(0, Math.ceil(figure)), MOST_TOKENS);
}

/** ADM-2: the prompt's tokens and the most that is answered; 20,000 where one of them is not known, or the prompt if it is longer. */
export function reservationOf(
  promptTokens: number,
  maxOutput: number | undefined,
  price: Price | null,
): Reservation {
  const prompt = counted(promptTokens);
  const known = prompt > 0 && maxOutput !== undefined;
  const output = known ? maxOutput : Math.max(0, UNKNOWN_TOKENS - prompt);
  const micro = price === null ? 0 : Math.ceil(prompt * price.input + output * price.output);
  return { tokens: prompt + output, micro };
}

/** The least that any session of a reviewer reserves, whatever its prompt is. */
export function leastReservation(maxOutput: number | undefined, price: Price | null): Reservation {
  if (maxOutput !== undefined) return reservationOf(1, maxOutput, price);
  const cheapest = price === null ? 0 : Math.min(price.input, price.output);
  return { tokens: UNKNOWN_TOKENS, micro: Math.ceil(UNKNOWN_TOKENS * cheapest) };
}

/**
 * Whether the figures of an ended session are its usage. A call that failed may well have cost nothing; an answer
 * or a time-out that cost nothing was only not counted, and its reservation stays its charge.
 */
export function isUsage(
  end: 'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned' | null,
  of: { readonly tokensIn: number; readonly tokensOut: number; readonly costMicro: number },
): boolean {
  return end === 'failed' || of.tokensIn + of.tokensOut + of.costMicro > 0;
}

/** A count that a session is held against, with the name of what sets its limit. */
export interface LimitedScope {
  readonly scope: SpendScope;
  readonly limit: SpendLimit;
}

/** The counts with a limit, in their order; `outsider`: of a run that a person or `allow.authors` let spend (RUN-10). */
export function limitsOf(
  budget: Policy['budget'] | null,
  ceiling: Ceiling,
  outsider: boolean,
): LimitedScope[] {
  const { block, run, month, outsiders } = budget ?? { block: {}, run: {}, month: {}, outsiders: {} };
  const part = (own: number | undefined, whole: number | undefined) =>
    own ?? (whole === undefined ? undefined : Math.floor(whole / OUTSIDERS_PART));
  const monthMicro = microOf(month.usd);
  const found: [SpendScope, number | undefined, number | undefined, number | undefined][] = [
    ['block', block.sessions, undefined, undefined],
    ['run', run.sessions, run.tokens, microOf(run.usd)],
    ...(outsider
      ? [
          [
            'outsiders',
            undefined,
            part(outsiders.tokens, month.tokens),
            part(microOf(outsiders.usd), monthMicro),
          ] as [SpendScope, undefined, number | undefined, number | undefined],
        ]
      : []),
    ['month', undefined, month.tokens, monthMicro],
    ['ceiling', undefined, ceiling.tokens ?? undefined, microOf(ceiling.usd ?? undefined)],
  ];
  return found.flatMap(([scope, sessions, tokens, micro]) =>
    sessions === undefined && tokens === undefined && micro === undefined
      ? []
      : [{ scope, limit: { sessions: sessions ?? null, tokens: tokens ?? null, micro: micro ?? null } }],
  );
}

/** Whether a run is an outsider's: a person or `allow.authors` let it spend (RUN-10). */
export function isOutsider(allowedRule: string | null): boolean {
  return allowedRule === 'person' || allowedRule === 'allow_list';
}

/** Whether a money limit is among them: then a session without a price cannot be held against it. */
export function countsMoney(limits: readonly LimitedScope[]): boolean {
  return limits.some(({ limit }) => limit.micro !== null);
}

/** The first count that one more session would not fit into; null: it fits. `spent` in the order of `limits`. */
export function exhausted(
  limits: readonly LimitedScope[],
  spent: readonly { readonly sessions: number; readonly tokens: number; readonly micro: number }[],
  take: Reservation,
): { readonly at: number; readonly by: 'sessions' | 'tokens' | 'micro' } | null {
  for (const [at, { limit }] of limits.entries()) {
    const has = spent[at] ?? { sessions: 0, tokens: 0, micro: 0 };
    if (limit.sessions !== null && has.sessions + 1 > limit.sessions) return { at, by: 'sessions' };
    if (limit.tokens !== null && has.tokens + take.tokens > limit.tokens) return { at, by: 'tokens' };
    if (limit.micro !== null && has.micro + take.micro > limit.micro) return { at, by: 'micro' };
  }
  return null;
}

const WORDS: Readonly<Record<SpendScope, string>> = {
  block: "the block's budget",
  run: "the run's budget",
  outsiders: "the month's budget for outsiders",
  month: "the repository's budget of the month",
  ceiling: "the installation's ceiling of the month",
};

/** A budget that is used up, as a person reads it: whose, and the key that sets it. */
export function saysExhausted({ scope, limit }: LimitedScope, by: 'sessions' | 'tokens' | 'micro'): string {
  const unit = by === 'micro' ? 'usd' : by;
  const most = by === 'micro' ? `${(limit.micro ?? 0) / MICRO} USD` : `${limit[by]} ${by}`;
  const key = scope === 'ceiling' ? `setting ceiling.${unit}` : `budget.${scope}.${unit}`;
  return `${WORDS[scope]} of ${most} is used up (${key})`;
}

/** A reviewer without a price where a limit in money holds, as a person reads it. */
export function saysUnpriced(reviewer: string): string {
  return `${reviewer} has no price, and a limit in USD holds (budget.prices.${reviewer})`;
}

function microOf(usd: number | undefined): number | undefined {
  return usd === undefined ? undefined : Math.round(usd * MICRO);
}
