/** What a renderer of GitHub's Markdown makes of neutralised text (PUB-4, case 35): words, and nothing that does anything. */
import fc from 'fast-check';
import { micromark } from 'micromark';
import { gfm, gfmHtml } from 'micromark-extension-gfm';
import { describe, expect, test } from 'vitest';
import { parseComment } from '../../../app/domain/command.ts';
import {
  neutralCode,
  neutralInline,
  neutralPlain,
  neutralQuote,
  plain,
} from '../../../app/domain/neutralise.ts';
import { Markdown, md } from '../../../app/domain/summary/markdown.ts';

const render = (markdown: string) =>
  micromark(markdown, { extensions: [gfm()], htmlExtensions: [gfmHtml()], allowDangerousHtml: true });

/** The text of rendered HTML outside of code, where GitHub looks for mentions and references. */
function words(html: string): string {
  return html
    .replace(/<code[\s>][\s\S]*?<\/code>/g, '')
    .replace(/<[^>]*>/g, '')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&');
}

/** What GitHub would find in that text after rendering. */
const EFFECTS: Readonly<Record<string, RegExp>> = {
  mention: /[@\uff20\ufe6b][\u200d\ufe0e\ufe0f]*[a-z0-9]/iu,
  reference: /[#\uff03\ufe5f][\ufe0e\ufe0f\u20e3\u200d]*[0-9]/u,
  'GH reference': /(?<![a-z])gh-[0-9]/iu,
  'closing keyword': /\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:[\w./-]*#\d|gh-\d|https?:\/\/)/iu,
  'bare link': /(?:https?|ftp):\/\/|www\.[a-z]|(?:mailto|xmpp):\S/iu,
  'emoji name': /:[a-z0-9_+-]+:/iu,
};

function check(markdown: string, allowed: RegExp): void {
  const html = render(markdown);
  for (const [tag] of html.matchAll(/<[^>]*>/g))
    expect(tag, `${JSON.stringify(markdown)} → ${html}`).toMatch(allowed);
  const text = words(html);
  for (const [name, pattern] of Object.entries(EFFECTS))
    expect(pattern.test(text), `${name} in ${JSON.stringify(text)} of ${JSON.stringify(markdown)}`).toBe(
      false,
    );
}
const LINE = /^<\/?p>$/;
const QUOTE = /^<\/?(?:p|blockquote|br)(?: \/)?>$/;
const CODE = /^<\/?(?:p|code)>$/;

/** Pieces that do something on GitHub, and what is put around them to get past a filter. */
const dangerous = fc.constantFrom(
  '@org/team',
  '\uff20name',
  '\ufe6bname',
  '@\u200dname',
  '@\ufe0fname',
  '@\u2060name',
  '@\u00adname',
  '&#64;name',
  '&commat;name',
  'fixes #1',
  'Fixes: #22',
  'closes org/repo#3',
  'resolves GH-3',
  'fix\u00a0#4',
  '#\ufe0f5',
  '#\u200d6',
  '\uff037',
  '#\uff18',
  'https://evil.example/x',
  'http:\u200b//evil.example',
  '_www.evil.example',
  '~www.evil.example',
  '*www.evil.example',
  'mailto:a@b.example',
  '_mailto:a@b.example',
  'xmpp:a@b.example/c',
  'a.b-c_d@evil.example',
  'ftp://evil.example',
  '<https://evil.example>',
  '<a href=x>',
  '</details>',
  '<!--',
  '-->',
  '<img src=x onerror=y>',
  '<script>',
  '<?php',
  '<![CDATA[',
  '[a](https://evil.example)',
  '![a](https://evil.example/p.png)',
  '[a]: https://evil.example',
  '[a][b]',
  '[^1]',
  '[^1]: note',
  '# heading',
  '\n=====',
  '\n-----',
  '\n\n    code',
  '```',
  '~~~',
  '`',
  '``',
  '**bold**',
  '__bold__',
  '_em_',
  '~~gone~~',
  '$$x$$',
  '- item',
  '+ item',
  '1. item',
  '1) item',
  '- [x] done',
  '> quote',
  '| a | b |\n|---|---|',
  '***',
  '\\',
  '\\\\',
  '\\@name',
  '\\\n',
  '  \n',
  ':shipit:',
  '::warning::x',
  '✅ **Passed**',
  '/stop',
  '\uff0fstop',
  '@countersign stop',
  '\u202e',
  '\u2066',
  '\u{e0041}',
  '\u0000',
  '\u001b[1m',
  '\u0085/stop',
  '\u2028/stop',
  '&lt;b&gt;',
  '&amp;#64;',
  '&NewLine;',
);
const text = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: dangerous },
      fc.constantFrom(' ', '\n', '\n\n', '\t', '_', 'a', '1', '(', '"'),
      fc.string({ unit: 'grapheme', maxLength: 4 }),
    ),
    { maxLength: 10 },
  )
  .map((parts) => parts.join(''));

