/** The numbers of OPS-10: one table with defaults and bounds; times in milliseconds, sizes in bytes. */

/** One number: its default and what a setting may make of it. */
export interface Limit {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const KIB = 1_024;
const MIB = 1_024 * KIB;

const fixed = (value: number): Limit => ({ default: value, min: value, max: value });
const range = (value: number, min: number, max: number): Limit => ({ default: value, min, max });

/** Every number of OPS-10 by name; a rule that has a number has it from here. */
export const LIMITS = {
  /** How long a lease lasts without a heartbeat (LSE-3). */
  leaseMs: range(5 * MINUTE, 30 * SECOND, HOUR),
  heartbeatMs: range(30 * SECOND, SECOND, 5 * MINUTE),
  loginMs: range(10 * MINUTE, MINUTE, 10 * MINUTE),
  runnerFreshMs: range(60 * SECOND, 10 * SECOND, 10 * MINUTE),
  sessionTimeoutMs: range(300 * SECOND, 30 * SECOND, 3_600 * SECOND),
  /** Lost grants, and time-outs, of one ticket that are final (TKT-6). */
  lostGrants: fixed(3),
  idleMs: range(20 * SECOND, SECOND, 10 * MINUTE),
  actionParallel: range(4, 1, 16),
  /** How long a dispatch may take until a runner logs in (POOL-3). */
  dispatchMs: range(10 * MINUTE, MINUTE, HOUR),
  /** Dispatches in a row that nobody answered: the pool is `dispatch_stalled`. */
  missedDispatches: fixed(2),
  gateDeadlineMs: range(6 * HOUR, MINUTE, 7 * DAY),
  waitMs: fixed(55 * SECOND),
  answerBytes: fixed(8 * MIB),
  publishIntervalMs: range(5 * SECOND, SECOND, MINUTE),
  gitFetchMs: range(120 * SECOND, 10 * SECOND, HOUR),
  gitFetchBytes: range(2 * KIB * MIB, MIB, 64 * KIB * MIB),
  reconcileMs: range(5 * MINUTE, 30 * SECOND, HOUR),
  sweepMs: range(10 * SECOND, SECOND, MINUTE),
  deliveryBytes: fixed(25 * MIB),
  submitBytes: fixed(MIB),
  /** Every other request of a runner. */
  requestBytes: fixed(64 * KIB),
  restMs: range(30 * SECOND, SECOND, 5 * MINUTE),
  jobAttempts: fixed(25),
  /** First and longest wait of a settled provider or pool; it doubles between (POOL-3). */
  settledMinMs: fixed(5 * MINUTE),
  settledMaxMs: fixed(HOUR),
  /** Transient ends in a row, over at least `strikeTickets` tickets, that settle a provider. */
  strikes: fixed(3),
  strikeTickets: fixed(2),
  /** First and longest wait of a ticket after a transient end (TKT-2). */
  backoffMinMs: fixed(30 * SECOND),
  backoffMaxMs: fixed(15 * MINUTE),
  deliveryDays: range(30, 1, 365),
  textDays: range(90, 1, 3_650),
  /** Tickets a lease request may ask for (LSE-1). */
  leaseBatch: range(1, 1, 16),
  runParallel: range(6, 1, 16),
  providerSlots: range(4, 1, 1_024),
  /** Bytes of an OIDC token, and of a runner's descriptor (AUT-1, RID-1). */
  oidcBytes: fixed(8 * KIB),
  /** Clock tolerance and greatest age of an OIDC token (facts/security.md §4). */
  oidcToleranceMs: fixed(30 * SECOND),
  oidcAgeMs: fixed(5 * MINUTE),
} as const satisfies Record<string, Limit>;

/** `min` doubled `times` times, at most `max`; never negative, safe for any `times`. */
export function doubled(minMs: number, maxMs: number, times: number): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(Math.max(0, times), 30));
}
