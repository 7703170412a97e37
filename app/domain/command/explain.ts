/** The answer to `/explain F`: everything that is stored of a finding, neutralised, as one item of a list. Pure. */
import { peopleBehind, peopleNeeded } from '../finding/dismissal.ts';
import { remarksOn } from '../finding/remark.ts';
import { showPath } from '../path.ts';
import { isStanding } from '../run-state/coverage.ts';
import type { FindingFact } from '../run-state/state.ts';
import { Markdown, md } from '../summary/markdown.ts';
import type { Texts } from '../summary/report.ts';
import { doneReply } from './reply.ts';

/** Most characters shown of each text. */
const MOST = 4000;

/** What is known of a finding; texts are as stored, redacted. */
export function explainReply(prefix: string, finding: FindingFact, blocks: boolean, texts: Texts): Markdown {
  const { number, severity, lens, path, startLine, endLine, side, reviewer } = finding;
  const lines = startLine === endLine ? `${startLine}` : `${startLine}-${endLine}`;
  const where = Markdown.code(`${showPath(path)}:${lines}`);
  const base = side === 'base' ? md` of the base` : md``;
  const said = remarksOn(finding);
  const remarks = said.length === 0 ? md`` : md`; ${said.join('; ')}`;
  const head = md`**F${number}** ${severity}, ${Markdown.code(lens)}, at ${where}${base}, found by ${Markdown.code(reviewer)}: ${stateOf(finding, blocks)}${remarks}.`;
  const title = texts.get(finding.title);
  const parts = [
    typeof title === 'string' ? md`**${title}**` : md`Its text was erased.`,
    quoted(null, finding.body, texts),
    quoted('Quote', finding.quote, texts),
    quoted('Suggestion', finding.suggestion, texts),
    quoted('Answer', finding.answer, texts),
  ];
  return doneReply(prefix, 'explain', Markdown.join([head, ...parts], '\n\n').indented(2));
}

function stateOf(finding: FindingFact, blocks: boolean): Markdown {
  const { state, dismissals, severity } = finding;
  const bar = blocks ? md`${state}, and it blocks` : md`${state}`;
  const people = peopleBehind(
    dismissals.filter((one) => !one.self),
    severity,
  ).length;
  if (!isStanding(finding) || people === 0) return bar;
  return md`${bar}; dismissed by ${people} of ${peopleNeeded(severity)}`;
}

function quoted(label: string | null, ref: string | null, texts: Texts): Markdown {
  const text = ref === null ? undefined : texts.get(ref);
  if (typeof text !== 'string' || text.trim() === '') return md``;
  const quote = Markdown.quote(text.length > MOST ? `${text.slice(0, MOST).toWellFormed()}…` : text);
  return label === null ? quote : md`${label}:${Markdown.join([md``, quote], '')}`;
}
