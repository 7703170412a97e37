/** The numbers of OPS-10: one table with defaults and bounds; times in milliseconds, sizes in bytes. */

/** One number: its default, what a policy, an input or a setting may make of it, and what it is for. */
export interface Limit {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  readonly says: string;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const KIB = 1_024;
const MIB = 1_024 * KIB;

const fixed = (value: number, says: string): Limit => ({ default: value, min: value, max: value, says });
const range = (value: number, min: number, max: number, says: string): Limit => ({
  default: value,
  min,
  max,
  says,
});

/**
 * Every number of OPS-10 by name; a rule that has a number has it from here, and docs/limits.md is this
 * table. The end of a name is its unit: `Ms`, `Bytes`, `Days`, else a count.
 */
export const LIMITS = {
  leaseMs: fixed(5 * MINUTE, 'A lease without a heartbeat (LSE-3).'),
  heartbeatMs: fixed(30 * SECOND, 'Between two heartbeats of a lease (ACT-5).'),
  loginMs: fixed(10 * MINUTE, 'The login of a runner without a request (AUT-1).'),
  runnerFreshMs: fixed(MINUTE, 'How long a runner counts as there after it was heard (LSE-6).'),
  sessionTimeoutMs: range(
    300 * SECOND,
    30 * SECOND,
    3_600 * SECOND,
    'One session of a reviewer (`timeout` of a route).',
  ),
  lostGrants: fixed(3, 'Lost grants, and time-outs, of one ticket that are final (TKT-6).'),
  idleMs: range(20 * SECOND, 0, 10 * MINUTE, 'How long the Action waits for more work (`idle_ms`, ACT-5).'),
  actionParallel: range(4, 1, 16, 'Tickets that one Action works at once (its input `parallel`).'),
  poolRunners: fixed(1_024, 'Runners of one resident pool that may be registered at a time (LSE-6).'),
  poolTokens: fixed(20, 'Tokens of one resident pool that may hold at a time (AUT-2).'),
  poolSteps: fixed(64, 'Steps of one look for work of a resident pool, an installation (LSE-1).'),
  poolPlaces: fixed(8, 'Places that one lease request of a resident pool is served from (LSE-1).'),
  dispatchMs: fixed(10 * MINUTE, 'From a dispatch until its runner logs in (POOL-3).'),
  dispatchesMinute: fixed(30, 'Dispatches of one repository in a minute (POOL-4).'),
  missedDispatches: fixed(2, 'Dispatches in a row that nobody answered: `dispatch_stalled`.'),
  gateDeadlineMs: range(
    6 * HOUR,
    MINUTE,
    7 * DAY,
    'How long the gate waits for machines (`gate.deadline`, GAT-3).',
  ),
  waitMs: fixed(55 * SECOND, 'Longest wait of one request: for tickets, for a block (LSE-1, LSE-8).'),
  answerBytes: fixed(8 * MIB, 'Largest answer about a run, and largest one that the Action reads.'),
  publishIntervalMs: fixed(5 * SECOND, 'Between two updates of a gate in progress, a run (PUB-1).'),
  gitFetchMs: fixed(120 * SECOND, 'One fetch of git (GIT-1).'),
  gitFetchBytes: fixed(2 * KIB * MIB, 'The cache of one repository, a fetch under way included (GIT-1).'),
  gitReadMs: fixed(60 * SECOND, 'One local read of git (GIT-1).'),
  reconcileMs: fixed(5 * MINUTE, 'Between two comparisons with GitHub (OPS-2).'),
  sweepMs: fixed(10 * SECOND, 'Between two looks for what is due.'),
  deliveryBytes: fixed(25 * MIB, 'Largest delivery of a webhook (OPS-1).'),
  submitBytes: fixed(MIB, 'Largest result that a runner submits.'),
  requestBytes: fixed(64 * KIB, 'Every other request of a runner.'),
  restMs: fixed(30 * SECOND, 'One request to GitHub.'),
  jobAttempts: fixed(25, 'Attempts of a job, and writes of a check run before it counts as stuck.'),
  nearFiles: fixed(12, 'Files of the block whose hunks a model sees beside the one it reviews (REV-2).'),
  settledMinMs: fixed(5 * MINUTE, 'First wait of a settled provider or pool; it doubles (POOL-3).'),
  settledMaxMs: fixed(HOUR, 'Longest wait of a settled provider or pool.'),
  strikes: fixed(3, 'Transient ends in a row that settle a provider.'),
  strikeTickets: fixed(2, 'Tickets that these ends must be of, at least.'),
  backoffMinMs: fixed(30 * SECOND, 'First wait of a ticket after a transient end; it doubles (TKT-2).'),
  backoffMaxMs: fixed(15 * MINUTE, 'Longest wait of a ticket after a transient end.'),
  deliveryDays: fixed(30, 'How long finished deliveries are kept.'),
  adaptiveDays: fixed(90, 'How long a blocking finding raises the level of its path (ADM-3).'),
  leaseBatch: range(1, 1, 16, 'Tickets that one lease request may get (LSE-1).'),
  reservedPaths: fixed(50, 'Paths that a run may reserve without changing them (OWN-7).'),
  runParallel: range(6, 1, 16, 'Tickets of a run that are worked at once (`review.parallel`).'),
  providerSlots: range(4, 1, 1_024, 'Sessions at once with one provider (the setting `slots`, ADM-1).'),
  oidcBytes: fixed(8 * KIB, 'Largest OIDC token, and descriptor of a runner (AUT-1, RID-1).'),
  oidcToleranceMs: fixed(30 * SECOND, 'How far the clocks of an OIDC token may differ.'),
  oidcAgeMs: fixed(5 * MINUTE, 'Greatest age of an OIDC token.'),
  visitIdleMs: fixed(8 * HOUR, 'A visit to the pages without a request (OPS-8).'),
  visitMostMs: fixed(7 * DAY, 'A visit to the pages from its sign-in.'),
  visitRenewMs: fixed(15 * MINUTE, 'Age at which a visit gets a new secret.'),
  visitGraceMs: fixed(MINUTE, 'How long the old secret holds for requests under way.'),
  signInMs: fixed(10 * MINUTE, 'A sign-in at GitHub from its start to its return.'),
  rightMs: fixed(MINUTE, "How long GitHub's word on what a person may read is used."),
  rightLookups: fixed(60, 'How often a person makes us ask in that time.'),
} as const satisfies Record<string, Limit>;

/** `min` doubled `times` times, at most `max`; never negative, safe for any `times`. */
export function doubled(minMs: number, maxMs: number, times: number): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(Math.max(0, times), 30));
}
