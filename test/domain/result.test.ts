import { describe, expect, test } from 'vitest';
import { fingerprint } from '../../app/domain/finding.ts';
import { redactor } from '../../app/domain/redact.ts';
import {
  type CheckedResult,
  checkResult,
  clip,
  foreignReviewer,
  type ReportedFinding,
  type ReportedResult,
  readOtherContent,
  resultDigest,
  silencedFindings,
} from '../../app/domain/result.ts';
import type { TicketReviewer } from '../../app/domain/review.ts';
import { plainSpec } from '../helpers/queue.ts';

const spec = plainSpec('a.ts', 'command');
const session = {
  id: 's1',
  reviewer: 'lint',
  provider: null,
  model: null,
  end: 'complete' as const,
  detail: null,
  tokens_in: 0,
  tokens_out: 0,
  cost_micro: 0,
  ms: 1,
};
const result = (more: Partial<ReportedResult> = {}): ReportedResult => ({
  end: 'reviewed',
  detail: null,
  blobs: spec.blob,
  verdict: 'approve',
  partial: false,
  sessions: [session],
  findings: [],
  unplaced: [],
  ...more,
});
const finding = (more: Partial<ReportedFinding> = {}): ReportedFinding => {
  const base = { title: 'Hole', quote: 'x = 1', lens: 'security', ...more };
  return {
    side: 'head',
    start_line: 4,
    end_line: 4,
    severity: 'high',
    body: 'b',
    suggestion: null,
    grounded: true,
    reviewer: 'lint',
    fingerprint: fingerprint({
      path: 'a.ts',
      lens: base.lens,
      title: base.title,
      quote: base.quote,
      ordinal: 0,
    }),
    ...base,
  };
};
/** `admitted`: sessions as `id reviewer`. */
const check = (value: ReportedResult, of = spec, admitted: string[] = []) =>
  checkResult(
    of,
    'a.ts',
    value,
    new Map(admitted.map((one) => one.split(' ') as [string, string])),
    redactor(),
    'salt',
  );

