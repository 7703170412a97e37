/** What became of the verify commands of a head, as a person reads it (VER-2, PUB-7). */
import { showPath, type WirePath } from '../path.ts';
import { receiptWords } from '../receipt/words.ts';
import type { ReceiptFact } from '../receipt.ts';
import { presentHead, type RunState } from '../run-state/state.ts';
import { Markdown, md } from './markdown.ts';
import { count } from './title.ts';

/** A receipt's line. */
export interface ReceiptLine {
  readonly id: string;
  readonly block: string;
  readonly commands: readonly string[];
  readonly state: ReceiptFact['state'];
  readonly words: string;
  readonly ms: number;
  /** GitHub's ids of the job; null where none ran. */
  readonly job: ReceiptFact['job'];
  /** The first paths of a tree that the command changed, and how many there are. */
  readonly mutated: readonly WirePath[];
  readonly mutatedCount: number;
}

const MOST = { lines: 40, paths: 5 } as const;

const SIGNS: Readonly<Record<ReceiptFact['state'], string>> = {
  reserved: '⏳',
  waiting: '⏳',
  running: '⏳',
  passed: '✅',
  failed: '❌',
  aborted: '❌',
};

/** The receipts of the present head, of each block and command the newest, what did not pass first. */
export function receiptLines(state: RunState): ReceiptLine[] {
  const head = presentHead(state)?.head;
  const newest = new Map<string, ReceiptFact>();
  for (const one of state.receipts.values())
    if (one.head === head) newest.set(`${one.block} ${one.commands.join(' ')}`, one);
  const rank = ({ state: now }: ReceiptFact) =>
    ['failed', 'aborted', 'waiting', 'running', 'reserved', 'passed'].indexOf(now);
  return [...newest.values()]
    .sort(
      (a, b) => rank(a) - rank(b) || (a.block < b.block ? -1 : a.block > b.block ? 1 : a.id < b.id ? -1 : 1),
    )
    .map((one) => ({
      id: one.id,
      block: one.block,
      commands: one.commands,
      state: one.state,
      words: receiptWords(one),
      ms: one.ms,
      job: one.job,
      mutated: one.told?.mutated ?? [],
      mutatedCount: one.told?.mutated_count ?? 0,
    }));
}

/** The part of the summary; empty where no command is asked for. `repository` is its address on GitHub. */
export function receiptsPart(lines: readonly ReceiptLine[], repository: string): Markdown {
  if (lines.length === 0) return md``;
  const shown = lines.slice(0, MOST.lines);
  const table = Markdown.table(
    ['Command', 'Result', 'Time', 'Receipt'],
    shown.map((one) => [
      Markdown.join(
        one.commands.map((name) => Markdown.code(name)),
        ', ',
      ),
      md`${raw(SIGNS[one.state])} ${one.words}${changed(one)}`,
      one.ms === 0 ? md`` : md`${raw((one.ms / 1000).toFixed(0))} s`,
      receipt(one, repository),
    ]),
  );
  const rest = lines.length - shown.length;
  const more = rest > 0 ? md`… and ${raw(count(rest, 'more receipt'))}.` : md``;
  return Markdown.join(
    [
      md`**Verify** What GitHub concluded of the jobs that run the policy's commands, and the pools of their containers.`,
      table,
      more,
    ],
    '\n\n',
  );
}

function changed({ mutated, mutatedCount }: ReceiptLine): Markdown {
  if (mutatedCount === 0) return md``;
  const shown = mutated.slice(0, MOST.paths).map((path) => Markdown.code(showPath(path)));
  const more = mutatedCount - shown.length;
  return md` (${Markdown.join([...shown, ...(more > 0 ? [md`${more} more`] : [])], ', ')})`;
}

function receipt({ id, block, job }: ReceiptLine, repository: string): Markdown {
  const label = md`${Markdown.code(`${block}/${id}`)}`;
  if (job === null) return label;
  return Markdown.link(label, `${repository}/actions/runs/${job.workflowRun}/job/${job.job}`);
}

/** Text that this folder made of numbers and of its own words. */
function raw(text: string): Markdown {
  return Markdown.md([text] as unknown as TemplateStringsArray);
}
