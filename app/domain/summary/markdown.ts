/** Markdown that is safe by construction: whatever is put into a template is neutralised, unless it is Markdown already. */
import { neutralCode, neutralInline, neutralQuote } from '../neutralise.ts';

/** Markdown of our own making; only this file makes it, so no foreign text gets into it unescaped. */
export class Markdown {
  readonly text: string;
  private constructor(text: string) {
    this.text = text;
  }

  /** A template: literal parts are ours, texts in it are neutralised for one line, numbers and Markdown stay. */
  static md(parts: TemplateStringsArray, ...values: readonly (string | number | Markdown)[]): Markdown {
    let text = parts[0] ?? '';
    for (const [index, value] of values.entries()) {
      const shown =
        value instanceof Markdown
          ? value.text
          : typeof value === 'number'
            ? String(value)
            : neutralInline(value);
      text += shown + (parts[index + 1] ?? '');
    }
    return new Markdown(text);
  }

  /** Foreign text as code within a line. */
  static code(text: string): Markdown {
    return new Markdown(neutralCode(text));
  }

  /** Foreign text as a quote of several lines. */
  static quote(text: string): Markdown {
    return new Markdown(neutralQuote(text));
  }

  /** A link to an address of ours or of the GitHub server, given encoded; the label is Markdown. */
  static link(label: Markdown, address: string): Markdown {
    return new Markdown(`[${label.text}](${address.replace(/[()\s<>]/g, encodeURIComponent)})`);
  }

  /** Parts with something of ours between them; empty parts are left out. */
  static join(parts: readonly Markdown[], between: string): Markdown {
    return new Markdown(
      parts
        .map((part) => part.text)
        .filter((text) => text !== '')
        .join(between),
    );
  }

  /** A table; cells are single lines. */
  static table(head: readonly string[], rows: readonly (readonly Markdown[])[]): Markdown {
    const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
    return new Markdown(
      [
        line(head),
        line(head.map(() => '---')),
        ...rows.map((row) => line(row.map((cell) => cell.text.replaceAll('\n', ' ')))),
      ].join('\n'),
    );
  }

  /** A folded part; the label is text of ours. */
  static folded(label: Markdown, content: Markdown): Markdown {
    return new Markdown(`<details><summary>${label.text}</summary>\n\n${content.text}\n\n</details>`);
  }

  /** A fenced block of our own text (a signed note), which holds no back-tick. */
  static fence(text: string): Markdown {
    return new Markdown(`\`\`\`text\n${text.replaceAll('`', '').trimEnd()}\n\`\`\``);
  }

  /** Its further lines set in by so many spaces, so that all of it is one item of a list. */
  indented(spaces: number): Markdown {
    return new Markdown(this.text.replaceAll(/\n(?!\n|$)/g, `\n${' '.repeat(spaces)}`));
  }

  /** A `suggestion` block of GitHub's, or the same text as code: shown as it is, its fence longer than any in it. */
  static suggestion(lines: readonly string[], language: 'suggestion' | 'text' = 'suggestion'): Markdown {
    const longest = Math.max(
      2,
      ...lines.flatMap((line) => [...line.matchAll(/`+/g)].map((run) => run[0].length)),
    );
    const fence = '`'.repeat(longest + 1);
    return new Markdown([`${fence}${language}`, ...lines, fence].join('\n'));
  }

  /** At most `bytes` bytes of UTF-8: cut between characters, at a line's end where there is one, with open fences and folds closed. */
  cut(bytes: number, marker: Markdown): Markdown {
    if (Buffer.byteLength(this.text) <= bytes) return this;
    const tail = `\n\n${marker.text}`;
    // room for what has to be closed: a fence and the few levels of folding that we make
    let text = cutText(this.text, Math.max(0, bytes - Buffer.byteLength(tail) - 64));
    const line = text.lastIndexOf('\n');
    if (line > text.length / 2) text = text.slice(0, line);
    text += closingFence(text);
    const open = (text.match(/<details>/g)?.length ?? 0) - (text.match(/<\/details>/g)?.length ?? 0);
    return new Markdown(`${text}${'\n\n</details>'.repeat(Math.max(0, open))}${tail}`);
  }
}

/** What closes the fence that a text leaves open; empty where none is. A fence inside a longer one is text of it. */
function closingFence(text: string): string {
  let open: string | null = null;
  for (const line of text.split('\n')) {
    const run = /^`{3,}/.exec(line)?.[0];
    if (run === undefined) continue;
    // with a back-tick after it, it is a code span that begins the line
    if (open === null) open = line.includes('`', run.length) ? null : run;
    else if (line === run && run.length >= open.length) open = null;
  }
  return open === null ? '' : `\n${open}`;
}

/** A template whose values are neutralised; see `Markdown.md`. */
export const md = Markdown.md;

/** The longest start of a text that has at most `bytes` bytes of UTF-8 and ends between characters. */
export function cutText(text: string, bytes: number): string {
  const encoded = Buffer.from(text, 'utf8');
  if (encoded.length <= bytes) return text;
  let end = bytes;
  // a continuation byte is no start: step back to the first byte of its character
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return encoded.subarray(0, end).toString('utf8');
}
