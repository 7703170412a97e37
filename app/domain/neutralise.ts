/**
 * Neutralising (PUB-4, case 35): text of pull requests, models and tools is shown and does nothing.
 * Who controls the input: anybody. It is done last and once, where the text enters the output: twice
 * would show the marks of the first time. `markdown.ts` does it for whatever is put into a template.
 */

/** Invisible, and it ends whatever GitHub would have made of the characters around it. */
const BREAK = '\u200b';

/** Terminal sequences; found before the controls, since without their ESC the rest of them would stay as text. */
const ANSI = /(?![\n\r\t])\p{Cc}(?:\[[0-?]*[ -/]*[@-~]|\]\P{Cc}*(?:\p{Cc}\\?)?)/gu;
/** All controls but LF and TAB. */
const CONTROLS = /(?![\n\t])\p{Cc}/gu;
/** Characters that reorder or hide text: bidi marks, fillers, tags. What emoji are joined with stays. */
const INVISIBLE = /(?!\u200d|\ufe0e|\ufe0f)[\p{Cf}\p{DI}]/gu;

/** Marks stacked on one character until they lie over the lines around it; no script needs as many. */
const STACKED = /(\p{M}{8})\p{M}+/gu;

/** Text without terminal sequences, controls, and characters that reorder, hide or pile up; LF and TAB stay, CRLF and CR become LF. */
export function plain(text: string): string {
  return text
    .toWellFormed()
    .replace(ANSI, '')
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, '\n')
    .replace(CONTROLS, '')
    .replace(INVISIBLE, '\ufffd')
    .replace(STACKED, '$1');
}

/**
 * For places that show text as it is (annotations, titles): nothing is escaped, and no mention, no
 * reference to an issue and no command of ours is left in it.
 */
export function neutralPlain(text: string): string {
  return broken(plain(text)).replace(/^([^\S\n]*)\//gm, `$1${BREAK}/`);
}

/** For one line of Markdown: shown letter by letter. Line ends become spaces; nothing in it is Markdown, HTML, a link, a mention. */
export function neutralInline(text: string): string {
  return escaped(
    // not by one expression over spaces and line ends: a long run of spaces would cost its square
    plain(text)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .join(' ')
      .replaceAll('\t', ' '),
  );
}

/** For several lines of Markdown: each is a line of a quote, so that none can begin a block, a fence or a command. */
export function neutralQuote(text: string): string {
  return plain(text)
    .trim()
    .split('\n')
    .map((line) => `> ${escaped(line.replaceAll('\t', ' ').trim())}`.trimEnd())
    .join('  \n');
}

/** As code inside a line: the delimiter is longer than any in the text. In a table a bar must be escaped even there. */
export function neutralCode(text: string): string {
  const line = plain(text).replace(/\s/g, ' ').replaceAll('|', '\uff5c');
  if (line.trim() === '') return '` `';
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  const space = line.startsWith('`') || line.endsWith('`') || line.startsWith(' ') ? ' ' : '';
  return `${fence}${space}${line}${space}${fence}`;
}

/** The signs of our verdict line: no line of another's text begins like it. */
const SIGN = /^(?:✅|❌|✋|⏳|💤)\p{M}*/u;

/** ASCII punctuation shown as itself: a backslash before what Markdown reads, entities for HTML, a break in what GitHub links. */
function escaped(line: string): string {
  return broken(line)
    .replace(/[\\`*_{}[\]()+!|~=^$-]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/^(\s*)([#/:]|\d+(?=[.)]))/, `$1${BREAK}$2`)
    .replace(SIGN, '□');
}

/**
 * Breaks what GitHub looks for after rendering, where escapes are gone: mentions, references to
 * issues and commits, links without brackets, emoji names. Entities are no way around: `&` is escaped.
 */
function broken(text: string): string {
  return (
    text
      .replace(/[@\uff20\ufe6b]/g, (at) => `${at}${BREAK}`)
      .replace(/[#\uff03\ufe5f](?=\p{M}*\u200d*\p{Nd})/gu, (hash) => `${hash}${BREAK}`)
      .replace(/(?<![a-z])gh-(?=\d)/gi, (match) => `${match}${BREAK}`)
      .replace(/:\/\//g, `:${BREAK}//`)
      // GitHub takes these after an underscore too, which `\\b` does not see
      .replace(/www\./gi, (match) => `${match.slice(0, 3)}${BREAK}.`)
      .replace(/(mailto|xmpp):/gi, (match) => `${match.slice(0, -1)}${BREAK}:`)
      .replace(
        /\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b/gi,
        (sha) => `${sha.slice(0, 4)}${BREAK}${sha.slice(4)}`,
      )
      // an emoji's name may be closed by a colon of ours that follows; none is two digits, as in a time of day
      .replace(/:(?!(?<=\d:)\d\d(?![\w+-]))(?=[a-z0-9_+-]+(?::|$))/gim, `:${BREAK}`)
  );
}
