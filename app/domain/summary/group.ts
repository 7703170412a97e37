/** What a pull request is told of a merge group that it is a member of (GAT-5). */
import { showPath } from '../path.ts';
import type { UnplacedFinding } from './findings.ts';
import { Markdown, md } from './markdown.ts';
import { LIMIT_BYTES } from './render.ts';
import { count } from './title.ts';

/** What the check says: findings on content that the group has and no pull request of it, none once a group passed. */
export interface GroupReport {
  /** The group's commit. */
  readonly head: string;
  readonly findings: readonly Omit<UnplacedFinding, 'reason'>[];
  /** Address of the group's run. */
  readonly page: string;
}

/** Most findings that are written out. */
const MOST = 50;

/** Its title. */
export function groupTitle({ findings }: GroupReport): string {
  return findings.length === 0
    ? 'A later merge group passed'
    : `The merge group failed: ${count(findings.length, 'finding')}`;
}

/** Its summary, within GitHub's limit. */
export function renderGroup(report: GroupReport): string {
  const link = Markdown.link(md`the group's run`, report.page);
  const at = Markdown.code(report.head.slice(0, 10));
  if (report.findings.length === 0) return md`The merge group ${at} passed; see ${link}.`.text;
  const head = md`**${groupTitle(report)}.** Merged with what is ahead of it in the queue, this pull request comes to content that nobody had reviewed (commit ${at}). Update the branch with its base, and mend it there; see ${link}.`;
  const entries = report.findings.slice(0, MOST).map((one) => {
    const place = Markdown.code(`${showPath(one.path)}:${one.line}`);
    const title = one.title === null ? md`text erased` : md`${one.title}`;
    const line = md`**F${one.number}** **${one.severity}** ${place}: ${title}`;
    if (one.body === null || one.body.trim() === '') return line;
    return Markdown.join([line, Markdown.quote(one.body.slice(0, 2_000))], '\n\n');
  });
  const more = report.findings.length - MOST;
  const rest = more > 0 ? [md`… and ${count(more, 'more finding')}.`] : [];
  return Markdown.join([head, ...entries, ...rest], '\n\n').cut(LIMIT_BYTES, md`… cut here.`).text;
}
