import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fingerprint, foldSpace, ground, groundingText, linesOf } from '../../app/domain/finding.ts';

const file = 'one\n  two  three\nfour\ntwo three four\n';

describe('grounding', () => {
  const text = groundingText(file);
  test('REV-4: a quote within the lines it names is grounded after white-space folding', () => {
    expect(ground(text, { quote: 'two three', startLine: 2, endLine: 2 })).toEqual({
      grounded: true,
      startLine: 2,
      endLine: 2,
      corrected: false,
      ordinal: 0,
    });
    expect(ground(text, { quote: 'two three', startLine: 4, endLine: 4 })).toMatchObject({ ordinal: 1 });
  });
  test('REV-4: a quote that stands elsewhere once corrects the lines', () => {
    expect(ground(text, { quote: 'one', startLine: 4, endLine: 4 })).toMatchObject({
      grounded: true,
      startLine: 1,
      endLine: 1,
      corrected: true,
    });
    expect(ground(text, { quote: 'three\nfour\ntwo', startLine: 1, endLine: 2 })).toMatchObject({
      startLine: 2,
      endLine: 4,
      corrected: true,
    });
  });
  test('REV-4: a quote that stands elsewhere twice, nowhere, or is empty is ungrounded', () => {
    for (const quote of ['two three', 'five', '', ' \n '])
      expect(ground(text, { quote, startLine: 1, endLine: 1 })).toEqual({ grounded: false });
  });
  test('case 29: CRLF, a lone CR, U+2028, U+0085 and form feed do not count as lines', () => {
    const odd = 'a\r\nb\r\nc1\rc2\r\nd\r\ne1\u2028e2\r\nf\u0085f2\r\ng\fg2\r\nlast';
    expect(linesOf(odd)).toHaveLength(8);
    expect(ground(groundingText(odd), { quote: 'last', startLine: 8, endLine: 8 })).toMatchObject({
      startLine: 8,
      corrected: false,
    });
    // a worker that split on all of these counts 12 lines: the line is moved to where the quote stands
    expect(ground(groundingText(odd), { quote: 'last', startLine: 12, endLine: 12 })).toMatchObject({
      grounded: true,
      startLine: 8,
      endLine: 8,
      corrected: true,
    });
  });
  test('case 28: a byte order mark changes no line number', () => {
    expect(
      ground(groundingText('\ufefffirst\nsecond\n'), { quote: 'first', startLine: 1, endLine: 1 }),
    ).toMatchObject({ corrected: false });
  });
  test('REV-4: any whole line of any file grounds on its own line number', () => {
    const line = fc.string({ unit: 'binary', maxLength: 12 }).map((s) => s.replaceAll('\n', ''));
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), fc.nat(), (lines, pick) => {
        const n = pick % lines.length;
        const quote = lines[n] ?? '';
        const result = ground(groundingText(`${lines.join('\n')}\n`), {
          quote,
          startLine: n + 1,
          endLine: n + 1,
        });
        expect(result.grounded).toBe(foldSpace(quote) !== '');
        if (result.grounded) expect([result.startLine, result.endLine]).toEqual([n + 1, n + 1]);
      }),
    );
  });
  test('REV-4: the lines of a grounded finding hold the quote, whatever lines were named', () => {
    const word = fc.constantFrom('a', 'b', 'c', '\n', ' ', '\r\n', '\t');
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 30 }).map((w) => w.join('')),
        fc.array(word, { maxLength: 4 }).map((w) => w.join('')),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 0, max: 4 }),
        (text, quote, startLine, more) => {
          const result = ground(groundingText(text), { quote, startLine, endLine: startLine + more });
          if (!result.grounded) return;
          const held = text.split('\n').slice(result.startLine - 1, result.endLine);
          expect(foldSpace(held.join('\n'))).toContain(foldSpace(quote));
        },
      ),
    );
  });
});

describe('fingerprint', () => {
  const of = { path: 'src/a.ts', lens: 'security', title: 'Bad  Thing', quote: 'a  b', ordinal: 0 };
  test('REV-5: stable under white space and case of the title, different in every part', () => {
    const print = fingerprint(of);
    expect(print).toMatch(/^[0-9a-f]{64}$/);
    expect(fingerprint({ ...of, title: 'bad thing', quote: ' a\nb ' })).toBe(print);
    for (const other of [{ path: 'b' }, { lens: 'tests' }, { title: 'x' }, { quote: 'c' }, { ordinal: 1 }])
      expect(fingerprint({ ...of, ...other })).not.toBe(print);
    expect(fingerprint({ ...of, path: { b64: Buffer.from('src/a.ts').toString('base64') } })).toBe(print);
  });
});
