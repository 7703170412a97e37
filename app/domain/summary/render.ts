/** A report → Markdown within GitHub's limit of 65,535 bytes (PUB-4, PUB-7). */
import { gateName } from '../check.ts';
import type { GateDecision } from '../gate/decide.ts';
import { showPath, type WirePath } from '../path.ts';
import { notesPart } from './block-notes.ts';
import { contentionPart } from './contention.ts';
import { enrolSteps } from './enrol.ts';
import { Markdown, md } from './markdown.ts';
import { peoplePart } from './people.ts';
import { receiptsPart } from './receipts.ts';
import type { BlockLine, FindingLine, Hold, Report } from './report.ts';
import { capital, count, titleOf } from './title.ts';

/** GitHub's limit for `summary` and for `text`, in bytes of UTF-8. */
export const LIMIT_BYTES = 65_535;

const MOST = { concerns: 5, blocks: 60, findings: 40, paths: 60 } as const;

/** Sign and lead of the verdict line; the title follows in the same bold. */
const LEADS: Readonly<Record<GateDecision['conclusion'], string>> = {
  success: '✅ ',
  failure: '❌ Not passed: ',
  action_required: '✋ A person has to act: ',
  in_progress: '⏳ ',
  queued: '💤 ',
};

const VERDICTS: Readonly<Record<BlockLine['verdict'], string>> = {
  passed: '✅ passed',
  reviewing: '⏳ under way',
  waiting: '⏸ waits for another',
  blocked: '❌ blocked',
  held: '✋ held',
};

/** The summary of a check run: the gate's, or a block's. */
export function renderReport(report: Report): string {
  const head = Markdown.join([verdictLine(report), about(report), holds(report), enrol(report)], '\n\n');
  const body = Markdown.join(
    [
      blocks(report),
      notesPart(report.notes ?? []),
      findings(report),
      coverage(report),
      receiptsPart(report.receipts ?? [], report.places.repository),
      peoplePart(report.people ?? [], report.clauses ?? []),
      since(report),
      shared(report),
      contentionPart(report.contention ?? []),
      heldPart(report.held ?? []),
      cost(report),
    ],
    '\n\n',
  );
  const foot = ledger(report);
  const link = Markdown.link(md`the run's page`, report.places.run);
  const whole = Markdown.join([head, body], '\n\n');
  const room = LIMIT_BYTES - Buffer.byteLength(foot.text) - 2;
  return Markdown.join([whole.cut(room, md`… cut here; the rest is on ${link}.`), foot], '\n\n').text;
}

function verdictLine({ decision }: Report): Markdown {
  const [sign = '', ...lead] = LEADS[decision.conclusion].split(' ');
  const title = titleOf(decision);
  const said = `${lead.join(' ')}${lead.join('') === '' ? title : title.charAt(0).toLowerCase() + title.slice(1)}`;
  const advisory = decision.mode === 'advisory' ? md` Advisory: it holds nothing.` : md``;
  return md`${raw(sign)} **${raw(said)}.**${advisory}`;
}

/** A block's check run reads like the gate's, and is not the gate. */
function about({ block, decision }: Report): Markdown {
  if (block === undefined) return md``;
  const title = block.title === null ? md`` : md` ${block.title.slice(0, 80)}`;
  return md`Block ${Markdown.code(block.id)}${title}. It neither passes nor holds the pull request: ${Markdown.code(gateName(decision.mode))} does.`;
}

/** Text that this folder made of numbers and of its own words. */
function raw(text: string): Markdown {
  return Markdown.md([text] as unknown as TemplateStringsArray);
}

function holds(report: Report): Markdown {
  if (report.holds.length === 0) return md``;
  return Markdown.table(
    ['What holds it', 'Concerns', 'What clears it', 'Who may'],
    report.holds.map((hold) => [
      md`${Markdown.code(hold.code)} ${capital(hold.what)}${cause(hold)}`,
      concerns(hold),
      md`${raw(capital(hold.clears))}${until(hold)}`,
      md`${hold.who}`,
    ]),
  );
}

function enrol({ decision, enrol: place }: Report): Markdown {
  const holds = decision.reasons.some((reason) => reason.code === 'not_enrolled');
  return holds && place !== undefined ? enrolSteps(place) : md``;
}

