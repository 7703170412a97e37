import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type PlanInput, type PlanWork, plan, usefulTickets } from '../../app/domain/plan.ts';

const work = (more: Partial<PlanWork> = {}): PlanWork => ({
  run: 'r',
  provider: 'command',
  ready: 8,
  nextMs: null,
  leased: 0,
  parallel: 6,
  ...more,
});
const pool = { name: 'p', capacity: 4, running: 0, pending: 0, settledUntilMs: null };
const input = (more: Partial<PlanInput> = {}): PlanInput => ({
  nowMs: 1_000,
  work: [work()],
  pools: [pool],
  providers: [{ name: 'openai', free: 4, settledUntilMs: null }],
  perRunner: 4,
  ...more,
});

describe('POOL-2: the plan', () => {
  test('POOL-2: nothing waits: none', () => {
    expect(plan(input({ work: [] }))).toEqual({ kind: 'none' });
    expect(plan(input({ work: [work({ ready: 0, leased: 3 })] }))).toEqual({ kind: 'none' });
  });
  test('POOL-2: as many runners as the tickets that caps allow keep busy', () => {
    expect(plan(input())).toEqual({ kind: 'start', starts: [{ pool: 'p', n: 2 }] });
    expect(plan(input({ work: [work({ ready: 1 })] }))).toEqual({
      kind: 'start',
      starts: [{ pool: 'p', n: 1 }],
    });
    expect(usefulTickets(input({ work: [work({ provider: 'openai', ready: 50, parallel: 16 })] }))).toBe(4);
  });
  test('POOL-2: what runs or is on its way is not started again', () => {
    expect(plan(input({ pools: [{ ...pool, running: 1, pending: 1 }] }))).toEqual({ kind: 'none' });
  });
  test('POOL-2: the second pool takes what the first has no room for', () => {
    const many = Array.from({ length: 10 }, (_, i) => work({ run: `r${i}` }));
    expect(
      plan(
        input({
          work: many,
          pools: [
            { ...pool, capacity: 2 },
            { ...pool, name: 'q', capacity: 3 },
          ],
        }),
      ),
    ).toEqual({
      kind: 'start',
      starts: [
        { pool: 'p', n: 2 },
        { pool: 'q', n: 3 },
      ],
    });
  });
  test('POOL-3: behind a settled provider: wait until its time, then one', () => {
    const down = { name: 'openai', free: 4, settledUntilMs: 5_000 };
    const only = [work({ provider: 'openai' })];
    expect(plan(input({ work: only, providers: [down] }))).toEqual({
      kind: 'wait',
      reason: 'provider_down',
      untilMs: 5_000,
    });
    expect(plan(input({ work: only, providers: [down], nowMs: 5_000 }))).toEqual({
      kind: 'start',
      starts: [{ pool: 'p', n: 1 }],
    });
  });
  test('POOL-3: a settled pool waits, others take over, and past its time one dispatch is the probe', () => {
    const settled = { ...pool, settledUntilMs: 5_000 };
    expect(plan(input({ pools: [settled] }))).toEqual({
      kind: 'wait',
      reason: 'dispatch_stalled',
      untilMs: 5_000,
    });
    expect(plan(input({ pools: [settled, { ...pool, name: 'q' }] }))).toEqual({
      kind: 'start',
      starts: [{ pool: 'q', n: 2 }],
    });
    expect(plan(input({ pools: [settled], nowMs: 5_000 }))).toEqual({
      kind: 'start',
      starts: [{ pool: 'p', n: 1 }],
    });
    expect(plan(input({ pools: [{ ...settled, pending: 1 }], nowMs: 5_000 })).kind).not.toBe('start');
  });
  test('POOL-2: what only waits out a back-off waits until then; without a pool it is stalled', () => {
    expect(plan(input({ work: [work({ ready: 0, nextMs: 9_000 })] }))).toEqual({
      kind: 'wait',
      reason: 'backoff',
      untilMs: 9_000,
    });
    expect(plan(input({ pools: [] }))).toEqual({ kind: 'stalled', reason: 'no_pool' });
  });
  test('POOL-2: never more starts than useful tickets or free capacity; what it starts, it does not start again', () => {
    const works = fc.array(
      fc.record({
        run: fc.constantFrom('a', 'b', 'c'),
        provider: fc.constantFrom('command', 'openai', 'gone'),
        ready: fc.nat(20),
        nextMs: fc.option(fc.nat(10_000)),
        leased: fc.nat(8),
        parallel: fc.integer({ min: 1, max: 16 }),
      }),
      { maxLength: 8 },
    );
    const pools = fc.array(
      fc.record({
        name: fc.constantFrom('p', 'q', 'w'),
        capacity: fc.integer({ min: 1, max: 8 }),
        running: fc.nat(4),
        pending: fc.nat(4),
        settledUntilMs: fc.option(fc.nat(3_000)),
      }),
      { maxLength: 3 },
    );
    fc.assert(
      fc.property(works, pools, fc.nat(4), (someWork, somePools, free) => {
        const distinct = somePools.filter(
          (one, i) => somePools.findIndex((other) => other.name === one.name) === i,
        );
        const given = input({
          work: someWork,
          pools: distinct,
          providers: [{ name: 'openai', free, settledUntilMs: null }],
        });
        const made = plan(given);
        if (made.kind !== 'start') return;
        let total = 0;
        for (const { pool: name, n } of made.starts) {
          const of = distinct.find((one) => one.name === name);
          expect(n).toBeGreaterThan(0);
          expect(n).toBeLessThanOrEqual((of?.capacity ?? 0) - (of?.running ?? 0) - (of?.pending ?? 0));
          total += n;
        }
        expect(total).toBeLessThanOrEqual(usefulTickets(given));
        const after = distinct.map((one) => ({
          ...one,
          pending: one.pending + (made.starts.find((start) => start.pool === one.name)?.n ?? 0),
        }));
        const again = plan({ ...given, pools: after });
        if (again.kind === 'start')
          // only where capacity, not need, was the limit before
          throw new Error(`started twice: ${JSON.stringify(again)}`);
      }),
    );
  });
});
