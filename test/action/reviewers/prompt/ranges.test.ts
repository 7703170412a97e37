import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinRanges } from '../../../../action/reviewers/prompt/join.ts';
import { MOST_RANGES, type Range, rangesOf } from '../../../../action/reviewers/prompt/ranges.ts';
import type { ReviewOutcome } from '../../../../action/reviewers/reviewer.ts';

const text = (lines: number) => Array.from({ length: lines }, (_, i) => `line ${i + 1};\n`).join('');
const cut = (source: string, diff: string, budget?: number): readonly Range[] => {
  const ranges = rangesOf(source, diff, budget);
  if (ranges.kind !== 'ranges') throw new Error(ranges.detail);
  return ranges.ranges;
};

describe('REV-2: what one session reads of a file', () => {
  it('REV-2: a file that fits is one range, base and head lines numbered on their side', () => {
    const diff = 'diff\n@@ -2,2 +2,3 @@ x\n keep\n-was\n+is\n+more\n@@ -9,1 +10,0 @@\n-gone\n';
    const [range, ...rest] = cut(text(12), diff);
    expect(rest).toEqual([]);
    expect(range).toMatchObject({ from: 1, to: 12, of: 12, until: 12 });
    expect(range?.lines.split('\n')[1]).toBe(' 2| line 2;');
    expect(range?.changes.split('\n')).toEqual([
      'H2 | keep',
      'B3-| was',
      'H3+| is',
      'H4+| more',
      '…',
      'B9-| gone',
    ]);
  });

  it('REV-2, case 81 (e): ranges cover every line, overlap, fit the budget, and each line is asked about once', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 60, max: 20_000 }), (lines, budget) => {
        const ranges = rangesOf(text(lines), '', budget);
        if (ranges.kind === 'too_large') {
          expect(ranges.detail).toMatch(new RegExp(`the limit is ${MOST_RANGES}$`));
          return;
        }
        const asked: number[] = [];
        for (const { from, to, until, lines: shown } of ranges.ranges) {
          expect(shown.length + 1).toBeLessThanOrEqual(Math.max(budget, 1) + 1);
          expect(until).toBeLessThanOrEqual(to);
          for (let line = from; line <= until; line++) asked.push(line);
        }
        expect(asked).toEqual(Array.from({ length: lines }, (_, i) => i + 1));
        expect(ranges.ranges.at(-1)?.to).toBe(lines);
      }),
    );
  });

  it('REV-2: what was taken away counts towards the budget, and nothing is cut', () => {
    const removed = Array.from({ length: 200 }, (_, i) => `-old ${i}`).join('\n');
    const diff = `@@ -1,200 +1,0 @@\n${removed}\n`;
    expect(rangesOf('x\n', diff, 500)).toMatchObject({ kind: 'too_large' });
    expect(cut('x\n', diff, 5000)[0]?.changes.split('\n')).toHaveLength(200);
    expect(rangesOf('x'.repeat(1000), '', 500)).toMatchObject({
      kind: 'too_large',
      detail: expect.stringMatching(/^line 1 with its changes has 10\d\d characters/),
    });
  });

  it('REV-2: an empty file is one empty range', () => {
    expect(cut('', '')).toMatchObject([{ from: 1, lines: '', changes: '' }]);
  });
});

const spoke = (more: Partial<Extract<ReviewOutcome, { kind: 'reviewed' }>> = {}): ReviewOutcome => ({
  kind: 'reviewed',
  reviewer: 'model',
  verdict: 'approve',
  findings: [],
  unplaced: [],
  answers: [],
  ...more,
});
const found = { title: 'x' } as never;

describe('REV-2: a file is reviewed when every range was', () => {
  const ranges = cut(text(100), '', 600);

  it('REV-2: the words of all ranges are the file’s', () => {
    expect(ranges.length).toBeGreaterThan(1);
    expect(joinRanges([spoke(), spoke()], ranges)).toMatchObject({ kind: 'reviewed', verdict: 'approve' });
    expect(joinRanges([spoke(), spoke({ verdict: 'findings', findings: [found] })], ranges)).toMatchObject({
      verdict: 'findings',
      findings: [found],
    });
    expect(joinRanges([spoke({ verdict: 'cannot_review' }), spoke()], ranges)).toMatchObject({
      verdict: 'cannot_review',
    });
    const met = spoke({ clauses: [{ index: 0, status: 'met' }] });
    const unmet = spoke({ clauses: [{ index: 0, status: 'unmet' }] });
    expect(joinRanges([met, unmet, met], ranges)).toMatchObject({ clauses: [{ index: 0, status: 'unmet' }] });
  });

  it('REV-2, case 81 (e): one that was not read makes the file unavailable, says which, and keeps what was found', () => {
    const lost: ReviewOutcome = {
      kind: 'unavailable',
      reviewer: 'model',
      end: 'timeout',
      detail: 'model: no answer',
      retryAfterMs: null,
    };
    const second = ranges[1];
    expect(joinRanges([spoke({ verdict: 'findings', findings: [found] }), lost], ranges)).toMatchObject({
      kind: 'unavailable',
      end: 'timeout',
      detail: `model: lines ${second?.from} to 100 of 100 were not read: no answer`,
      found: [found],
    });
    const given: ReviewOutcome = { kind: 'given_up', why: 'stopping' };
    expect(joinRanges([spoke(), given], ranges)).toBe(given);
  });
});