/** POL-2: where the policy says nothing, or is laxer, the installation's settings count. */
function heldPart(keys: readonly string[]): Markdown {
  if (keys.length === 0) return md``;
  const shown = keys.slice(0, MOST.concerns).map((key) => Markdown.code(key));
  const more = keys.length - shown.length;
  const list = Markdown.join([...shown, ...(more > 0 ? [md`${more} more`] : [])], ', ');
  return md`Of the policy, the settings of this installation decide ${list}.`;
}

function cause(hold: Hold): Markdown {
  return hold.detail === null ? md`` : md`: ${hold.detail}`;
}

function until(hold: Hold): Markdown {
  if (hold.past) return md` (its time is up)`;
  return hold.untilMs === null ? md`` : md` (until ${raw(clock(hold.untilMs))})`;
}

function concerns(hold: Hold): Markdown {
  const shown = hold.concerns.slice(0, MOST.concerns).map((one) => Markdown.code(one));
  const more = hold.count - shown.length;
  if (shown.length === 0) return hold.count > 1 ? md`${hold.count}` : md``;
  return Markdown.join([...shown, ...(more > 0 ? [md`${more} more`] : [])], ', ');
}

function blocks(report: Report): Markdown {
  if (report.blocks.length === 0) return md``;
  const shown = report.blocks.slice(0, MOST.blocks);
  const table = Markdown.table(
    ['Block', 'Level', 'Files', 'Verdict', 'Findings'],
    shown.map((block) => [
      block.title === null
        ? Markdown.code(block.id)
        : md`${Markdown.code(block.id)} ${block.title.slice(0, 80)}`,
      md`${block.level}`,
      md`${block.counted} of ${block.files}`,
      raw(VERDICTS[block.verdict]),
      findingCell(block),
    ]),
  );
  return Markdown.join([md`#### Blocks`, table, moreOf(report.blocks.length, shown.length, 'block')], '\n\n');
}

function findingCell(block: BlockLine): Markdown {
  if (block.blocking + block.other === 0) return md`none`;
  return Markdown.join(
    [
      ...(block.blocking > 0 ? [md`**${block.blocking} blocking**`] : []),
      ...(block.other > 0 ? [md`${block.other} below the bar`] : []),
    ],
    ', ',
  );
}

function findings(report: Report): Markdown {
  const open = report.findings.filter(
    (one) => one.state === 'open' || one.state === 'answered' || one.blocks,
  );
  const folded = report.findings.filter(
    (one) => !one.blocks && (one.state === 'ungrounded' || one.state === 'dismissed'),
  );
  const shown = open.slice(0, MOST.findings);
  const parts: Markdown[] = [];
  if (open.length > 0) {
    parts.push(
      Markdown.join(
        [
          md`#### Findings`,
          Markdown.join(
            shown.map((one) => findingLine(report, one)),
            '\n',
          ),
          moreOf(open.length, shown.length, 'finding'),
        ],
        '\n\n',
      ),
    );
  }
  if (folded.length > 0) {
    const lines = folded.slice(0, MOST.findings).map((one) => findingLine(report, one));
    parts.push(
      Markdown.folded(
        md`${count(folded.length, 'finding')} without effect (quote not found, or dismissed)`,
        Markdown.join([Markdown.join(lines, '\n'), moreOf(folded.length, lines.length, 'finding')], '\n\n'),
      ),
    );
  }
  const hidden = report.hidden ?? 0;
  if (hidden > 0)
    parts.push(
      md`${count(hidden, 'finding')} not shown, as the policy asks (${Markdown.code('review.show')}).`,
    );
  return Markdown.join(parts, '\n\n');
}

function findingLine(report: Report, one: FindingLine): Markdown {
  const bar = one.blocks ? md`**${one.severity}**` : md`${one.severity}`;
  const people = one.people == null ? md`` : md` (dismissed by ${one.people})`;
  const remarks = one.remarks ?? [];
  const said = remarks.length === 0 ? people : md`${people} (${remarks.join('; ')})`;
  const state = one.state === 'open' ? said : md` (${one.state})${said}`;
  const title = one.title === null ? md`text erased` : md`${one.title}`;
  return md`- **F${one.number}** ${bar}${state} ${place(report, one.path, one.line)}: ${title}`;
}

