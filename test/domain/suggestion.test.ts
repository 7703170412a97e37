import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseComment } from '../../app/domain/command.ts';
import { redactor } from '../../app/domain/redact.ts';
import {
  applySuggestion,
  diffLines,
  placeSuggestion,
  reviewMarker,
  reviewText,
  suggestionComment,
} from '../../app/domain/suggestion.ts';

const { redact } = redactor();
const HEAD = ['one', 'two', '  three();', 'four', 'five', 'six', 'seven', 'eight'].join('\n');
const PATCH = [
  '@@ -1,3 +1,4 @@ top',
  ' one',
  ' two',
  '+  three();',
  ' four',
  '@@ -6 +7,2 @@',
  ' seven',
  '+eight',
  '\\ No newline at end of file',
].join('\n');
const source = (startLine: number, endLine: number, quote: string, suggestion: string) => ({
  startLine,
  endLine,
  quote,
  suggestion,
});
const placed = (startLine: number, endLine: number, quote: string, suggestion: string, head = HEAD) =>
  placeSuggestion(source(startLine, endLine, quote, suggestion), head, diffLines(PATCH), redact);

describe('PUB-5: suggestions', () => {
  it('lines of the diff are those of the head’s side, by hunk', () => {
    expect([...diffLines(PATCH)]).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
      [4, 1],
      [7, 2],
      [8, 2],
    ]);
    expect(diffLines(null).size).toBe(0);
    expect(diffLines('Binary files differ').size).toBe(0);
  });

  it('one on the head’s own quoted lines inside one hunk is placed, and changes only them', () => {
    const found = placed(3, 3, 'three();', '  four();');
    expect(found).toMatchObject({ ok: true, startLine: 3, endLine: 3, lines: ['  four();'] });
    if (!found.ok) throw new Error(found.reason);
    expect(applySuggestion(HEAD, found)).toBe(HEAD.replace('  three();', '  four();'));
    expect(placed(2, 3, 'two\n  three();', 'both\n')).toMatchObject({ ok: true, lines: ['both'] });
    // taking lines away
    expect(placed(2, 2, 'two', '')).toMatchObject({ ok: true, lines: [] });
  });

  it('what is not verified is not posted, with the reason', () => {
    const reason = (one: ReturnType<typeof placed>) => (one.ok ? 'placed' : one.reason);
    expect(reason(placed(5, 5, 'five', 'x'))).toBe('its lines are not in the diff');
    expect(reason(placed(4, 7, 'four\nfive\nsix\nseven', 'x'))).toBe(
      'its lines are not in one piece of the diff',
    );
    expect(reason(placed(8, 9, 'eight', 'x'))).toBe('its lines are not in this head');
    expect(reason(placed(0, 1, 'one', 'x'))).toBe('its lines are not in this head');
    expect(reason(placed(2, 2, 'three();', 'x'))).toBe('its lines are not those that were quoted');
    // a reviewer that names more lines than it read would overwrite the others
    expect(reason(placed(1, 3, 'two', 'x'))).toBe('its lines are not those that were quoted');
    expect(reason(placed(2, 2, 'two', 'two'))).toBe('it changes nothing');
    expect(reason(placed(2, 2, 'two', 'x\u202ey'))).toBe('it holds characters that are not shown');
    expect(reason(placed(2, 2, 'two', 'x\u0000'))).toBe('it holds characters that are not shown');
    expect(reason(placed(2, 2, 'two', 'key = [redacted:github-token]'))).toBe('it is near a secret');
    expect(reason(placed(2, 2, 'two', '`'.repeat(30)))).toBe('it holds a long run of back-ticks');
    const token = `ghp_${'a1B2c3D4'.repeat(5).slice(0, 36)}`;
    expect(reason(placed(2, 2, 'two', 'x', HEAD.replace('two', `two ${token}`)))).toBe('it is near a secret');
    expect(reason(placed(2, 2, 'two', 'x', HEAD.replaceAll('\n', '\r\n')))).toBe('its lines end in CR LF');
    expect(reason(placed(1, 1, 'one', 'x', `${'line\n'.repeat(3)}`))).toBe(
      'its lines are not those that were quoted',
    );
  });

  it('of any file and any suggestion: every line outside the range stays byte for byte', () => {
    const line = fc
      .string({ unit: 'grapheme', maxLength: 8 })
      .map((text) => `L${text.replace(/[\r\n]/g, '')}`);
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 12 }),
        fc.nat(20),
        fc.nat(3),
        fc.array(line, { maxLength: 4 }),
        (lines, from, more, suggestion) => {
          const start = (from % lines.length) + 1;
          const end = Math.min(lines.length, start + more);
          const head = lines.join('\n');
          const diff = new Map(lines.map((_, i) => [i + 1, 1] as const));
          const found = placeSuggestion(
            source(start, end, lines.slice(start - 1, end).join('\n'), suggestion.join('\n')),
            head,
            diff,
            (text) => text,
          );
          if (!found.ok) return;
          const after = applySuggestion(head, found).split('\n');
          expect(after.slice(0, start - 1)).toEqual(lines.slice(0, start - 1));
          expect(after.slice(after.length - (lines.length - end))).toEqual(
            end === lines.length ? after.slice(after.length) : lines.slice(end),
          );
        },
      ),
    );
  });

  it('CMD-2, case 35: a comment and the review hold no command, no mention and no fence that ends early', () => {
    const text = '@org/team fixes #1\n/stop\n```\n</details>\n/override now';
    const comment = suggestionComment({ number: 3, severity: 'high', title: text, body: text }, [
      '```',
      '/stop',
      '````',
      '@someone',
    ]);
    const [shown = '', block = ''] = comment.split('`````suggestion');
    expect(shown).not.toMatch(/@[a-z]|#\d|<\/details>/i);
    expect(block).toBe('\n```\n/stop\n````\n@someone\n`````');
    const review = reviewText(
      reviewMarker('1', '2', 'a'.repeat(40)),
      1,
      2,
      'https://countersign.test/runs/r',
    );
    for (const one of [comment, review])
      expect(parseComment(one, { prefix: '', mention: 'countersign' })).toEqual({
        commands: [],
        nearMisses: [],
      });
    expect(review.startsWith('<!-- countersign:review 1/2/')).toBe(true);
  });
});
