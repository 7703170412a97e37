import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  counted,
  exhausted,
  isUsage,
  leastReservation,
  limitsOf,
  NO_CEILING,
  reservationOf,
  saysExhausted,
} from '../../app/domain/budget.ts';
import { parsePolicy } from '../../app/domain/policy.ts';

const reading = (budget: string) =>
  parsePolicy(
    Buffer.from(`version: 1
reviewers:
  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], trusted: true}
  a: {uses: openai, model: m-1}
  b: {uses: xai, model: m-2}
budget: ${budget}
`),
  );
const budgetOf = (text: string) => {
  const read = reading(text);
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  return read.policy.budget;
};
const none = { sessions: null, tokens: null, micro: null };

describe('ADM-2: what a session reserves', () => {
  test.each([
    ['prompt and answer', 1_000, 500, 1_500],
    ['no answer known', 1_000, undefined, 20_000],
    ['no prompt known', 0, 500, 20_000],
    ['a prompt longer than the guess', 50_000, undefined, 50_000],
    ['nothing known', 0, undefined, 20_000],
  ])('%s', (_, prompt, most, tokens) => {
    expect(reservationOf(prompt, most, null)).toEqual({ tokens, micro: 0 });
  });

  test('no session of a reviewer reserves less than its least', () => {
    const price = fc.record({
      input: fc.double({ min: 0, max: 100, noNaN: true }),
      output: fc.double({ min: 0, max: 100, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200_000 }),
        fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: undefined }),
        fc.option(price),
        (prompt, most, of) => {
          const least = leastReservation(most, of);
          const real = reservationOf(prompt, most, of);
          expect(least.tokens).toBeLessThanOrEqual(real.tokens);
          expect(least.micro).toBeLessThanOrEqual(real.micro);
        },
      ),
    );
  });

  test('money by price, rounded up, and figures of a runner within bounds', () => {
    expect(reservationOf(1_001, 500, { input: 2.5, output: 10 })).toEqual({ tokens: 1_501, micro: 7_503 });
    expect(counted(Number.MAX_SAFE_INTEGER)).toBe(1_000_000_000);
    expect(counted(-5)).toBe(0);
  });

  test('an answer or a time-out without figures was not counted; a call that failed cost nothing', () => {
    const zero = { tokensIn: 0, tokensOut: 0, costMicro: 0 };
    expect(
      (['complete', 'invalid', 'timeout', 'abandoned', 'failed'] as const).filter((end) =>
        isUsage(end, zero),
      ),
    ).toEqual(['failed']);
    expect(isUsage('timeout', { ...zero, tokensIn: 1 })).toBe(true);
  });
});

describe('ADM-2: which counts have a limit', () => {
  test('none where nothing is said; outsiders have a fifth of the month, or their own', () => {
    expect(limitsOf(budgetOf('{}'), NO_CEILING, true)).toEqual([]);
    expect(limitsOf(null, { tokens: 7, usd: null }, true)).toEqual([
      { scope: 'ceiling', limit: { ...none, tokens: 7 } },
    ]);
    const month = budgetOf('{month: {tokens: 1004}}');
    expect(limitsOf(month, NO_CEILING, false).map(({ scope }) => scope)).toEqual(['month']);
    expect(limitsOf(month, NO_CEILING, true)).toEqual([
      { scope: 'outsiders', limit: { ...none, tokens: 200 } },
      { scope: 'month', limit: { ...none, tokens: 1004 } },
    ]);
    const own = budgetOf('{outsiders: {tokens: 9}}');
    expect(limitsOf(own, NO_CEILING, true)).toEqual([{ scope: 'outsiders', limit: { ...none, tokens: 9 } }]);
    expect(limitsOf(own, NO_CEILING, false)).toEqual([]);
  });

  test('in the order in which they are locked, and the first that is used up is named', () => {
    const limits = limitsOf(
      budgetOf('{block: {sessions: 2}, run: {sessions: 9, tokens: 100}, month: {tokens: 1000}}'),
      { tokens: 5_000, usd: null },
      false,
    );
    expect(limits.map(({ scope }) => scope)).toEqual(['block', 'run', 'month', 'ceiling']);
    const at = (spent: readonly [number, number][]) =>
      exhausted(
        limits,
        spent.map(([sessions, tokens]) => ({ sessions, tokens, micro: 0 })),
        { tokens: 10, micro: 0 },
      );
    expect(at([])).toBeNull();
    expect(
      at([
        [1, 0],
        [8, 90],
      ]),
    ).toBeNull();
    expect(at([[2, 0]])).toEqual({ at: 0, by: 'sessions' });
    expect(
      at([
        [0, 0],
        [0, 91],
      ]),
    ).toEqual({ at: 1, by: 'tokens' });
    expect(
      at([
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 4_991],
      ]),
    ).toEqual({ at: 3, by: 'tokens' });
    expect(
      limits.map((limit) => saysExhausted(limit, limit.scope === 'block' ? 'sessions' : 'tokens')),
    ).toEqual([
      "the block's budget of 2 sessions is used up (budget.block.sessions)",
      "the run's budget of 100 tokens is used up (budget.run.tokens)",
      "the repository's budget of the month of 1000 tokens is used up (budget.month.tokens)",
      "the installation's ceiling of the month of 5000 tokens is used up (setting ceiling.tokens)",
    ]);
  });
});

describe('POL-1: what a policy may say of budgets', () => {
  test.each([
    ['{run: {usd: 5}}', 'a limit in usd needs a price of each model: a, b has none'],
    ['{prices: {lint: {input: 1, output: 1}}}', 'no model is named lint'],
    ['{run: 5}', '5 is not accepted'],
    ['{run: {sesions: 5}}', 'did you mean sessions?'],
    ['{month: {tokens: 0}}', '0 is not accepted'],
    [
      '{month: {usd: -1}, prices: {a: {input: 1, output: 1}, b: {input: 1, output: 1}}}',
      '-1 is not accepted',
    ],
  ])('%s is refused', (text, says) => {
    const read = reading(text);
    expect(read.ok).toBe(false);
    if (!read.ok) {
      expect(read.errors.map((error) => error.message).join('; ')).toContain(says);
      expect(read.errors.every((error) => error.accepted !== '')).toBe(true);
    }
  });
});