describe('PUB-4, case 35: neutralised text, rendered', () => {
  test('in a line, in a quote, as code: no tag of its own, no mention, no reference, no link, no emoji', () => {
    fc.assert(
      fc.property(text, (one) => {
        check(neutralInline(one), LINE);
        check(neutralQuote(one), QUOTE);
        check(neutralCode(one), CODE);
      }),
      { numRuns: 400 },
    );
  });

  test('side by side in one paragraph: what one text leaves open no other can close', () => {
    fc.assert(
      fc.property(text, text, text, (a, b, c) => {
        check(md`${a}: ${Markdown.code(b)} ${c}`.text, CODE);
      }),
      { numRuns: 300 },
    );
  });

  test('in a table every cell stays in its cell', () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        const html = render(Markdown.table(['A', 'B'], [[Markdown.code(a), md`${b}`]]).text);
        expect(html.match(/<td/g), html).toHaveLength(2);
        expect(html.match(/<tr/g)).toHaveLength(2);
      }),
      { numRuns: 200 },
    );
  });

  test('neutralised twice it does no more than once, and plain text stays as it is', () => {
    fc.assert(
      fc.property(text, (one) => {
        expect(plain(plain(one))).toBe(plain(one));
        check(neutralInline(neutralInline(one)), LINE);
        check(neutralQuote(neutralInline(one)), QUOTE);
        expect(
          parseComment(neutralPlain(neutralPlain(one)), { prefix: '', mention: 'countersign' }).commands,
        ).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  test('no line of a text begins like our verdict line', () => {
    for (const sign of ['✅', '❌', '✋', '⏳', '💤', '✋\ufe0f', ' ✅', '\u200b✅']) {
      for (const shown of [neutralInline(`${sign} Passed`), neutralQuote(`a\n${sign} Passed`)])
        expect(shown).not.toMatch(/^(?:> )?[\s\u200b]*[✅❌✋⏳💤]/mu);
    }
    expect(neutralInline('Done ✅')).toBe('Done ✅');
  });

  test('marks that pile up over other lines are cut down', () => {
    expect(plain(`a${'\u0301'.repeat(500)}`)).toBe(`a${'\u0301'.repeat(8)}`);
    expect(plain('नमस्ते ไทย ú')).toBe('नमस्ते ไทย ú');
  });
});

describe('PUB-4: what is cut', () => {
  const bytes = (value: string) => Buffer.byteLength(value);
  const piece = fc.oneof(
    fc
      .string({ unit: fc.constantFrom('a', 'ä', '漢', '🐧', '\u0301', '\n', '`', '|'), maxLength: 40 })
      .map((one) => md`${one}`),
    fc
      .string({ unit: fc.constantFrom('a', '漢', '`', '🐧'), maxLength: 30 })
      .map((one) => Markdown.code(one)),
    fc
      .string({ unit: fc.constantFrom('a', '漢', '\n', '🐧'), maxLength: 40 })
      .map((one) => Markdown.fence(one)),
    fc
      .array(fc.constantFrom('a', '```', '````', '漢'), { maxLength: 6 })
      .map((lines) => Markdown.suggestion(lines)),
    fc
      .string({ unit: fc.constantFrom('a', '漢', '\n'), maxLength: 40 })
      .map((one) => Markdown.folded(md`label`, Markdown.quote(one))),
  );
  test('at any length: within the bytes, between characters, fences and folds closed, the marker last', () => {
    const marker = md`… cut here; the rest is on ${Markdown.link(md`the run's page`, 'https://countersign.test/runs/r')}.`;
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 12 }), fc.nat(600), (parts, more) => {
        const whole = Markdown.join(parts, '\n\n');
        const limit = bytes(marker.text) + 80 + more;
        const cut = whole.cut(limit, marker).text;
        expect(bytes(cut)).toBeLessThanOrEqual(limit);
        expect(cut.isWellFormed()).toBe(true);
        expect(cut.includes('\ufffd')).toBe(whole.text.includes('\ufffd') && cut.includes('\ufffd'));
        if (bytes(whole.text) <= limit) {
          expect(cut).toBe(whole.text);
          return;
        }
        expect(cut.endsWith(marker.text)).toBe(true);
        // the marker's link is a link: no fence and no fold has swallowed it
        expect(render(cut)).toContain('<a href="https://countersign.test/runs/r">the run');
        expect(cut.match(/<details>/g)?.length ?? 0).toBe(cut.match(/<\/details>/g)?.length ?? 0);
      }),
      { numRuns: 400 },
    );
  });
});
