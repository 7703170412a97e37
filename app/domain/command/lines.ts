/**
 * The lines of a comment by what they are (CMD-2). Anyone may write a comment, and quoting, showing
 * or hiding a command must never run it: where GitHub's rendering is disputed, a line is not a command.
 */

/** What a line is: only `text` can be a command; `beside_quote` is text that renders inside a quote. */
export type LineRole = 'text' | 'blank' | 'code' | 'quote' | 'beside_quote' | 'comment' | 'list';

/** A line with its role; `text` is without its end and its indentation. */
export interface CommentLine {
  readonly number: number;
  readonly role: LineRole;
  readonly text: string;
}

/** Characters that separate words besides the space: tab, no-break and the other visible spaces. */
export const SPACES = ' \\t\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000';

const INDENT = new RegExp(`^[${SPACES}]*`);
const BLANK = new RegExp(`^[${SPACES}]*$`);
const BREAK = /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const MARKER = /^(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t]|$)/;
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/;
const HTML = /^<(pre|script|style|textarea|code|blockquote)(?=[\s>]|$)/i;
const FORWARDED = /^(-{2,}[ \t]*(original|forwarded) message[ \t]*-{2,}|begin forwarded message:)[ \t]*$/i;
const HEADING = /^#{1,6}(?:[ \t]|$)/;
const TEXT_ROLES: ReadonlySet<LineRole> = new Set(['text', 'list', 'beside_quote']);
const BLOCK_START =
  /^ {0,3}(?:>|[-*+](?:[ \t]|$)|[0-9]{1,9}[.)](?:[ \t]|$)|#{1,6}(?:[ \t]|$)|`{3,}[^`]*$|~{3,})/;

interface Fence {
  readonly char: string;
  readonly length: number;
  /** Columns of the list item it stands in; a line to the left of it ends both. */
  readonly container: number;
}

/** Every line of a comment with its role; linear in the length of the comment. */
export function readLines(body: string): CommentLine[] {
  const raw = body.split(/\r\n|\n|\r/);
  const lines: CommentLine[] = [];
  const items: number[] = [];
  const inline = new Inline(raw);
  let fence: Fence | null = null;
  let html: string | null = null;
  let besideQuote = false;
  let inItemText = false;
  let forwarded = false;

  for (const [i, whole] of raw.entries()) {
    const push = (role: LineRole, text = whole) => lines.push({ number: i + 1, role, text });
    if (forwarded) {
      push('quote');
      continue;
    }
    if (inline.inComment) {
      if (BLANK.test(whole)) inline.endParagraph();
      else inline.scan(i, 0);
      push('comment');
      continue;
    }
    if (html !== null) {
      if (whole.toLowerCase().includes(`</${html}`)) html = null;
      push('code');
      continue;
    }
    if (BLANK.test(whole)) {
      push(fence === null ? 'blank' : 'code');
      besideQuote = false;
      inItemText = false;
      inline.endParagraph();
      continue;
    }
    const lead = INDENT.exec(whole)?.[0] ?? '';
    const indent = columns(lead);
    let rest = whole.slice(lead.length);
    if (fence !== null) {
      if (indent >= fence.container) {
        if (closes(fence, rest, indent)) fence = null;
        push('code');
        continue;
      }
      fence = null; // the list item that held it is over, and so is it
    }
    if (inline.inSpan) {
      // the paragraph goes on inside `code` that began on a line above
      inline.scan(i, 0);
      push('code');
      continue;
    }
    while ((items.at(-1) ?? 0) > indent) items.pop();
    const container = items.at(-1) ?? 0;
    const inItem = items.length > 0 || (inItemText && indent > 0);
    let inner = indent - container;
    let marked = false;
    let column = indent;
    while (inner < 4 && !BREAK.test(rest)) {
      const marker = MARKER.exec(rest)?.[0];
      if (marker === undefined) break;
      marked = true;
      inItemText = true;
      const after = rest.slice(marker.length);
      const gap = INDENT.exec(after)?.[0] ?? '';
      const width = columns(gap);
      column += marker.length + (width >= 1 && width <= 4 ? width : 1);
      items.push(column);
      rest = after.slice(gap.length);
      inner = width > 4 ? width - 1 : 0;
    }
    if (!marked && indent === 0) inItemText = false;
    if (inner < 4 && rest.startsWith('>')) {
      push('quote');
      besideQuote = true;
      inline.endParagraph();
      continue;
    }
    const opened = inner < 4 ? FENCE.exec(rest)?.[0] : undefined;
    if (opened !== undefined) {
      fence = { char: opened.charAt(0), length: opened.length, container: items.at(-1) ?? 0 };
      push('code');
      besideQuote = false;
      inline.endParagraph();
      continue;
    }
    const element = inner < 4 ? HTML.exec(rest)?.[1]?.toLowerCase() : undefined;
    if (element !== undefined) {
      if (!rest.toLowerCase().includes(`</${element}`)) html = element;
      push('code');
      inline.endParagraph();
      continue;
    }
    if (!marked && FORWARDED.test(rest)) {
      forwarded = true;
      push('quote');
      continue;
    }
    const alone = HEADING.test(rest) || BREAK.test(rest);
    if (marked || alone) {
      besideQuote = false;
      inline.endParagraph();
    }
    const role: LineRole =
      marked || inItem ? 'list' : indent >= 4 ? 'code' : besideQuote ? 'beside_quote' : 'text';
    // indented code shows everything as it is; below a paragraph the same columns are still its text
    const shown = role === 'code' && !TEXT_ROLES.has(lines.at(-1)?.role ?? 'blank');
    if (!shown) inline.scan(i, whole.length - rest.length);
    if (alone) inline.endParagraph();
    push(role, rest);
  }
  return lines;
}

