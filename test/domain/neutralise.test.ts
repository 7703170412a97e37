import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COMMAND_NAMES } from '../../app/domain/command/table.ts';
import { parseComment } from '../../app/domain/command.ts';
import {
  neutralCode,
  neutralInline,
  neutralPlain,
  neutralQuote,
  plain,
} from '../../app/domain/neutralise.ts';
import { cutText, Markdown, md } from '../../app/domain/summary/markdown.ts';
import { cpuNow } from '../helpers/cpu.ts';

const addressing = { prefix: '', mention: 'countersign' };
/** What GitHub would still find after rendering: a mention, a reference, a bare link. */
function effects(markdown: string): string[] {
  const rendered = markdown
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>');
  return [
    ...(rendered.match(/@[a-z0-9]/gi) ?? []),
    ...(rendered.match(/#\d/g) ?? []),
    ...(rendered.match(/\bgh-\d/gi) ?? []),
    ...(rendered.match(/https?:\/\/\S/gi) ?? []),
    ...(rendered.match(/\bwww\.\S/gi) ?? []),
  ];
}

describe('case 35: text of pull requests and models', () => {
  const texts: Record<string, string> = {
    'a team': '@org/team look',
    'an entity for the at-sign': '&#64;name &commat;name &#x40;name',
    'a mention twice': '@name and @name',
    'a closing keyword': 'fixes #1, closes org/repo#22, resolves GH-3',
    'a closing link': 'fixes https://github.com/o/r/issues/1',
    'the end of a fold': '</details>\n\n<h1>Approved</h1>',
    'a link': '[click](http://evil.example) <http://evil.example> www.evil.example',
    'a reference link': '[a]: http://evil.example\n[a]',
    'an image': '![x](https://evil.example/track.png)',
    'a false verdict': '✅ **Passed**: APPROVED by M',
    'a heading': '# Passed\n## Passed\nPassed\n======',
    'back-ticks': '`code` ```` `` ```\nfence\n```',
    'right-to-left override': 'gnp.\u202eexe \u2066hidden\u2069',
    'terminal colours': '\u001b[31mred\u001b[0m \u001b]8;;http://evil.example\u0007link\u001b]8;;\u0007',
    'a table': 'a | b\n--- | ---\nc | d',
    'a list and a quote': '- [x] done\n> said\n1. one',
    'HTML comments': '<!-- countersign --> <img src=x onerror=alert(1)>',
    commands: COMMAND_NAMES.map((name) => `/${name} x`).join('\n'),
    'emoji names': ':shipit: :+1:',
    'math and footnotes': '$$x$$ [^1] ~~gone~~',
  };
  for (const [name, text] of Object.entries(texts)) {
    test(`PUB-4: ${name} does nothing in a line, in a quote, as code`, () => {
      for (const shown of [neutralInline(text), neutralQuote(text)]) {
        expect(effects(shown)).toEqual([]);
        expect(shown).not.toMatch(/<[a-z/!]/i);
        expect(shown).not.toMatch(/(?<!\\)[[\]`*]/);
        expect(plainOf(shown)).not.toMatch(/[\u202a-\u202e\u2066-\u2069]|(?!\n)\p{Cc}/u);
        expect(parseComment(shown, addressing).commands).toEqual([]);
      }
      expect(neutralInline(text)).not.toContain('\n');
      for (const line of neutralQuote(text).split('\n')) expect(line).toMatch(/^>/);
      expect(neutralCode(text)).not.toContain('\n');
      expect(parseComment(neutralPlain(text), addressing).commands).toEqual([]);
      expect(neutralPlain(text)).not.toMatch(/@[a-z0-9]|#\d/i);
    });
  }

  test('PUB-4: every occurrence is treated, not the first alone', () => {
    expect(neutralInline('@a @a @a').match(/@\u200b/g)).toHaveLength(3);
  });

  test('PUB-4: what is shown reads as it was written', () => {
    for (const text of ['a_b * c', 'if (a < b && c > d)', 'x[0] = `y`', '50% of $5', 'C:\\dir']) {
      const shown = neutralInline(text)
        .replace(/\\([!-/:-@[-`{-~])/g, '$1')
        .replace(/&lt;/g, '<')
        .replace(/&gt;/g, '>')
        .replace(/&amp;/g, '&')
        .replaceAll('\u200b', '');
      expect(shown).toBe(text);
    }
  });

  test('PUB-4: a code span is closed by no text: its delimiter is longer than any run of back-ticks', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('`', 'a', ' ', '|', '\n') }), (text) => {
        const shown = neutralCode(text);
        const fence = /^`+/.exec(shown)?.[0] ?? '';
        const inner = shown.slice(fence.length, -fence.length);
        expect(shown.endsWith(fence)).toBe(true);
        for (const run of inner.match(/`+/g) ?? []) expect(run.length).toBeLessThan(fence.length);
      }),
    );
  });

  test('CMD-2: no line of any text, neutralised, is a command of ours', () => {
    const word = fc.constantFrom(
      ...COMMAND_NAMES.map((name) => `/${name}`),
      '@countersign',
      '\n',
      ' ',
      '> ',
      '```',
      '\u00a0',
      '\t',
      '\r\n',
      'x',
      '\u200b',
      '\u001b[0m',
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (words) => {
        const text = words.join('');
        for (const shown of [
          neutralInline(text),
          neutralQuote(text),
          neutralPlain(text),
          neutralCode(text),
          md`${text}`.text,
        ]) {
          const { commands, nearMisses } = parseComment(shown, addressing);
          expect(commands).toEqual([]);
          expect(nearMisses).toEqual([]);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('PUB-4: any text at all: no mention, no reference, no link, no HTML', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 80 }),
        fc.constantFrom('@a', '#1', 'http://x', '</b>', '&#64;a', 'www.x'),
        (text, bad) => {
          for (const shown of [neutralInline(text + bad + text), neutralQuote(text + bad)]) {
            expect(effects(shown)).toEqual([]);
            expect(shown.isWellFormed()).toBe(true);
          }
        },
      ),
    );
  });

  test('attack 9, PUB-4: a megabyte of spaces, back-ticks or half-made sequences costs no time', () => {
    const pieces = [
      ' ',
      '\t',
      '\u00a0',
      ' \n',
      '`',
      '@',
      ':a',
      'a1',
      '\u001b]',
      '\u001b[0',
      '://',
      '<!--',
      '/a\n',
    ];
    for (const piece of pieces) {
      const text = `a${piece.repeat(1_000_000 / piece.length)}b`;
      for (const neutral of [neutralInline, neutralQuote, neutralCode, neutralPlain]) {
        const begun = cpuNow();
        neutral(text);
        expect(cpuNow() - begun, JSON.stringify(piece)).toBeLessThan(3_000);
      }
    }
    expect(neutralInline(' a \n\n \t b\n')).toBe('a b');
  });

  test('plain: line ends become LF, tabs stay, nothing of a terminal sequence stays', () => {
    expect(plain('a\r\nb\rc\u2028d\te\u001b[1;31mf\u001b[0m\u0000\ud800')).toBe('a\nb\nc\nd\tef\ufffd');
  });
});

