/**
 * Suggestions of reviewers as review comments (PUB-5): shown with a button that applies them, so each is
 * verified against the head's own lines first. What fails is shown in the summary with the reason.
 */
import { foldSpace } from './finding.ts';
import { plain } from './neutralise.ts';
import { Markdown, md } from './summary/markdown.ts';

/** Lines of a head that a review comment may stand on, each with the hunk it is in; a range stays in one (facts/github.md §13). */
export type DiffLines = ReadonlyMap<number, number>;

/** A suggestion with what it is of; lines count by LF from 1. */
export interface SuggestionSource {
  readonly startLine: number;
  readonly endLine: number;
  /** The finding's quote and the replacement, redacted. */
  readonly quote: string;
  readonly suggestion: string;
}

/** The lines it replaces and what with, each line without its end; or why it is not posted. */
export type PlacedSuggestion =
  | {
      readonly ok: true;
      readonly startLine: number;
      readonly endLine: number;
      readonly lines: readonly string[];
    }
  | { readonly ok: false; readonly reason: string };

const MOST_LINES = 100;

/** Lines of the head's side in a patch as GitHub's list of files carries it; of a patch that is not there none. */
export function diffLines(patch: string | null): DiffLines {
  const lines = new Map<number, number>();
  let hunk = 0;
  let next = 0;
  for (const text of patch?.split('\n') ?? []) {
    const start = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(text);
    if (start !== null) {
      hunk += 1;
      next = Number(start[1]);
    } else if (hunk > 0 && (text.startsWith('+') || text.startsWith(' '))) {
      lines.set(next, hunk);
      next += 1;
    }
  }
  return lines;
}

/**
 * Verifies a suggestion against the file's text at the head. `redact` is what the server redacts with: where
 * it changes the replaced lines they hold a secret, and nothing of it is shown.
 */
export function placeSuggestion(
  source: SuggestionSource,
  head: string,
  diff: DiffLines,
  redact: (text: string) => string,
): PlacedSuggestion {
  const no = (reason: string): PlacedSuggestion => ({ ok: false, reason });
  const { startLine, endLine, quote } = source;
  const suggestion = source.suggestion.replace(/\r\n/g, '\n').replace(/\n$/, '');
  const all = head.split('\n');
  if (all.at(-1) === '') all.pop();
  const old = all.slice(startLine - 1, endLine);
  if (startLine < 1 || endLine < startLine || endLine > all.length)
    return no('its lines are not in this head');
  if (endLine - startLine >= MOST_LINES) return no(`it replaces more than ${MOST_LINES} lines`);
  if (suggestion !== plain(suggestion) || suggestion.includes('\ufffd'))
    return no('it holds characters that are not shown');
  if (/`{20}/.test(suggestion)) return no('it holds a long run of back-ticks');
  if (
    redact(suggestion) !== suggestion ||
    suggestion.includes('[redacted:') ||
    redact(old.join('\n')) !== old.join('\n')
  )
    return no('it is near a secret');
  // only LF ends a line for git; what GitHub would make of the others nobody has promised
  if (old.some((line) => line.includes('\r'))) return no('its lines end in CR LF');
  if (!covers(quote, old)) return no('its lines are not those that were quoted');
  const hunk = diff.get(startLine);
  if (hunk === undefined) return no('its lines are not in the diff');
  for (let line = startLine; line <= endLine; line++)
    if (diff.get(line) !== hunk) return no('its lines are not in one piece of the diff');
  const lines = suggestion === '' ? [] : suggestion.split('\n');
  if (lines.join('\n') === old.join('\n') && lines.length === old.length) return no('it changes nothing');
  return { ok: true, startLine, endLine, lines };
}

/** Whether a quote spans exactly these lines: it begins on the first and ends on the last of them. */
function covers(quote: string, lines: readonly string[]): boolean {
  const folded = foldSpace(quote);
  const [first = '', last = ''] = [foldSpace(lines[0] ?? ''), foldSpace(lines.at(-1) ?? '')];
  if (folded === '' || first === '' || last === '') return false;
  const whole = foldSpace(lines.join('\n'));
  const at = whole.indexOf(folded);
  // a part of the first line may be left out before it, of the last one after it
  return at >= 0 && at < first.length && at + folded.length > whole.length - last.length;
}

/** A file's text with a placed suggestion applied, as GitHub's button does it: every other line stays byte for byte. */
export function applySuggestion(head: string, placed: PlacedSuggestion & { readonly ok: true }): string {
  const lines = head.split('\n');
  const before = lines.slice(0, placed.startLine - 1);
  const after = lines.slice(placed.endLine);
  return [...before, ...placed.lines, ...after].join('\n');
}

/** A comment: the finding in our words, then the block. Texts are redacted and neutralised here. */
export function suggestionComment(
  finding: {
    readonly number: number;
    readonly severity: string;
    readonly title: string;
    readonly body: string;
  },
  lines: readonly string[],
): string {
  const body = finding.body.trim() === '' ? md`` : Markdown.quote(finding.body.slice(0, 2_000));
  const head = md`**F${finding.number}** ${finding.severity}: ${finding.title.slice(0, 200)}`;
  return Markdown.join([head, body, Markdown.suggestion(lines)], '\n\n').text;
}

/** What the one review of ours on a head begins with, so that it is found again. */
export function reviewMarker(repositoryId: string, pull: string, sha: string): string {
  return `<!-- countersign:review ${repositoryId}/${pull}/${sha} -->`;
}

/** The text of the review; `rest` is how many suggestions are in the summary of the check instead. */
export function reviewText(marker: string, count: number, rest: number, page: string): string {
  const many = count === 1 ? md`One suggestion` : md`${count} suggestions`;
  const link = Markdown.link(md`the run's page`, page);
  const more = rest === 0 ? md`` : md` ${rest} more could not be put on a line: see the check of findings.`;
  return `${marker}\n\n${md`${many} for lines of this change, each verified against them. It decides nothing: the check does. See ${link}.${more}`.text}`;
}
