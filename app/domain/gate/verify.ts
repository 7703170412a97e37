/** Reasons that verify commands give (VER-1…VER-4): what is under way, and what did not pass. */

import { whyWords } from '../receipt/words.ts';
import { type WantedReceipt, wantedReceipts } from '../receipt.ts';
import type { PathStanding } from '../run-state/coverage.ts';
import type { RunState } from '../run-state/state.ts';
import type { Draft } from './decide.ts';

/**
 * The reasons of every command that the decisions of the present head name. Nothing but a receipt that passed
 * clears one: a command that no receipt was cut for is as pending as one that runs.
 */
export function verifyReasons(
  state: RunState,
  definitions: ReadonlyMap<string, string>,
  untilMs: number,
  paths?: readonly PathStanding[],
): Draft[] {
  const wanted = wantedReceipts(state, definitions, paths);
  const open = wanted.filter(({ definition, receipt }) => {
    const state_ = receipt?.state;
    return definition !== null && state_ !== 'passed' && state_ !== 'failed' && state_ !== 'aborted';
  });
  const wrong = wanted.filter(
    ({ definition, receipt }) =>
      definition === null || receipt?.state === 'failed' || receipt?.state === 'aborted',
  );
  return [
    ...(open.length === 0 ? [] : [{ code: 'verify_pending' as const, ...told(open), untilMs }]),
    ...(wrong.length === 0 ? [] : [{ code: 'verify_failed' as const, ...told(wrong) }]),
  ];
}

/** Commands with why, each cause once: `unit, e2e: it failed; lint: its job was skipped`. */
function told(wanted: readonly WantedReceipt[]): Pick<Draft, 'blocks' | 'count' | 'detail'> {
  const names = new Map<string, Set<string>>();
  for (const { commands, receipt, definition } of wanted) {
    const why = definition === null ? 'unknown_command' : (receipt?.why ?? '');
    const list = names.get(why) ?? new Set();
    for (const name of commands) list.add(name);
    names.set(why, list);
  }
  const detail = [...names]
    // what somebody has to do something about comes before what runs
    .sort(([a], [b]) => Number(a === '') - Number(b === ''))
    .map(([why, list]) => [...list].sort().join(', ') + (why === '' ? '' : `: ${whyWords(why)}`))
    .join('; ');
  return {
    blocks: wanted.map(({ block }) => block),
    count: new Set(wanted.flatMap(({ commands }) => commands)).size,
    detail,
  };
}
