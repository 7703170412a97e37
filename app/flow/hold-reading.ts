/**
 * What keeps a run from being read is a reason of it while it lasts (GAT-1), and is tried again for as
 * long as it stands. The wait is told with the fault, so the queue brings the job back by its key: a
 * job whose key was taken over by a newer one while it worked would not be tried again by itself.
 */
import { clearReason, listReasons, setReason } from '../../db/store/reason.ts';
import { Fault } from '../errors.ts';
import type { RunUnit } from './append-rows.ts';

const CODES = ['git_unavailable', 'no_merge_base'] as const;
/** A reason that has stood for so long is tried again after as long, within these bounds. */
const SHORTEST_MS = 1_000;
const LONGEST_MS = 5 * 60_000;

/** Whether an error keeps a run from being read. */
export function keepsUnread(error: unknown): error is Fault {
  return error instanceof Fault && (CODES as readonly string[]).includes(error.code);
}

/** Sets the reason; answers the fault that tells when to try again, and whether the gate has to be decided. */
export async function holdReading(
  { tx, run, now }: RunUnit,
  error: Fault,
): Promise<{ readonly fault: Fault; readonly changed: boolean }> {
  let changed = false;
  for (const code of CODES) {
    if (code !== error.code && (await clearReason(tx, run.id, code))) changed = true;
  }
  // no deadline of its own: the gate counts its deadline from when the reason began
  const detail = error.message.slice(0, 200);
  if (await setReason(tx, run.id, { code: error.code, dueAtMs: null, detail })) changed = true;
  if (!error.retryable) return { fault: error, changed };
  const stands = (await listReasons(tx, run.id)).find(({ code }) => code === error.code);
  const age = now.getTime() - (stands?.sinceMs ?? now.getTime());
  const retryAfterMs = error.retryAfterMs ?? Math.min(Math.max(age, SHORTEST_MS), LONGEST_MS);
  const options = { cause: error, retryable: true, retryAfterMs };
  return { fault: new Fault(error.code, error.message, options), changed };
}

/** Clears what kept a run unread; true when the gate has to be decided. */
export async function clearReading({ tx, run }: RunUnit): Promise<boolean> {
  let changed = false;
  for (const code of CODES) if (await clearReason(tx, run.id, code)) changed = true;
  return changed;
}
