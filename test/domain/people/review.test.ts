import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { settleReviews, type ToldReview } from '../../../app/domain/people/review.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { commit, decided, FactList, HEAD } from '../../helpers/facts.ts';

const at = (second: number) => `2026-11-29T12:00:${String(second).padStart(2, '0')}Z`;
const told = (id: string, state: ToldReview['state'], more: Partial<ToldReview> = {}): ToldReview => ({
  id,
  author: '2',
  state,
  commit: HEAD,
  submittedAt: at(Number(id)),
  ...more,
});
const start = () => new FactList().made().head([decided('src/a.ts')]);
const settle = (list: FactList, ...reviews: ToldReview[]) => {
  const { record, revoke, unknown } = settleReviews(foldRows(list.rows), reviews);
  return {
    record: record.map((one) => `${one.id} ${one.state}`),
    revoke: revoke.map(({ act, reason }) => `${act.review ?? act.act} ${reason}`),
    unknown: unknown.map((one) => one.id),
  };
};
/** Records what is to be recorded, as the flow does. */
const apply = (list: FactList, ...reviews: ToldReview[]) => {
  const changes = settleReviews(foldRows(list.rows), reviews);
  for (const { act, reason } of changes.revoke)
    list.add('human.revoked', { act: act.act, seq: act.seq, reason });
  for (const one of changes.record)
    list.act({
      by: one.author,
      act: 'review',
      head: one.commit,
      review: one.id,
      verdict: one.state,
      submitted: one.submittedAt,
    });
  return list;
};
const standing = (list: FactList) =>
  foldRows(list.rows).acts.flatMap((act) => (act.revoked ? [] : [`${act.actor} ${act.verdict ?? act.act}`]));

describe('reviews become acts', () => {
  test('case 48: an approval stays when its author comments; a comment alone is nothing', () => {
    expect(settle(start(), told('1', 'approved'), told('2', 'commented')).record).toEqual(['1 approved']);
    expect(settle(start(), told('2', 'commented')).record).toEqual([]);
    const list = apply(start(), told('1', 'approved'));
    expect(settle(list, told('1', 'approved'), told('2', 'commented'))).toEqual({
      record: [],
      revoke: [],
      unknown: [],
    });
  });

  test('GAT-6: a dismissal takes back the one review; what was never recorded is not made by it', () => {
    const list = apply(start(), told('1', 'approved'));
    expect(settle(list, told('1', 'dismissed'))).toMatchObject({ revoke: ['1 dismissed'], record: [] });
    apply(list, told('1', 'dismissed'));
    expect(settle(list, told('1', 'dismissed')).revoke).toEqual([]);
    expect(settle(start(), told('1', 'dismissed'))).toEqual({ record: [], revoke: [], unknown: [] });
  });

  test('GAT-6: "request changes" takes back everything its author cleared here, and nobody else’s', () => {
    const list = apply(start(), told('1', 'approved'))
      .act({ clause: 'guarded' })
      .act({ act: 'override' })
      .act({ act: 'rerun' })
      .act({ by: '3', clause: 'guarded' });
    expect(settle(list, told('5', 'changes_requested'))).toEqual({
      record: ['5 changes_requested'],
      revoke: ['1 changes_requested', 'approve changes_requested', 'override changes_requested'],
      unknown: [],
    });
    apply(list, told('5', 'changes_requested'));
    expect(standing(list)).toEqual(['2 rerun', '3 approve', '2 changes_requested']);
    apply(list, told('6', 'approved'));
    expect(standing(list)).toEqual(['2 rerun', '3 approve', '2 approved']);
  });

  test('RUN-2: an older review that is told late changes nothing', () => {
    const list = apply(start(), told('5', 'changes_requested'));
    expect(settle(list, told('1', 'approved')).record).toEqual([]);
    const other = apply(start(), told('5', 'approved'));
    expect(settle(other, told('1', 'changes_requested'))).toEqual({ record: [], revoke: [], unknown: [] });
  });

  test('GAT-6: an approval needs a head that the rows know; a no holds whatever head it was said of', () => {
    const foreign = { commit: commit('9') };
    expect(settle(start(), told('1', 'approved', foreign))).toMatchObject({ record: [], unknown: ['1'] });
    expect(settle(start(), told('1', 'changes_requested', foreign)).record).toEqual(['1 changes_requested']);
    expect(settle(start(), told('1', 'approved', { commit: null })).record).toEqual([]);
    expect(settle(start(), told('1', 'pending', { submittedAt: null })).record).toEqual([]);
  });

  test('GAT-6, case 48: a dismissed review brings no earlier approval of its author back; an earlier no stays', () => {
    expect(settle(start(), told('1', 'approved'), told('2', 'dismissed')).record).toEqual([]);
    expect(settle(start(), told('2', 'approved'), told('1', 'dismissed')).record).toEqual(['2 approved']);
    expect(settle(start(), told('1', 'changes_requested'), told('2', 'dismissed')).record).toEqual([
      '1 changes_requested',
    ]);
    const other = told('2', 'dismissed', { author: '3' });
    expect(settle(start(), told('1', 'approved'), other).record).toEqual(['1 approved']);
    // whose account is gone
    const list = apply(start(), told('1', 'approved'));
    expect(settle(list, told('1', 'dismissed', { author: '' })).revoke).toEqual(['1 dismissed']);
  });

  test('GAT-6, case 11: an approval that came before the same commit got another base answers for nothing of it', () => {
    const list = start();
    list.at = '2026-11-29T12:00:30.000Z';
    list.head([decided('src/a.ts'), decided('src/b.ts')], { base_ref: 'release' });
    expect(settle(list, told('29', 'approved'))).toMatchObject({ record: [], unknown: ['29'] });
    expect(settle(list, told('30', 'approved')).record, 'within the same second: as it is now').toEqual([
      '30 approved',
    ]);
    expect(settle(list, told('29', 'changes_requested')).record).toEqual(['29 changes_requested']);
    // given before we had read the head at all, it is of the first reading
    const late = new FactList().made();
    late.at = '2026-11-29T12:00:30.000Z';
    late.head([decided('src/a.ts')]);
    expect(settle(late, told('5', 'approved')).record).toEqual(['5 approved']);
    list.at = '2026-11-29T12:00:40.000Z';
    list.head([decided('src/a.ts')]);
    expect(settle(list, told('5', 'approved')).record, 'and back again it is what they saw').toEqual([
      '5 approved',
    ]);
  });

  test('RUN-2: told in any order, in any pieces, doubled: the same acts stand', () => {
    const kinds = fc.constantFrom('approved' as const, 'changes_requested' as const, 'commented' as const);
    const histories = fc.array(fc.tuple(kinds, fc.constantFrom('2', '3')), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(histories, fc.infiniteStream(fc.nat(100)), (history, order) => {
        const reviews = history.map(([state, author], i) => told(String(i + 1), state, { author }));
        const whole = standing(apply(start(), ...reviews)).sort();
        const shuffled = [...reviews, ...reviews]
          .map((one) => [order.next().value ?? 0, one] as const)
          .sort(([a], [b]) => a - b)
          .map(([, one]) => one);
        const pieces = start();
        for (const one of shuffled) apply(pieces, one);
        // earlier approvals of somebody who approved again stand beside the newest: they say the same
        expect([...new Set(standing(pieces))].sort()).toEqual(whole);
      }),
      { numRuns: 200 },
    );
  });
});