describe('what a result may say', () => {
  test('REV-10: a reviewer without a complete session is no approval; a fallback’s counts', () => {
    expect(check(result({ sessions: [] }))).toMatchObject({ end: 'worker_error', verdict: null });
    expect(check(result({ sessions: [{ ...session, end: 'failed' }] }))).toMatchObject({
      end: 'worker_error',
    });
    const model: TicketReviewer = { name: 'model', uses: 'openai', fallbacks: ['other'] };
    const other: TicketReviewer = { name: 'other', uses: 'xai' };
    const of = { ...spec, reviewers: [model], fallbacks: [other] };
    const by = (reviewer: string) => result({ sessions: [{ ...session, id: 'm1', reviewer }] });
    expect(check(by('model'), of)).toMatchObject({ end: 'worker_error' });
    expect(check(by('model'), of, ['m1 model'])).toMatchObject({
      end: 'reviewed',
      verdict: 'approve',
    });
    expect(check(by('other'), of, ['m1 other'])).toMatchObject({ end: 'reviewed' });
  });

  test('REV-10, ADM-1: a session stands for the reviewer it was admitted for, and for one reviewer only', () => {
    const model: TicketReviewer = { name: 'model', uses: 'openai', fallbacks: ['second'] };
    const second: TicketReviewer = { name: 'second', uses: 'xai' };
    const of = { ...spec, reviewers: [model, second], fallbacks: [second] };
    const by = (...sessions: [id: string, reviewer: string][]) =>
      check(result({ sessions: sessions.map(([id, reviewer]) => ({ ...session, id, reviewer })) }), of, [
        'm1 model',
        'm2 second',
        'm3 second',
      ]).end;
    expect(by(['m1', 'model'], ['m2', 'second'])).toBe('reviewed');
    expect(by(['m3', 'second'], ['m2', 'second'])).toBe('reviewed');
    expect(by(['m1', 'model'], ['m1', 'second'])).toBe('worker_error');
    expect(by(['m2', 'second'])).toBe('worker_error');
    expect(by(['m2', 'second'], ['m2', 'second'])).toBe('worker_error');
  });

  test('REV-3: a review without a verdict is bad_output; findings never approve; what has no place makes it partial', () => {
    expect(check(result({ verdict: null }))).toMatchObject({ end: 'bad_output', verdict: null });
    expect(check(result({ findings: [finding()] }))).toMatchObject({ verdict: 'findings' });
    expect(check(result({ unplaced: ['somewhere'] }))).toMatchObject({ partial: true });
  });

  test('REV-5, REV-8: fingerprints are made anew over redacted text; the ordinal of equal quotes stays', () => {
    const forged = check(result({ findings: [finding({ fingerprint: '0'.repeat(64) })] }));
    expect(forged.findings[0]?.fingerprint).toBe(finding().fingerprint);
    const second = fingerprint({ path: 'a.ts', lens: 'security', title: 'Hole', quote: 'x = 1', ordinal: 1 });
    const both = check(result({ findings: [finding(), finding({ fingerprint: second })] }));
    expect(both.findings.map((one) => one.fingerprint)).toEqual([finding().fingerprint, second]);
    const token = `ghp_${'a1B2'.repeat(9)}`;
    const leaked = check(result({ findings: [finding({ body: `see ${token}`, quote: `k="${token}"` })] }));
    expect(JSON.stringify(leaked)).not.toContain(token);
  });

  test('LED-2: a lone surrogate or a NUL never wedges a run; one finding a fingerprint, the worst severity stands', () => {
    const odd = check(result({ findings: [finding({ body: 'a\ud800b\u0000c' })], detail: '\udc00\u0000' }));
    expect(odd.findings[0]?.body.isWellFormed()).toBe(true);
    expect(odd.findings[0]?.body).not.toContain('\u0000');
    expect(odd.detail?.isWellFormed()).toBe(true);
    const twice = check(
      result({ findings: [finding({ severity: 'low' }), finding({ severity: 'critical' })] }),
    );
    expect(twice.findings).toMatchObject([{ severity: 'critical' }]);
    expect(clip('é'.repeat(10), 5)).toBe('éé');
  });

  test('AUT-3: other blobs are other content; an end without a review may have read nothing', () => {
    expect(readOtherContent(spec, result())).toBe(false);
    expect(readOtherContent(spec, result({ blobs: { base: null, head: null } }))).toBe(true);
    expect(readOtherContent(spec, result({ end: 'timeout', blobs: { base: null, head: null } }))).toBe(false);
    expect(
      readOtherContent(spec, result({ end: 'timeout', blobs: { base: null, head: 'e'.repeat(40) } })),
    ).toBe(true);
    expect(foreignReviewer(spec, result())).toBeNull();
    expect(foreignReviewer(spec, result({ findings: [finding({ reviewer: 'me' })] }))).toBe('me');
  });

  test('LSE-4: the digest of a result does not hang on the order of its keys', () => {
    expect(resultDigest({ a: 1, b: { c: 2, d: 3 } })).toBe(resultDigest({ b: { d: 3, c: 2 }, a: 1 }));
    expect(resultDigest({ a: 1 })).not.toBe(resultDigest({ a: 2 }));
  });

  test('RND-1: silence of a command ends a finding only on new content, from the same entry, when it completed', () => {
    const done: CheckedResult = check(result());
    const entry = spec.reviewers[0];
    const open = {
      number: 1,
      fingerprint: 'f',
      reviewer: 'lint',
      command: true,
      side: 'head' as const,
      blob: 'e'.repeat(40),
      entry,
    };
    const none = new Set<number>();
    expect(silencedFindings(spec, done, [open], none)).toEqual([[1, 'not_raised_again']]);
    expect(silencedFindings(spec, done, [{ ...open, blob: spec.blob.head }], none)).toEqual([]);
    expect(silencedFindings(spec, done, [{ ...open, command: false }], none)).toEqual([]);
    expect(silencedFindings(spec, done, [{ ...open, entry: undefined }], none)).toEqual([]);
    expect(silencedFindings(spec, { ...done, partial: true }, [open], none)).toEqual([]);
    expect(silencedFindings(spec, { ...done, end: 'timeout' }, [open], none)).toEqual([]);
    const stricter = entry?.command && {
      ...entry,
      command: { ...entry.command, run: ['lint', '--all', '{path}'] },
    };
    expect(silencedFindings(spec, done, [{ ...open, entry: stricter || undefined }], none)).toEqual([]);
    // the blob of a config file is content of the base, not of the policy
    const moved = entry?.command && {
      ...entry,
      command: { ...entry.command, config: [] },
    };
    expect(silencedFindings(spec, done, [{ ...open, entry: moved || undefined }], none)).toEqual([
      [1, 'not_raised_again'],
    ]);
  });

  describe('RND-1: a command whose policy entry changed ends its finding only when the code went', () => {
    const done: CheckedResult = check(result());
    const [entry] = spec.reviewers;
    const open = {
      number: 1,
      fingerprint: 'f',
      reviewer: 'lint',
      command: true,
      side: 'head' as const,
      blob: 'e'.repeat(40),
      entry: entry && { ...entry, lenses: ['style'] },
    };
    const gone = new Set([1]);

    test('RND-1: it ends as code_changed when the quote is gone, also where the old entry is not known any more', () => {
      expect(silencedFindings(spec, done, [open], gone)).toEqual([[1, 'code_changed']]);
      expect(silencedFindings(spec, done, [{ ...open, entry: undefined }], gone)).toEqual([
        [1, 'code_changed'],
      ]);
    });

    test('RND-1: under the same entry silence is enough, and says so', () => {
      expect(silencedFindings(spec, done, [{ ...open, entry }], gone)).toEqual([[1, 'not_raised_again']]);
    });

    const model = { ...spec, reviewers: spec.reviewers.map((one) => ({ ...one, uses: 'openai' as const })) };
    test.each([
      ['its quote is still there', spec, done, open, new Set([2])],
      ['the content is the same', spec, done, { ...open, blob: spec.blob.head }, gone],
      ['a model of that name reviews now', model, done, open, gone],
      ['another command reviewed', spec, done, { ...open, reviewer: 'other' }, gone],
      ['a model raised it', spec, done, { ...open, command: false }, gone],
      [
        'it did not complete',
        spec,
        { ...done, sessions: [{ ...session, end: 'failed' as const }] },
        open,
        gone,
      ],
      ['the result is partial', spec, { ...done, partial: true }, open, gone],
      ['it was raised again', spec, { ...done, findings: [finding({ fingerprint: 'f' })] }, open, gone],
    ])('RND-1: it stands when %s', (_why, of, told, known, where) => {
      expect(silencedFindings(of, told, [known], where)).toEqual([]);
    });
  });
});