/** A path with its line, linked to the head on GitHub where its name is text. */
function place(report: Report, path: WirePath, line: number): Markdown {
  const label = Markdown.code(`${showPath(path)}:${line}`);
  if (typeof path !== 'string') return label;
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  return Markdown.link(label, `${report.places.repository}/blob/${report.decision.head}/${encoded}#L${line}`);
}

function coverage(report: Report): Markdown {
  const { files, counted, unreviewed } = report.decision.counts;
  if (files === 0) return md``;
  const line = md`**Coverage** ${counted} of ${count(files, 'changed path')} reviewed${
    unreviewed > 0 ? md`, ${unreviewed} recorded without review` : md``
  }.`;
  const lists = [
    pathList('Not reviewed yet, or not at all', report.missing),
    pathList('Recorded without review', report.unreviewed),
  ];
  return Markdown.join([line, ...lists], '\n\n');
}

function pathList(label: string, paths: Report['missing']): Markdown {
  if (paths.length === 0) return md``;
  const shown = paths.slice(0, MOST.paths);
  const lines = shown.map((one) => md`- ${Markdown.code(showPath(one.path))}: ${one.why}`);
  return Markdown.folded(
    md`${label} (${paths.length})`,
    Markdown.join([Markdown.join(lines, '\n'), moreOf(paths.length, shown.length, 'path')], '\n\n'),
  );
}

function since(report: Report): Markdown {
  if (report.since === null) return md``;
  const { head, conclusion, raised, ended } = report.since;
  const list = (numbers: readonly number[]) =>
    Markdown.join(
      numbers.slice(0, 20).map((number) => md`F${number}`),
      ', ',
    );
  const parts = [
    ...(ended.length > 0 ? [md`fixed ${list(ended)}`] : []),
    ...(raised.length > 0 ? [md`new ${list(raised)}`] : []),
  ];
  const changed = parts.length === 0 ? md`no finding came or went` : Markdown.join(parts, '; ');
  return md`**Since ${Markdown.code(head.slice(0, 10))}** (${conclusion.replace('_', ' ')}): ${changed}.`;
}

function shared(report: Report): Markdown {
  if (report.shared.length === 0) return md``;
  const list = report.shared.map(
    (one) => md`pull request ${raw(one.pull)} (${one.conclusion.replace('_', ' ')})`,
  );
  return md`**Same head** ${Markdown.join(list, ', ')}. The check shows the worst of them.`;
}

function cost(report: Report): Markdown {
  const { sessions, tokensIn, tokensOut, costMicro, ms } = report.usage;
  if (sessions === 0) return md``;
  const grouped = (n: number) => raw(n.toLocaleString('en-US'));
  const tokens =
    tokensIn + tokensOut === 0 ? md`` : md`, ${grouped(tokensIn)} tokens in, ${grouped(tokensOut)} out`;
  const money = costMicro === 0 ? md`` : md`, ${raw((costMicro / 1_000_000).toFixed(4))} spent`;
  return md`**Cost** ${raw(count(sessions, 'session'))}${tokens}${money}, ${raw((ms / 1000).toFixed(1))} s of review.`;
}

/** What an outsider needs to hold the verdict against the ledger: always there, whatever was cut. */
function ledger(report: Report): Markdown {
  const { run, seq, hash, note } = report.published;
  const label = md`Ledger ${Markdown.code(`${run}:${seq}`)} ${Markdown.code(hash.slice(0, 16))}`;
  return Markdown.join(
    [
      Markdown.folded(label, Markdown.join([md`Head ${Markdown.code(hash)}`, Markdown.fence(note)], '\n\n')),
      Markdown.link(md`The whole run`, report.places.run),
    ],
    '\n\n',
  );
}

function moreOf(all: number, shown: number, noun: string): Markdown {
  return all > shown ? md`… and ${count(all - shown, `more ${noun}`)}.` : md``;
}

/** Hours and minutes in UTC, with the day. */
function clock(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** The signed notes that a summary of ours carries, newest last; what else stands in the text is no note (LED-9). */
export function notesIn(summary: string): string[] {
  return [...summary.matchAll(/^```text\n(\S+\/run\/\S+\n\d+\n\S+\n\n\u2014 [^\n]+)\n```$/gm)].map(
    (match) => `${match[1] ?? ''}\n`,
  );
}
