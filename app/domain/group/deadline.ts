/** How long a merge group may be undecided (GAT-5): the queue gives up on a check that does not answer. */

/** GitHub's own default of a queue's check timeout, where nobody told it. */
export const DEFAULT_TIMEOUT_MS = 60 * 60_000;
const MARGIN_MS = 5 * 60_000;

/** The deadline of a group in ms from its arrival: max(half, timeout − 5 min), so that we answer before the queue stops waiting. */
export function groupDeadlineMs(timeoutMs: number | null): number {
  const timeout = timeoutMs ?? DEFAULT_TIMEOUT_MS;
  return Math.max(Math.floor(timeout / 2), timeout - MARGIN_MS);
}
