/** What mode `verify` says of its commands (ACT-6): a line each, the job summary, the step's exit code. Pure. */
import { showPath } from '../../app/domain/path.ts';
import { type ReceiptDetail, receiptTrouble } from '../../app/protocol/receipt.ts';
import { printable } from '../log.ts';
import { cell } from '../summary.ts';
import type { Executed } from './execute.ts';

const SHOWN_PATHS = 20;
const SHOWN_TAIL = 8000;

/** One line: how a command ended, in words. */
export function sayEnd(receipt: ReceiptDetail): string {
  const { mutated, artifacts, exit, signal, ms } = receipt;
  const seconds = `${(ms / 1000).toFixed(1)} s`;
  switch (receiptTrouble(receipt)) {
    case null:
      return `passed in ${seconds}`;
    case 'not_started':
      return 'was not started';
    case 'cancelled':
      return `was told to stop after ${seconds}`;
    case 'timed_out':
      return `was ended after ${seconds}, its time-out`;
    case 'failed':
      return exit === null ? `was ended by ${signal ?? 'a signal'}` : `exited with ${exit} after ${seconds}`;
    case 'artifact_missing':
      return `exited with 0, but left no ${artifacts.missing.items.join(', ')}`;
    case 'tree_unknown':
      return 'exited with 0, but what it changed could not be told';
    case 'mutated':
      return `exited with 0, but changed ${mutated.items.length + mutated.more} file(s) of the work tree: ${mutated.items.slice(0, SHOWN_PATHS).map(showPath).join(', ')}`;
  }
}

/** The step's exit code: that of the first command in trouble, 1 where its own says nothing, 0 where all passed. */
export function exitCodeOf(executed: readonly Executed[]): number {
  const first = executed.find(({ receipt }) => receiptTrouble(receipt) !== null);
  return first === undefined ? 0 : (first.receipt.exit ?? 1) || 1;
}

/** A fence that no line of the text can close. */
function fenced(text: string): string[] {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return [fence, ...text.split('\n').map((line) => printable(line)), fence];
}

/** The job summary's Markdown. */
export function verifySummary(executed: readonly Executed[]): string {
  const lines = [
    '## Countersign verify',
    '',
    '| Command | Ended | Exit | Time | Artifacts |',
    '|---|---|---|---|---|',
  ];
  for (const { receipt } of executed) {
    const { found, missing } = receipt.artifacts;
    const artifacts = `${found.items.length} found, ${missing.items.length} missing`;
    lines.push(
      `| ${cell(receipt.command)} | ${cell(receiptTrouble(receipt) ?? 'passed')} | ${receipt.exit ?? receipt.signal ?? '-'} | ${(receipt.ms / 1000).toFixed(1)} s | ${artifacts} |`,
    );
  }
  for (const { receipt, notes } of executed) {
    if (receiptTrouble(receipt) === null) continue;
    lines.push('', `### ${cell(receipt.command)}`, '', `${cell(sayEnd(receipt))}`);
    for (const note of notes) lines.push('', cell(note));
    const paths = receipt.mutated.items.slice(0, SHOWN_PATHS);
    for (const path of paths) lines.push('', `- ${cell(showPath(path))}`);
    for (const name of ['stdout', 'stderr'] as const) {
      const tail = receipt[name].tail.slice(-SHOWN_TAIL).replace(/^[\udc00-\udfff]/, '');
      if (tail.trim() === '') continue;
      lines.push('', `<details><summary>end of ${name}</summary>`, '', ...fenced(tail), '', '</details>');
    }
  }
  return `${lines.join('\n')}\n`;
}

/** The outputs of the step in mode `verify`, beside the URL of its run. */
export function verifyOutputs(
  executed: readonly Executed[],
  evidence: string,
): Record<'commands' | 'failed' | 'evidence', string> {
  const failed = executed.filter(({ receipt }) => receiptTrouble(receipt) !== null).length;
  return { commands: String(executed.length), failed: String(failed), evidence };
}
