/** The job summary and the outputs (ACT-6). All text in it is foreign: it is escaped, and bounded below GitHub's 1 MiB a step. */
import { appendFile } from 'node:fs/promises';
import type { TicketResult } from '../app/protocol/runner.ts';
import type { DrainEnd } from './drain.ts';
import type { Inputs } from './inputs.ts';
import { printable } from './log.ts';

/** A worked ticket; `result` is null where it was given back. */
export type TallyEntry = Readonly<{
  title: string;
  path: string;
  outcome: string;
  result: TicketResult | null;
  ms: number;
}>;

/** What this run of the Action has done so far. */
export type Tally = Readonly<{ tickets: readonly TallyEntry[]; add: (entry: TallyEntry) => void }>;

const MOST_ROWS = 500;

/** An empty tally. */
export function createTally(): Tally {
  const tickets: TallyEntry[] = [];
  return { tickets, add: (entry) => void tickets.push(entry) };
}

/** The counts that are the Action's outputs. */
export function countsOf(tally: Tally): Record<'tickets' | 'findings' | 'unavailable' | 'returned', number> {
  const results = tally.tickets.flatMap(({ result }) => (result === null ? [] : [result]));
  return {
    tickets: tally.tickets.filter(({ outcome }) => outcome.startsWith('accepted')).length,
    findings: results.reduce((sum, result) => sum + result.findings.length, 0),
    unavailable: results.filter((result) => result.end !== 'reviewed').length,
    returned: tally.tickets.filter(({ result }) => result === null).length,
  };
}

/** The summary's Markdown; pure. */
export function summaryText(tally: Tally, end: DrainEnd): string {
  const counts = countsOf(tally);
  const sum = (of: (session: TicketResult['sessions'][number]) => number): number =>
    tally.tickets.flatMap(({ result }) => result?.sessions ?? []).reduce((all, s) => all + of(s), 0);
  const cost = sum((s) => s.cost_micro);
  const lines = [
    '## Countersign runner',
    '',
    `${counts.tickets} ticket(s) delivered, ${counts.findings} finding(s), ${counts.unavailable} not reviewed, ${counts.returned} given back. ${sayEnd(end)}`,
    '',
    `Tokens: ${sum((s) => s.tokens_in)} in, ${sum((s) => s.tokens_out)} out${cost === 0 ? '' : `; cost ${(cost / 1e6).toFixed(4)}`}.`,
  ];
  if (tally.tickets.length > 0) {
    lines.push('', '| File | Verdict | Findings | Tokens | Time | Outcome |', '|---|---|---|---|---|---|');
    for (const { path, result, outcome, ms } of tally.tickets.slice(0, MOST_ROWS)) {
      const verdict =
        result === null ? 'given back' : result.end === 'reviewed' ? (result.verdict ?? '-') : result.end;
      const tokens = (result?.sessions ?? []).reduce((all, s) => all + s.tokens_in + s.tokens_out, 0);
      lines.push(
        `| ${cell(path)} | ${cell(verdict)}${result?.partial === true ? ' (partial)' : ''} | ${result?.findings.length ?? 0} | ${tokens} | ${(ms / 1000).toFixed(1)} s | ${cell(outcome)} |`,
      );
    }
    if (tally.tickets.length > MOST_ROWS) lines.push('', `and ${tally.tickets.length - MOST_ROWS} more`);
  }
  return `${lines.join('\n')}\n`;
}

function sayEnd(end: DrainEnd): string {
  if (end.kind === 'drained') return 'Nothing is left to do.';
  return end.kind === 'stopped' ? 'The runner was told to stop.' : 'The runner failed; its log says why.';
}

/** A table cell of foreign text: code, with nothing that could leave it. */
export function cell(text: string): string {
  const safe = printable(text).replaceAll('|', '¦').replaceAll('`', "'").slice(0, 300);
  return `\`${safe}\``;
}

/** Writes summary and outputs to the files GitHub names, where it names any. */
export async function writeSummary(tally: Tally, inputs: Inputs, end: DrainEnd): Promise<void> {
  if (inputs.summaryFile !== null) await appendFile(inputs.summaryFile, summaryText(tally, end));
  if (inputs.outputFile === null) return;
  const { githubServer, repository, workflowRun } = inputs;
  const url =
    repository === null || workflowRun === null
      ? ''
      : `${githubServer}/${repository}/actions/runs/${workflowRun}`;
  const outputs = { ...countsOf(tally), run_url: url };
  // numbers and a URL of GitHub's own parts: no value can hold a line break
  const text = Object.entries(outputs).map(
    ([name, value]) => `${name}=${String(value).replace(/[\r\n]/g, '')}\n`,
  );
  await appendFile(inputs.outputFile, text.join(''));
}
