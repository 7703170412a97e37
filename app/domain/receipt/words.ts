/** What a receipt says, in words that a person reads after the command's name (VER-1, VER-3). */
import type { ReceiptFact } from '../receipt.ts';

/** Why nothing runs, why nothing passed; codes that rows keep. */
export const WHY = {
  no_run:
    'no run of its workflow was seen on this head; does the workflow file exist, and start on pull_request?',
  conflict: 'GitHub starts no workflow while the pull request conflicts with its base; resolve the conflict',
  queued: 'its workflow has begun, and its job has not',
  needs_approval: 'GitHub waits for somebody to approve the workflow run',
  no_detail:
    'its job passed and told nothing of the command: the workflow does not run our Action as printed',
  job_missing: 'its workflow ran and has no such job',
  startup_failure: 'GitHub could not start its workflow',
  skipped: 'its job was skipped, so it ran nothing',
  failed: 'it failed',
  timed_out: 'it ran out of time',
  neutral: 'its job ended neither way',
  action_required: 'its job asks for something at GitHub',
  artifact_missing: 'it left out a file that it must make',
  mutated: 'it changed the tree it ran in',
  tree_unknown: 'whether it changed the tree could not be told',
  not_started: 'it was never started',
  other_command: 'its job ran another version of the command; run the job again',
  unreadable: 'what its job told of it could not be read',
  self_hosted_fork: "code of a fork ran on a self-hosted runner, which doesn't count",
  unknown_command: 'the policy does not know it',
  cancelled: 'its job was cancelled',
  lost: 'its runner was lost',
  no_conclusion: 'it ended without a conclusion',
  pool_unregistered: 'its pool is not registered for this repository (countersign pool add)',
  pool_away: 'no runner of its pool is alive',
  pool_no_runtime: 'no runner of its pool has a container runtime and an image that it may use',
  pool_busy: 'it waits for a runner of its pool',
  again: 'it waits to run again',
  given_back: 'its runner stopped; it waits for another one',
  superseded: 'another head took the place of the one it ran on',
  stopped: 'it was stopped',
  two_results: 'its runner told of two different ends of it',
  image_missing: 'its image is not on the machine of the pool, and none is pulled',
  image_refused: 'the owner of the pool does not let its image be used (countersign runner --images)',
  network_refused: 'the owner of the pool gives no network (countersign runner --network)',
  content_unavailable: 'the files of the head could not be had',
  runner_failed: 'its runner could not run it',
} as const satisfies Record<string, string>;

/** A code of `WHY`. */
export type ReceiptWhy = keyof typeof WHY;

/** The words of a code; a code of another version is shown as it is. */
export function whyWords(code: string): string {
  return Object.hasOwn(WHY, code) ? WHY[code as ReceiptWhy] : code;
}

/** A receipt's state in few words: `failed: it ran out of time`. */
export function receiptWords({ state, why, reused }: Pick<ReceiptFact, 'state' | 'why' | 'reused'>): string {
  const same = reused === null ? '' : ', on an earlier head with the same content';
  return why === null ? `${state}${same}` : `${state}: ${whyWords(why)}`;
}
