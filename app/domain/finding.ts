/**
 * Findings as text: where a quote stands in a file (REV-4) and what a finding is called over rounds,
 * heads and rebases (REV-5). Both work on redacted text (REV-8), so the secret itself is never needed.
 */
import { createHash } from 'node:crypto';
import { pathKey, type WirePath } from './path.ts';

/** The lines of a text as git and GitHub count them: by LF alone; a final LF ends the last line (REV-4). */
export function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** The text with every run of white space as one space, none at the ends. */
export function foldSpace(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Where a quote was found; lines are 1-based and inclusive, `ordinal` counts equal quotes before it in the file. */
export type Grounding =
  | Readonly<{
      grounded: true;
      startLine: number;
      endLine: number;
      /** Whether the lines differ from those the reviewer named. */
      corrected: boolean;
      ordinal: number;
    }>
  | Readonly<{ grounded: false }>;

/** A file prepared for grounding: build once, ask often. */
export type GroundingText = Readonly<{ folded: string; lineAt: readonly number[]; lines: number }>;

/** Folds a file's (redacted) text and remembers the line, by LF, of every character that is left. */
export function groundingText(text: string): GroundingText {
  const lineAt: number[] = [];
  let folded = '';
  let line = 1;
  let at = 0;
  for (const piece of text.matchAll(/\S+/g)) {
    for (; at < piece.index; at++) if (text.charCodeAt(at) === 10) line++;
    if (folded !== '') {
      folded += ' ';
      lineAt.push(line);
    }
    folded += piece[0];
    for (let i = 0; i < piece[0].length; i++) lineAt.push(line);
    at = piece.index + piece[0].length;
  }
  return { folded, lineAt, lines: linesOf(text).length };
}

/** Occurrences looked at before a quote counts as standing everywhere; `}` in a large file is no anchor. */
const MOST_OCCURRENCES = 2000;

/**
 * Where a finding's quote stands (REV-4): within the lines it names after white-space folding, or
 * elsewhere exactly once, and then the lines are corrected; anything else is ungrounded.
 */
export function ground(
  file: GroundingText,
  finding: { quote: string; startLine: number; endLine: number },
): Grounding {
  const quote = foldSpace(finding.quote);
  if (quote === '') return { grounded: false };
  const found: { start: number; end: number }[] = [];
  for (
    let at = file.folded.indexOf(quote);
    at >= 0 && found.length < MOST_OCCURRENCES;
    at = file.folded.indexOf(quote, at + 1)
  )
    found.push({ start: file.lineAt[at] ?? 1, end: file.lineAt[at + quote.length - 1] ?? 1 });
  const endLine = Math.min(finding.endLine, file.lines);
  const within = found.findIndex((o) => o.start >= finding.startLine && o.end <= endLine);
  if (within >= 0)
    return {
      grounded: true,
      startLine: finding.startLine,
      endLine,
      corrected: endLine !== finding.endLine,
      ordinal: within,
    };
  const only = found[0];
  if (found.length === 1 && only !== undefined)
    return { grounded: true, startLine: only.start, endLine: only.end, corrected: true, ordinal: 0 };
  return { grounded: false };
}

/** What identifies a finding: all of it redacted text; `ordinal` as `ground` gives it, 0 when ungrounded. */
export type FingerprintOf = Readonly<{
  path: WirePath;
  lens: string;
  title: string;
  quote: string;
  ordinal: number;
}>;

/** The fingerprint (REV-5), SHA-256 in hex: no line number goes in, so it is stable when code moves. */
export function fingerprint(of: FingerprintOf): string {
  const parts = [
    'countersign finding 1',
    pathKey(of.path),
    of.lens,
    foldSpace(of.quote).toWellFormed(),
    foldSpace(of.title).toLowerCase().toWellFormed(),
    of.ordinal,
  ];
  return createHash('sha256').update(JSON.stringify(parts), 'utf8').digest('hex');
}
