import { describe, expect, it } from 'vitest';
import {
  ago,
  count,
  duration,
  middle,
  moment,
  money,
  number,
  ticketWord,
} from '../../../app/http/pages/words.ts';

describe('OPS-8: how times and numbers read', () => {
  it.each([
    [0, '0 s'],
    [-5, '0 s'],
    [12, '12 ms'],
    [2_000, '2 s'],
    [2_340, '2.3 s'],
    [59_400, '59 s'],
    [60_000, '1 min'],
    [61_000, '1 min 1 s'],
    [3_600_000, '1 h'],
    [3_660_000, '1 h 1 min'],
    [86_400_000, '1 d'],
    [90_000_000, '1 d 1 h'],
  ])('%i ms is %s', (ms, said) => expect(duration(ms)).toBe(said));

  it.each([
    [0, 'just now'],
    [-4_000, 'just now'],
    [30_000, '30 s ago'],
    [-30_000, 'in 30 s'],
    [600_000, '10 min ago'],
    [7_200_000, '2 h ago'],
    [172_800_000, '2 days ago'],
  ])('%i ms back is %s', (back, said) => expect(ago(1e12 - back, 1e12)).toBe(said));

  it('moments are in UTC, numbers in groups, money says small amounts', () => {
    expect(moment(Date.UTC(2026, 10, 29, 1, 2, 3))).toBe('2026-11-29 01:02:03 UTC');
    expect([0, 999, 1000, 1234567].map(number)).toEqual(['0', '999', '1\u202f000', '1\u202f234\u202f567']);
    expect([0, 5_000_000, 1_234].map(money)).toEqual(['0.00', '5.00', '0.0012']);
    expect([count(1, 'file'), count(2, 'file')]).toEqual(['1 file', '2 files']);
  });

  it('a long path keeps both ends and whole characters', () => {
    expect(middle('src/a.ts', 20)).toBe('src/a.ts');
    const cut = middle(`${'😀'.repeat(40)}/end.ts`, 20);
    expect(Array.from(cut)).toHaveLength(20);
    expect(cut.isWellFormed()).toBe(true);
    expect(cut.endsWith('/end.ts')).toBe(true);
  });

  it('only a review is shown as one', () => {
    expect(ticketWord({ state: 'ended', end: 'reviewed' }).tone).toBe('ok');
    for (const end of ['timeout', 'quota', null])
      expect(ticketWord({ state: 'ended', end }).tone).toBe('bad');
  });
});
