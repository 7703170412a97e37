import { describe, expect, it } from 'vitest';
import type { CheckedResult } from '../../app/domain/result.ts';
import type { TicketSpec } from '../../app/domain/review.ts';
import { isReadBefore, provenEnds, readEarlier } from '../../app/domain/round.ts';

const spec = {
  reviewers: [
    { name: 'one', uses: 'openai', model: 'm' },
    { name: 'twin', uses: 'openai', model: 'n' },
    { name: 'same', uses: 'openai', model: 'm' },
    { name: 'two', uses: 'anthropic' },
    { name: 'lint', uses: 'command' },
  ],
  fallbacks: [],
} as unknown as TicketSpec;
const result = (more: Partial<CheckedResult> = {}): CheckedResult => ({
  end: 'reviewed',
  verdict: 'approve',
  partial: false,
  detail: null,
  sessions: ['one', 'twin', 'same', 'two', 'lint'].map((reviewer) => ({
    id: reviewer,
    reviewer,
    provider: null,
    model: null,
    end: 'complete' as const,
    detail: null,
    tokens_in: 0,
    tokens_out: 0,
    cost_micro: 0,
    ms: 0,
  })),
  findings: [],
  ...more,
});
const one = { name: 'one', uses: 'openai', model: 'm' } as const;
const open = [
  { number: 3, fingerprint: 'f'.repeat(64), severity: 'high' as const, command: false, raisedBy: one },
];
const critical = [{ ...open[0]!, severity: 'critical' as const }];
const says = (proposal: 'fixed' | 'persists' | 'withdrawn', reviewer = 'one') => ({
  finding: 3,
  proposal,
  reviewer,
});
const gone = new Set([3]);
const here = new Set<number>();

describe('RND-1: a model proposes, changed code proves', () => {
  it.each([
    ['a model says fixed and the anchored code went', [says('fixed')], open, gone, 'fixed'],
    [
      'at critical two of different providers say so',
      [says('fixed'), says('fixed', 'two')],
      critical,
      gone,
      'fixed',
    ],
    ['another model withdraws it where the code stands', [says('withdrawn', 'two')], open, here, 'withdrawn'],
    ['another model of the same provider withdraws it', [says('withdrawn', 'twin')], open, here, 'withdrawn'],
    [
      'its own model and another withdraw it',
      [says('withdrawn'), says('withdrawn', 'two')],
      critical,
      here,
      'withdrawn',
    ],
  ] as const)('RND-1: it ends when %s', (_why, answers, findings, where, state) => {
    expect(provenEnds(spec, result(), answers, findings, where)).toMatchObject([{ finding: 3, state }]);
  });

  it.each([
    ['it is called fixed and the code still stands', [says('fixed')], open, here, result()],
    ['nobody says so', [], open, gone, result()],
    ['the model that raised it withdraws it', [says('withdrawn')], open, here, result()],
    ['the same model under another name withdraws it', [says('withdrawn', 'same')], open, here, result()],
    [
      'nobody knows which model raised it',
      [says('withdrawn', 'two')],
      [{ ...open[0]!, raisedBy: undefined }],
      here,
      result(),
    ],
    ['one withdraws and one calls it fixed', [says('withdrawn', 'two'), says('fixed')], open, here, result()],
    ['one withdraws and one objects', [says('withdrawn', 'two'), says('persists')], open, here, result()],
    ['another model objects', [says('fixed'), says('persists', 'two')], open, gone, result()],
    ['a command says it', [says('fixed', 'lint')], open, gone, result()],
    ['a stranger says it', [says('fixed', 'nobody')], open, gone, result()],
    ['it is critical and one says fixed', [says('fixed')], critical, gone, result()],
    [
      'it is critical and two of one provider say fixed',
      [says('fixed'), says('fixed', 'twin')],
      critical,
      gone,
      result(),
    ],
    ['it is critical and one withdraws it', [says('withdrawn', 'two')], critical, here, result()],
    ['a command raised it', [says('fixed')], [{ ...open[0]!, command: true }], gone, result()],
    ['the review was partial', [says('fixed')], open, gone, result({ partial: true })],
    ['the ticket was not reviewed', [says('fixed')], open, gone, result({ end: 'provider_error' })],
    ['its session did not complete', [says('fixed')], open, gone, result({ sessions: [] })],
  ] as const)('RND-1: it stands when %s', (_why, answers, findings, where, of) => {
    expect(provenEnds(spec, of, answers, findings, where)).toEqual([]);
  });

  it('RND-1: it stands when it was raised again under its fingerprint', () => {
    const again = { fingerprint: open[0]!.fingerprint } as CheckedResult['findings'][number];
    expect(provenEnds(spec, result({ findings: [again] }), [says('fixed')], open, gone)).toEqual([]);
  });
});

describe('RND-1: what could have been said before', () => {
  const read = { end: 'reviewed', partial: false, reviewers: spec.reviewers };

  it('RND-1: a model read it whose earlier ticket was reviewed, and for which nobody could stand in', () => {
    const [first] = spec.reviewers;
    const fallback = { ...read, reviewers: [{ ...first!, fallbacks: ['two'] }] };
    expect([...readEarlier([read])]).toEqual(['one', 'twin', 'same', 'two']);
    expect([...readEarlier([{ ...read, end: 'timeout' }, { ...read, partial: true }, fallback])]).toEqual([]);
  });

  it('RND-1, lottery: what stood and blocked goes on to block, whoever says it again', () => {
    const late = { read_before: true } as const;
    expect(isReadBefore(undefined, late)).toBe(true);
    expect(isReadBefore({ state: 'withdrawn', readBefore: false }, late)).toBe(true);
    expect(isReadBefore({ state: 'open', readBefore: true }, late)).toBe(true);
    for (const state of ['open', 'answered', 'dismissed'])
      expect(isReadBefore({ state, readBefore: false }, late)).toBe(false);
    expect(isReadBefore({ state: 'open', readBefore: true }, {})).toBe(false);
  });
});