describe('Markdown', () => {
  test('PUB-4: a time of day stays whole, an emoji name does not', () => {
    expect(neutralInline('openai since 12:00')).toBe('openai since 12:00');
    expect(neutralInline('5:100')).not.toContain(':100');
    expect(neutralInline(':00:')).not.toContain(':00:');
  });

  test('PUB-4: whatever enters a template is neutralised once; Markdown and numbers stay', () => {
    const inner = md`**${'*bold*'}**`;
    expect(md`${inner} ${3} ${'<b>'}`.text).toBe('**\\*bold\\*** 3 &lt;b&gt;');
  });

  test('PUB-4: cut by bytes at a character, with fences and folds closed, marker and all within the limit', () => {
    const folded = Markdown.folded(md`label`, Markdown.fence('x\n'.repeat(500)));
    const cut = Markdown.join([md`${'ä'.repeat(300)}`, folded], '\n\n').cut(1_000, md`… more`);
    expect(Buffer.byteLength(cut.text)).toBeLessThanOrEqual(1_000);
    expect(cut.text.endsWith('… more')).toBe(true);
    expect(cut.text.match(/^```/gm)).toHaveLength(2);
    expect(cut.text.match(/<\/details>/g)).toHaveLength(1);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), fc.nat(120), (text, bytes) => {
        const short = cutText(text, bytes);
        expect(Buffer.byteLength(short)).toBeLessThanOrEqual(bytes);
        expect(text.toWellFormed().startsWith(short) || !text.isWellFormed()).toBe(true);
        // none that the text itself has not
        expect(short.split('\ufffd').length).toBeLessThanOrEqual(text.toWellFormed().split('\ufffd').length);
      }),
    );
  });
});

function plainOf(markdown: string): string {
  return markdown.replaceAll('\u200b', '');
}
