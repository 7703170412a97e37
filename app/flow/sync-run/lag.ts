/** GitHub's API may answer older than what it told by webhook (case 7): never judge by that. */
import type { RunState } from '../../domain/run-state/state.ts';
import { Fault } from '../../errors.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Truth } from './read.ts';

/** How long a head or base that a webhook told of may be newer than what GitHub's API answers. */
const LAG_MS = 60_000;

/**
 * Throws `git_unavailable` (retryable) while GitHub does not show what the run was told of. A late
 * webhook may tell of a head that is over: one that nobody knows is waited for, a little while. A base
 * was asked for when it was told: the answer that it is the one before again would bring its green back.
 */
export function refuseOlderTruth({ run, now }: RunUnit, state: RunState, { pull, content }: Truth): void {
  if (now.getTime() - run.headAt.getTime() > LAG_MS) return;
  const recorded = state.heads.at(-1)?.base_ref;
  if (recorded === pull.baseRef && recorded !== run.baseRef) throw notYet(`base ${run.baseRef}`);
  if (run.toldHead === pull.head) return;
  const known =
    state.heads.some((head) => head.head === run.toldHead) ||
    content?.reading.commits.some((commit) => commit.oid === run.toldHead) === true;
  if (!known) throw notYet(`head ${run.toldHead}`);
}

function notYet(what: string): Fault {
  return new Fault('git_unavailable', `GitHub does not show the ${what} yet`, { retryable: true });
}
