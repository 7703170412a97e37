import { describe, expect, it } from 'vitest';
import type { CheckedResult } from '../../app/domain/result.ts';
import type { TicketSpec } from '../../app/domain/review.ts';
import { provenFixed } from '../../app/domain/round.ts';

const spec = {
  reviewers: [
    { name: 'one', uses: 'openai' },
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
  sessions: ['one', 'two', 'lint'].map((reviewer) => ({
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
const open = [{ number: 3, fingerprint: 'f'.repeat(64), severity: 'high' as const, command: false }];
const says = (proposal: 'fixed' | 'persists' | 'withdrawn', reviewer = 'one') => ({
  finding: 3,
  proposal,
  reviewer,
});
const gone = new Set([3]);

describe('RND-1: a model proposes, changed code proves', () => {
  it('RND-1: fixed counts when a model says so and the anchored code went', () => {
    expect(provenFixed(spec, result(), [says('fixed')], open, gone)).toEqual([3]);
  });

  it.each([
    ['the code still stands', [says('fixed')], open, new Set<number>(), result()],
    ['nobody says so', [], open, gone, result()],
    [
      'it says withdrawn: the same code needs a second reviewer or a person',
      [says('withdrawn')],
      open,
      gone,
      result(),
    ],
    ['another model objects', [says('fixed'), says('persists', 'two')], open, gone, result()],
    ['a command says it', [says('fixed', 'lint')], open, gone, result()],
    ['a stranger says it', [says('fixed', 'nobody')], open, gone, result()],
    ['it is critical', [says('fixed')], [{ ...open[0]!, severity: 'critical' as const }], gone, result()],
    ['a command raised it', [says('fixed')], [{ ...open[0]!, command: true }], gone, result()],
    ['the review was partial', [says('fixed')], open, gone, result({ partial: true })],
    ['the ticket was not reviewed', [says('fixed')], open, gone, result({ end: 'provider_error' })],
    ['its session did not complete', [says('fixed')], open, gone, result({ sessions: [] })],
  ] as const)('RND-1: it stands when %s', (_why, answers, findings, where, of) => {
    expect(provenFixed(spec, of, answers, findings, where)).toEqual([]);
  });

  it('RND-1: it stands when it was raised again under its fingerprint', () => {
    const again = { fingerprint: open[0]!.fingerprint } as CheckedResult['findings'][number];
    expect(provenFixed(spec, result({ findings: [again] }), [says('fixed')], open, gone)).toEqual([]);
  });
});
