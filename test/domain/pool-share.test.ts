import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type SharePlace, shareOut } from '../../app/domain/pool-share.ts';

const place = (installationId: string, repositoryId: string, tag: number, servedAtMs: number | null = null) =>
  ({ installationId, repositoryId, tag, servedAtMs }) satisfies SharePlace;
const told = (places: readonly SharePlace[], max: number, most = 8) =>
  shareOut(places, max, most).map(({ place: { repositoryId }, n }) => [repositoryId, n]);

describe('LSE-1: a resident runner’s tickets over the places of its pool', () => {
  test('LSE-1: one place has all of it; none has nothing', () => {
    expect(told([place('1', 'a', 5)], 4)).toEqual([['a', 4]]);
    expect(told([], 4)).toEqual([]);
  });
  test('LSE-1: first the installation: who was served longest ago comes first, and no backlog outweighs another', () => {
    const busy = ['a', 'b', 'c', 'd'].map((id, i) => place('1', id, i, 50));
    expect(told([...busy, place('2', 'z', 900, 10)], 1)).toEqual([['z', 1]]);
    const both = shareOut([...busy, place('2', 'z', 900, 10)], 8, 8);
    const of = (id: string) =>
      both.filter(({ place }) => place.installationId === id).reduce((sum, { n }) => sum + n, 0);
    expect([of('1'), of('2')]).toEqual([4, 4]);
    expect(told([place('1', 'a', 1, 5), place('2', 'z', 2)], 1), 'never served comes first').toEqual([
      ['z', 1],
    ]);
  });
  test('LSE-1: within an installation by the tag, a ticket each before one gets a second', () => {
    const places = [place('1', 'late', 30), place('1', 'early', 10), place('1', 'next', 20)];
    expect(told(places, 2)).toEqual([
      ['early', 1],
      ['next', 1],
    ]);
    expect(Object.fromEntries(told(places, 4))).toEqual({ early: 2, next: 1, late: 1 });
  });
  test('LSE-1: who got the last ticket is named last, so that it was served last', () => {
    expect(told([place('1', 'a', 1), place('2', 'b', 2)], 3)).toEqual([
      ['b', 1],
      ['a', 2],
    ]);
  });
  test('LSE-1: all that is asked for is shared out, over no more places than may be, and evenly over installations', () => {
    const places = fc.uniqueArray(
      fc.record({
        installationId: fc.constantFrom('1', '2', '3'),
        repositoryId: fc.integer({ min: 1, max: 30 }).map(String),
        tag: fc.nat(1_000),
        servedAtMs: fc.option(fc.nat(100)),
      }),
      { maxLength: 20, selector: (one) => `${one.installationId}/${one.repositoryId}` },
    );
    fc.assert(
      fc.property(
        places,
        fc.integer({ min: 1, max: 16 }),
        fc.integer({ min: 3, max: 8 }),
        (all, max, most) => {
          const served = new Map(all.map((one) => [one.installationId, one.servedAtMs]));
          const even = all.map((one) => ({ ...one, servedAtMs: served.get(one.installationId) ?? null }));
          const shares = shareOut(even, max, most);
          expect(shares.reduce((sum, { n }) => sum + n, 0)).toBe(all.length === 0 ? 0 : max);
          expect(shares.length).toBeLessThanOrEqual(most);
          const of = [...served.keys()].map((id) =>
            shares.filter(({ place }) => place.installationId === id).reduce((sum, { n }) => sum + n, 0),
          );
          expect(Math.max(0, ...of) - Math.min(...of, Number.POSITIVE_INFINITY)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});