function columns(space: string): number {
  let column = 0;
  for (const char of space) column = char === '\t' ? column + 4 - (column % 4) : column + 1;
  return column;
}

function closes(fence: Fence, rest: string, indent: number): boolean {
  const run = (fence.char === '`' ? /^`+/ : /^~+/).exec(rest)?.[0] ?? '';
  return run.length >= fence.length && indent - fence.container < 4 && BLANK.test(rest.slice(run.length));
}

/** Follows inline code and HTML comments from line to line, left to right, as CommonMark reads them. */
class Inline {
  inComment = false;
  readonly #raw: readonly string[];
  /** For each line, the first line below it that is blank or begins something else. */
  readonly #ends: number[];
  /** Places of each length of back-tick run in the whole comment, and the first that was not passed yet. */
  readonly #runs = new Map<number, { next: number; readonly places: { line: number; column: number }[] }>();
  #span = 0;
  /** The line that the present paragraph ends before; null between paragraphs. */
  #end: number | null = null;

  constructor(raw: readonly string[]) {
    this.#raw = raw;
    this.#ends = new Array<number>(raw.length);
    for (let line = raw.length - 1, end = raw.length; line >= 0; line--) {
      this.#ends[line] = end;
      const text = raw[line] ?? '';
      if (BLANK.test(text) || BLOCK_START.test(text)) end = line;
    }
    for (const [line, text] of raw.entries()) {
      for (const match of text.matchAll(/`+/g)) {
        const place = { line, column: match.index };
        const known = this.#runs.get(match[0].length);
        if (known === undefined) this.#runs.set(match[0].length, { next: 0, places: [place] });
        else known.places.push(place);
      }
    }
  }

  get inSpan(): boolean {
    return this.#span > 0;
  }

  endParagraph(): void {
    this.#end = null;
    this.#span = 0;
  }

  scan(line: number, from: number): void {
    const text = this.#raw[line] ?? '';
    this.#end ??= this.#ends[line] ?? line + 1;
    for (let i = from; i < text.length; ) {
      if (this.inComment) {
        const end = text.indexOf('-->', i);
        if (end < 0) return;
        this.inComment = false;
        i = end + 3;
        continue;
      }
      const char = text[i];
      if (char === '`') {
        let length = 1;
        while (text[i + length] === '`') length += 1;
        if (this.#span === length) this.#span = 0;
        else if (this.#span === 0 && this.#closesLater(length, line, i + length)) this.#span = length;
        i += length;
      } else if (this.#span > 0) {
        i += 1;
      } else if (char === '\\') {
        i += 2;
      } else if (char === '<' && text.startsWith('<!--', i)) {
        this.inComment = true;
        i += 4;
      } else {
        i += 1;
      }
    }
  }

  #closesLater(length: number, line: number, column: number): boolean {
    const runs = this.#runs.get(length);
    if (runs === undefined) return false;
    // places are in order and asked for in order, so a comment costs its length, however many runs it has
    for (; ; runs.next++) {
      const place = runs.places[runs.next];
      if (place === undefined) return false;
      if (place.line > line || (place.line === line && place.column >= column)) {
        return place.line < (this.#end ?? 0);
      }
    }
  }
}
