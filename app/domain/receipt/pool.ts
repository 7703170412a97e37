/**
 * What a pool tells of a command that it was given, made a receipt's state (VER-1, VER-3). The exit that its container
 * runtime saw is what counts; the rest may only make it worse. What was not run to an end is no verdict on the
 * code: it is aborted, and may run again.
 */
import type { ReceiptFact } from '../receipt.ts';
import type { ReceiptWhy } from './words.ts';

/** Why a runner did not run a command at all. */
export const POOL_REFUSALS = [
  'image_missing',
  'image_refused',
  'network_refused',
  'content_unavailable',
  'runner_failed',
] as const satisfies readonly ReceiptWhy[];

/** A reason of `POOL_REFUSALS`. */
export type PoolRefusal = (typeof POOL_REFUSALS)[number];

/** What a pool told, as far as it weighs. */
export interface PoolTelling {
  /** Null: it names no trouble. */
  readonly trouble: ReceiptWhy | null;
  readonly exit: number | null;
  readonly signal: string | null;
  /** The command's digest as the runner made it. */
  readonly command: string;
}

/** How it ended. */
export type PoolEnd = Pick<ReceiptFact, 'why' | 'conclusion'> & {
  readonly state: 'passed' | 'failed' | 'aborted';
};

/** The end of a command that a runner ran; `expected` is `commandDigest` of what it was given. */
export function judgePool(told: PoolTelling, expected: string): PoolEnd {
  const { trouble, exit, signal, command } = told;
  if (trouble === 'not_started') return aborted('not_started');
  // told to stop, or a container of which the runtime told no exit
  if (trouble === 'cancelled' || (trouble === 'failed' && exit === null && signal === null))
    return aborted('no_conclusion');
  const why = trouble ?? (command === expected ? null : 'other_command');
  return {
    state: why === null ? 'passed' : 'failed',
    why,
    conclusion: exit === 0 ? 'success' : 'failure',
  };
}

/** The end of a command that nobody ran to its end. */
export function aborted(why: ReceiptWhy): PoolEnd {
  return { state: 'aborted', why, conclusion: null };
}

/** Losses of one receipt after which it is left to a person (TKT-6). */
const MOST_LOSSES = 3;
const FIRST_BACK_OFF_MS = 30_000;
const LONGEST_BACK_OFF_MS = 15 * 60_000;

/** Whether a receipt that was aborted for this is tried again by itself, after how long; null: a person asks for it. */
export function triesAgainAfter(why: string | null, losses: number): number | null {
  // a control is nobody's failure: it waits for the run to go on
  if (why === 'stopped') return 0;
  const passes = why === 'lost' || why === 'content_unavailable' || why === 'runner_failed';
  if (!passes || losses >= MOST_LOSSES) return null;
  return Math.min(FIRST_BACK_OFF_MS * 2 ** Math.max(0, losses - 1), LONGEST_BACK_OFF_MS);
}

/** What of a pool is alive, as far as its receipts wait for it. */
export interface PoolState {
  /** Whether it is registered for the repository. */
  readonly registered: boolean;
  readonly runners: number;
  /** Those of them that said they have a container runtime. */
  readonly containers: number;
}

/** Why nobody runs a receipt of this pool yet (POOL-1): capacity is what was confirmed. */
export function poolWait({ registered, runners, containers }: PoolState): ReceiptWhy {
  if (!registered) return 'pool_unregistered';
  if (runners === 0) return 'pool_away';
  return containers === 0 ? 'pool_no_runtime' : 'pool_busy';
}
