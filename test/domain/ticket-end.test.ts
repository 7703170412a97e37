import { describe, expect, test } from 'vitest';
import { endTicketWith, stepProvider } from '../../app/domain/ticket-end.ts';

const fresh = { losses: 0, timeouts: 0, transients: 0, suspect: false };
const told = { retryAfterMs: null, alone: true };

describe('TKT-2, TKT-6: what an end makes of a ticket', () => {
  test('TKT-2: back-off is 30 s doubling to 15 min, or what the provider asked for', () => {
    const waits = Array.from(
      { length: 8 },
      (_, n) => endTicketWith({ ...fresh, transients: n }, 'quota', told).notBeforeMs,
    );
    expect(waits).toEqual([30, 60, 120, 240, 480, 900, 900, 900].map((s) => s * 1000));
    expect(endTicketWith(fresh, 'quota', { ...told, retryAfterMs: 7_000 }).notBeforeMs).toBe(7_000);
    expect(endTicketWith(fresh, 'quota', { ...told, retryAfterMs: 1e12 }).notBeforeMs).toBe(3_600_000);
  });
  test('TKT-2: a provider that says "at once" for ever is asked ever more seldom', () => {
    const waits = Array.from(
      { length: 6 },
      (_, n) =>
        endTicketWith({ ...fresh, transients: n }, 'rate_limited', { ...told, retryAfterMs: 0 }).notBeforeMs,
    );
    expect(waits).toEqual([1, 1, 1, 240, 480, 900].map((s) => s * 1000));
  });
  test('TKT-2: every other end is final', () => {
    for (const end of [
      'reviewed',
      'bad_output',
      'content_unread',
      'worker_error',
      'budget',
      'too_large',
    ] as const)
      expect(endTicketWith(fresh, end, told)).toMatchObject({ final: true, notBeforeMs: null });
  });
  test('TKT-6: the third loss or time-out is final; quota never is; a loss in company does not count', () => {
    expect(endTicketWith({ ...fresh, losses: 2 }, 'lost_runner', told).final).toBe(true);
    expect(endTicketWith({ ...fresh, timeouts: 2 }, 'timeout', told).final).toBe(true);
    expect(endTicketWith({ ...fresh, transients: 99 }, 'quota', told).final).toBe(false);
    expect(endTicketWith(fresh, 'lost_runner', { ...told, alone: false })).toMatchObject({
      losses: 0,
      suspect: true,
    });
  });
});

describe('POOL-3: what an end makes of a provider', () => {
  const up = { strikes: [], settled: false, rounds: 0, probe: null };
  const down = { strikes: [], settled: true, rounds: 2, probe: 'p' };
  test('POOL-3: three in a row over two tickets settle it; one ticket alone does not', () => {
    expect(stepProvider({ ...up, strikes: ['a', 'a'] }, 'a', 'quota', true)).toMatchObject({
      kind: 'strikes',
    });
    expect(stepProvider({ ...up, strikes: ['a', 'a'] }, 'b', 'quota', true)).toEqual({
      kind: 'settle',
      rounds: 0,
      ms: 300_000,
    });
    expect(stepProvider({ ...up, strikes: ['a', 'b'] }, 'c', 'reviewed', true)).toEqual({
      kind: 'strikes',
      strikes: [],
    });
  });
  test('POOL-3: a probe that fails doubles the wait up to an hour; any good end revives', () => {
    expect(stepProvider(down, 'p', 'rate_limited', true)).toEqual({
      kind: 'settle',
      rounds: 3,
      ms: 2_400_000,
    });
    expect(stepProvider({ ...down, rounds: 9 }, 'p', 'rate_limited', true)).toMatchObject({ ms: 3_600_000 });
    expect(stepProvider(down, 'x', 'rate_limited', true)).toEqual({ kind: 'none' });
    expect(stepProvider(down, 'x', 'reviewed', true)).toEqual({ kind: 'revive' });
  });
  test('POOL-3: a lost runner, or an end before anything was asked, says nothing of it', () => {
    expect(stepProvider({ ...up, strikes: ['a', 'b'] }, 'c', 'lost_runner', true)).toEqual({ kind: 'none' });
    expect(stepProvider(down, 'p', 'content_unread', false)).toEqual({ kind: 'none' });
    expect(stepProvider({ ...up, strikes: ['a', 'b'] }, 'c', 'rate_limited', false)).toEqual({
      kind: 'none',
    });
  });
});
