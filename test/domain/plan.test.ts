import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isOut,
  type PlanInput,
  type PlanResidentPool,
  type PlanWork,
  type PlanWorkflowPool,
  plan,
  usefulTickets,
} from '../../app/domain/plan.ts';

const work = (more: Partial<PlanWork> = {}): PlanWork => ({
  run: 'r',
  provider: 'command',
  ready: 8,
  nextMs: null,
  leased: 0,
  parallel: 6,
  ...more,
});
const pool: PlanWorkflowPool = {
  kind: 'workflow',
  name: 'p',
  capacity: 4,
  running: 0,
  pending: 0,
  settledUntilMs: null,
};
const resident = (...free: number[]): PlanResidentPool => ({
  kind: 'resident',
  name: 'own',
  capacity: 4,
  free,
});
const input = (more: Partial<PlanInput> = {}): PlanInput => ({
  nowMs: 1_000,
  work: [work()],
  pools: [pool],
  providers: [{ name: 'openai', free: 4, busy: 0, settledUntilMs: null }],
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
  test('LSE-1: where other repositories hold every slot, one runner comes to ask for a share', () => {
    const taken = [{ name: 'openai', free: 0, busy: 4, settledUntilMs: null }];
    const only = [work({ provider: 'openai' })];
    expect(usefulTickets(input({ work: only, providers: taken }))).toBe(1);
    expect(plan(input({ work: only, providers: taken, pools: [{ ...pool, running: 1 }] }))).toEqual({
      kind: 'none',
    });
    const ours = [work({ provider: 'openai', leased: 1 })];
    expect(usefulTickets(input({ work: ours, providers: taken })), 'who has one turns it over').toBe(0);
  });
  test('POOL-3: behind a settled provider: wait until its time, then one', () => {
    const down = { name: 'openai', free: 4, busy: 0, settledUntilMs: 5_000 };
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
  test('POOL-2: what live residents have room for is theirs, workflow runners come for the rest', () => {
    expect(plan(input({ pools: [pool, resident(4, 4)] }))).toEqual({ kind: 'none' });
    // six are useful under the run's cap, two are left
    expect(plan(input({ pools: [pool, resident(4)] }))).toEqual({
      kind: 'start',
      starts: [{ pool: 'p', n: 1 }],
    });
    expect(plan(input({ pools: [resident(0), pool] })), 'busy ones have no room').toEqual({
      kind: 'start',
      starts: [{ pool: 'p', n: 2 }],
    });
  });
  test('POOL-1: a resident pool is what lives of it, and never more than the policy counts on', () => {
    const declared: PlanResidentPool = { ...resident(), capacity: 200 };
    expect(plan(input({ pools: [declared, pool] })), 'declared and dead').toEqual({
      kind: 'start',
      starts: [{ pool: 'p', n: 2 }],
    });
    expect(plan(input({ pools: [{ ...resident(1, 3, 2, 8), capacity: 1 }, pool] }))).toEqual({
      kind: 'none',
    });
    expect(plan(input({ pools: [{ ...resident(1, 1, 1, 1), capacity: 1 }, pool] }))).toEqual({
      kind: 'start',
      starts: [{ pool: 'p', n: 2 }],
    });
  });
  test('POOL-2: residents alone: without a live one it is stalled, with busy ones it waits for room', () => {
    expect(plan(input({ pools: [resident()] }))).toEqual({ kind: 'stalled', reason: 'no_runner' });
    expect(plan(input({ pools: [resident(0, 0)] }))).toEqual({
      kind: 'wait',
      reason: 'capacity',
      untilMs: null,
    });
    expect(plan(input({ pools: [resident()], work: [] }))).toEqual({ kind: 'none' });
    expect([resident(), resident(0), pool, { ...pool, settledUntilMs: 5 }].map(isOut)).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });
  test('POOL-3: with a settled workflow pool a live resident still takes over, a dead one leaves it stalled', () => {
    const settled = { ...pool, settledUntilMs: 5_000 };
    expect(plan(input({ pools: [settled, resident(1)] }))).toEqual({
      kind: 'wait',
      reason: 'capacity',
      untilMs: null,
    });
    expect(plan(input({ pools: [settled, resident()] }))).toEqual({
      kind: 'wait',
      reason: 'dispatch_stalled',
      untilMs: 5_000,
    });
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
        kind: fc.constant('workflow' as const),
        name: fc.constantFrom('p', 'q', 'w'),
        capacity: fc.integer({ min: 1, max: 8 }),
        running: fc.nat(4),
        pending: fc.nat(4),
        settledUntilMs: fc.option(fc.nat(3_000)),
      }),
      { maxLength: 3 },
    );
    const residents = fc.array(
      fc.record({
        kind: fc.constant('resident' as const),
        name: fc.constantFrom('x', 'y'),
        capacity: fc.integer({ min: 1, max: 3 }),
        free: fc.array(fc.nat(6), { maxLength: 4 }),
      }),
      { maxLength: 2 },
    );
    fc.assert(
      fc.property(works, pools, residents, fc.nat(4), (someWork, somePools, someResidents, free) => {
        const distinct = somePools.filter(
          (one, i) => somePools.findIndex((other) => other.name === one.name) === i,
        );
        const given = input({
          work: someWork,
          pools: [...someResidents, ...distinct],
          providers: [{ name: 'openai', free, busy: 0, settledUntilMs: null }],
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
        // residents first: at most one runner for each ticket that they have no room for
        const offered = someResidents
          .flatMap((one) => [...one.free].sort((a, b) => b - a).slice(0, one.capacity))
          .reduce((sum, n) => sum + n, 0);
        const busy = distinct.reduce((sum, one) => sum + one.running + one.pending, 0);
        expect(total + busy).toBeLessThanOrEqual(Math.max(busy, usefulTickets(given) - offered));
        expect(offered).toBeLessThan(usefulTickets(given));
        const after = distinct.map((one) => ({
          ...one,
          pending: one.pending + (made.starts.find((start) => start.pool === one.name)?.n ?? 0),
        }));
        const again = plan({ ...given, pools: [...someResidents, ...after] });
        if (again.kind === 'start')
          // only where capacity, not need, was the limit before
          throw new Error(`started twice: ${JSON.stringify(again)}`);
      }),
    );
  });
});
