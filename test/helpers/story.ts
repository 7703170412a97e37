/** A run told as a page: what people did in words, what the product wrote as it wrote it, less what differs from day to day. */

/** A page that grows as its run goes on. */
export interface Story {
  /** A paragraph, a heading, a list: Markdown of ours. */
  say(...lines: readonly string[]): void;
  /** Text that the product wrote, shown letter by letter. */
  show(text: string): void;
  /** The page, ending in a line end. */
  page(): string;
}

/** Begins a page. */
export function story(): Story {
  const parts: string[] = [];
  const seen = new Map<string, string>();
  return {
    say: (...lines) => void parts.push(...lines.map(wrapped)),
    show: (text) => void parts.push(`\`\`\`\`markdown\n${steady(text, seen).trim()}\n\`\`\`\``),
    page: () => `${parts.join('\n\n')}\n`,
  };
}

/** A paragraph in lines as the other pages have them; headings, lists, comments and code stay as they are. */
function wrapped(text: string): string {
  if (/^[#<`-]/.test(text)) return text;
  return text.replace(/(.{1,116})(?: |$)/g, '$1\n').trim();
}

/** Addresses, ids, times, sizes and the ledger's head are other ones in every run. */
function steady(text: string, seen: Map<string, string>): string {
  return text
    .replace(
      /<details><summary>Ledger [\s\S]*?<\/details>/g,
      '<details><summary>Ledger …</summary> … </details>',
    )
    .replace(
      /https?:\/\/(?:127\.0\.0\.1|localhost):\d+(\/runs\/)[a-z0-9]+/g,
      'https://countersign.example$1RUN',
    )
    .replace(/https?:\/\/(?:127\.0\.0\.1|localhost):\d+/g, 'https://github.example')
    .replace(/\b[0-9a-f]{40}\b/g, (sha) => {
      const name = seen.get(sha) ?? `HEAD${seen.size + 1}`;
      seen.set(sha, name);
      return name;
    })
    .replace(/`[0-9a-f]{10}`/g, '`HEAD`')
    .replace(/\b[\d,]+ tokens in, [\d,]+ out\b/g, '… tokens')
    .replace(/\b[\d.]+ (?:ms|s|min) of review\b/g, '… of review')
    .replace(/\u200b/g, '');
}
