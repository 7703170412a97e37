import { describe, expect, it } from 'vitest';
import { type KnownTicket, planCut, type WantedReview } from '../../app/domain/cut.ts';

const want = (path: string, more: Partial<WantedReview> = {}): WantedReview => ({
  path,
  block: 'b',
  key: `key of ${path}`,
  waits: false,
  foreignSeq: null,
  ...more,
});
const ticket = (path: string, state: KnownTicket['state'], more: Partial<KnownTicket> = {}): KnownTicket => ({
  id: `${state} ${path}`,
  path,
  block: 'b',
  key: `key of ${path}`,
  round: 0,
  state,
  end: null,
  lease: state === 'leased' ? `lease of ${path}` : null,
  seq: null,
  ...more,
});
const cut = (wanted: WantedReview[], known: KnownTicket[] = []) => {
  const { open, drop, hold, free, recall } = planCut(wanted, known, null);
  return {
    open: open.map((one) => `${one.wanted.path}${one.held ? ' held' : ''}`),
    drop: drop.map((one) => one.id),
    hold,
    free,
    recall,
  };
};
const nothing = { open: [], drop: [], hold: [], free: [], recall: [] };

describe('BLK-5, LSE-1: tickets of blocks that wait', () => {
  it('LSE-1: one that is new is held, one that is pending is taken back, one that is held stays', () => {
    expect(cut([want('a', { waits: true })])).toEqual({ ...nothing, open: ['a held'] });
    expect(cut([want('a', { waits: true })], [ticket('a', 'pending')])).toEqual({
      ...nothing,
      hold: ['pending a'],
    });
    expect(cut([want('a', { waits: true })], [ticket('a', 'held')])).toEqual(nothing);
  });

  it('LSE-1: once nothing is waited for, it goes on', () => {
    expect(cut([want('a')], [ticket('a', 'held')])).toEqual({ ...nothing, free: ['held a'] });
  });

  it('LSE-1: what is with a runner already is left to end', () => {
    expect(cut([want('a', { waits: true })], [ticket('a', 'leased')])).toEqual(nothing);
  });

  it('TKT-3: a lease’s end brings forward what is held for it, so a waiting block’s other content is not cut before', () => {
    const other = ticket('a', 'leased', { key: 'other' });
    expect(cut([want('a')], [other])).toEqual({ ...nothing, open: ['a held'], recall: ['lease of a'] });
    expect(cut([want('a', { waits: true })], [other])).toEqual({ ...nothing, recall: ['lease of a'] });
    // what is held behind the lease is not let loose by the cut
    expect(cut([want('a')], [other, ticket('a', 'held')])).toEqual({ ...nothing, recall: ['lease of a'] });
  });

  it('TKT-3: other content replaces what is held', () => {
    expect(cut([want('a', { waits: true })], [ticket('a', 'held', { key: 'old' })])).toEqual({
      ...nothing,
      open: ['a held'],
      drop: ['held a'],
    });
  });

  it('TKT-4: what was reviewed needs nobody, waiting or not', () => {
    const done = ticket('a', 'ended', { end: 'reviewed', seq: 3 });
    expect(cut([want('a', { waits: true })], [done])).toEqual(nothing);
  });
});

describe('TKT-1: an answer opens the next round of its path', () => {
  const answered = (known: KnownTicket[], more: Partial<WantedReview> = {}) =>
    planCut([want('a', more), want('b')], [...known, ticket('b', 'ended', { seq: 1, end: 'reviewed' })], {
      scope: 'answer',
      value: 'a',
    }).open.map((one) => `${one.wanted.path} ${one.round}${one.held ? ' held' : ''}`);

  it('after the last round, and behind a runner that leased before it came', () => {
    expect(answered([ticket('a', 'ended', { seq: 5, end: 'reviewed', round: 2 })])).toEqual(['a 3']);
    expect(answered([ticket('a', 'leased', { round: 1 })])).toEqual(['a 2 held']);
    expect(answered([ticket('a', 'leased'), ticket('a', 'ended', { seq: 5, round: 4 })])).toEqual([
      'a 5 held',
    ]);
  });

  it('not for what a runner has yet to take, and no second time', () => {
    expect(answered([ticket('a', 'pending')])).toEqual([]);
    expect(answered([ticket('a', 'leased', { round: 1 }), ticket('a', 'held', { round: 2 })])).toEqual([]);
    expect(answered([ticket('a', 'leased')], { waits: true })).toEqual([]);
  });

  it('by itself as well, where the job that asked for it was merged with another', () => {
    const ended = ticket('a', 'ended', { seq: 5, end: 'reviewed' });
    expect(cut([want('a', { foreignSeq: 6 })], [ended]).open).toEqual(['a']);
    expect(cut([want('a', { foreignSeq: 4 })], [ended]).open).toEqual([]);
  });
});
