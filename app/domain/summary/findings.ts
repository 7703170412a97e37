/** The summary of `countersign / findings`: what is annotated, and in full what could not be placed on a line (PUB-3). */
import { plain } from '../neutralise.ts';
import { showPath, type WirePath } from '../path.ts';
import { Markdown, md } from './markdown.ts';
import { LIMIT_BYTES } from './render.ts';
import type { FindingLine, PublishedHead, ReportPlaces } from './report.ts';
import { count } from './title.ts';

/** A finding that is shown as text, with the reason. */
export interface UnplacedFinding extends FindingLine {
  readonly body: string | null;
  readonly reason: string;
}

/** A suggestion that is in no review comment, with the reason (PUB-5). */
export interface ListedSuggestion {
  readonly number: number;
  readonly path: WirePath;
  readonly line: number;
  /** Redacted; null: erased. */
  readonly suggestion: string | null;
  readonly reason: string;
}

/** What the findings check says. */
export interface FindingsReport {
  readonly head: string;
  readonly blocking: number;
  readonly open: number;
  /** Findings past `publish.annotations`: counted, not annotated. */
  readonly over: number;
  /** Findings that `review.show` hides. */
  readonly hidden?: number;
  readonly unplaced: readonly UnplacedFinding[];
  /** Suggestions that are in no comment; absent where the policy wants no comments. */
  readonly suggestions?: readonly ListedSuggestion[];
  readonly published: PublishedHead | null;
  readonly places: ReportPlaces;
}

/** Its title. */
export function findingsTitle(report: FindingsReport): string {
  if (report.open === 0) return 'No open findings';
  const rest = report.open - report.blocking;
  return [
    ...(report.blocking > 0
      ? [`${count(report.blocking, 'finding')} ${report.blocking === 1 ? 'blocks' : 'block'}`]
      : []),
    ...(rest > 0 ? [`${rest} below the bar`] : []),
  ].join(' · ');
}

/** Its summary, within GitHub's limit. */
export function renderFindings(report: FindingsReport): string {
  const link = Markdown.link(md`the run's page`, report.places.run);
  const head = md`${findingsTitle(report)}. Annotations stand on the lines of the change.`;
  const over =
    report.over === 0
      ? md``
      : md`**${report.over} more** than the policy lets us annotate (${Markdown.code('publish.annotations')}): see ${link}.`;
  const unplaced =
    report.unplaced.length === 0
      ? md``
      : Markdown.join(
          [md`#### Not on a line`, ...report.unplaced.slice(0, 100).map((one) => unplacedEntry(one))],
          '\n\n',
        );
  const more = report.unplaced.length - 100;
  const rest = more > 0 ? md`… and ${count(more, 'more finding')}: see ${link}.` : md``;
  const foot =
    report.published === null
      ? md``
      : Markdown.folded(
          md`Ledger ${Markdown.code(`${report.published.run}:${report.published.seq}`)}`,
          Markdown.join(
            [md`Head ${Markdown.code(report.published.hash)}`, Markdown.fence(report.published.note)],
            '\n\n',
          ),
        );
  const listed = report.suggestions ?? [];
  const suggestions =
    listed.length === 0
      ? md``
      : Markdown.join(
          [md`#### Suggestions in no comment`, ...listed.slice(0, 50).map(suggestionEntry)],
          '\n\n',
        );
  const hidden =
    (report.hidden ?? 0) === 0
      ? md``
      : md`${count(report.hidden ?? 0, 'finding')} not shown, as the policy asks (${Markdown.code('review.show')}).`;
  const body = Markdown.join([head, over, hidden, unplaced, rest, suggestions], '\n\n');
  const room = LIMIT_BYTES - Buffer.byteLength(foot.text) - 2;
  return Markdown.join([body.cut(room, md`… cut here; the rest is on ${link}.`), foot], '\n\n').text;
}

function suggestionEntry(one: ListedSuggestion): Markdown {
  const place = Markdown.code(`${showPath(one.path)}:${one.line}`);
  const line = md`**F${one.number}** ${place} (${one.reason})`;
  // inside a fence nothing is Markdown; what could end it or hide in it is taken out
  const code = plain(one.suggestion ?? 'text erased')
    .replace(/`{3,}/g, '``')
    .slice(0, 2_000);
  return Markdown.join([line, Markdown.suggestion(code.trimEnd().split('\n'), 'text')], '\n\n');
}

function unplacedEntry(one: UnplacedFinding): Markdown {
  const bar = one.blocks ? md`**${one.severity}**` : md`${one.severity}`;
  const place = Markdown.code(`${showPath(one.path)}:${one.line}`);
  const title = one.title === null ? md`text erased` : md`${one.title}`;
  const line = md`**F${one.number}** ${bar} ${place}: ${title} (${one.reason})`;
  if (one.body === null || one.body.trim() === '') return line;
  return Markdown.join([line, Markdown.quote(one.body.slice(0, 2_000))], '\n\n');
}
