/** What a day came to, counted as it goes. */
import type { DayOutcome, Scheme } from './day.ts';
import type { SideFigures } from './report.ts';
import { type Arrival, DAY_MS, type Tenant, type Trace } from './trace.ts';

/** A ticket of the day, from its enqueueing to its end. */
export interface Followed {
  readonly arrival: Arrival;
  readonly index: number;
  readonly queuedMs: number;
  startedMs: number | null;
  endedMs: number | null;
  end: string | null;
  grants: number;
}

/** Counts of one side. */
export class Tally {
  readonly tickets = new Map<string, Followed>();
  dispatches = 0;
  jobs = 0;
  lostJobs = 0;
  cancelledJobs = 0;
  /** Jobs that worked nothing. */
  idleJobs = 0;
  /** From a job's start to its end. */
  runnerMs = 0;
  /** The same as GitHub bills it: each job's minutes begun. */
  billedMinutes = 0;
  /** Time in which a job worked at least one ticket. */
  busyMs = 0;
  /** Slot time of model providers in use by tenant, in ms. */
  readonly slotMs = new Map<string, number>();
  violations: string[] = [];
  events = 0;
}

/** Waiting times of some tickets, in seconds. */
export interface Waits {
  readonly n: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly most: number;
}

/** The waiting times, from enqueueing to the first lease, of the tickets that `which` accepts. */
export function waitsOf(tally: Tally, which: (one: Followed) => boolean): Waits {
  const waits = [...tally.tickets.values()]
    .filter(which)
    .map((one) => ((one.startedMs ?? Number.POSITIVE_INFINITY) - one.queuedMs) / 1_000)
    .sort((a, b) => a - b);
  const at = (share: number) => waits[Math.min(waits.length - 1, Math.floor(share * waits.length))] ?? 0;
  return { n: waits.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), most: waits.at(-1) ?? 0 };
}

/** The same over pull requests, from their arrival to the end of their last ticket. */
export function spansOf(tally: Tally, which: (one: Followed) => boolean): Waits {
  const last = new Map<Arrival, number>();
  for (const one of tally.tickets.values()) {
    if (!which(one)) continue;
    const took = ((one.endedMs ?? Number.POSITIVE_INFINITY) - one.queuedMs) / 1_000;
    last.set(one.arrival, Math.max(took, last.get(one.arrival) ?? 0));
  }
  const spans = [...last.values()].sort((a, b) => a - b);
  const at = (share: number) => spans[Math.min(spans.length - 1, Math.floor(share * spans.length))] ?? 0;
  return { n: spans.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), most: spans.at(-1) ?? 0 };
}

/** Whose tickets are told apart, in the report's order. */
export const GROUPS: readonly (readonly [name: string, which: (one: Followed) => boolean])[] = [
  ['small tenants', quiet('small')],
  ['medium tenants', quiet('medium')],
  ['large tenants', quiet('large')],
  ['beside a dump: same repository', (one) => noisy(one) && ordinary(one) && same(one)],
  ['beside a dump: same tenant, other repository', (one) => noisy(one) && ordinary(one) && !same(one)],
  ['the dumps themselves', (one) => one.arrival.kind === 'dump'],
];

function quiet(size: Tenant['class']): (one: Followed) => boolean {
  return (one) => !noisy(one) && one.arrival.tenant.class === size;
}

function noisy(one: Followed): boolean {
  return one.arrival.tenant.noisy;
}

function ordinary(one: Followed): boolean {
  return one.arrival.kind === 'ordinary';
}

function same({ arrival }: Followed): boolean {
  return arrival.repository === arrival.tenant.repositories[0];
}

/** A side's outcome as plain data. */
export function figuresOf(
  side: Scheme,
  trace: Trace,
  { tally, counts, lastMs, tookMs }: DayOutcome,
): SideFigures {
  const ends: Record<string, number> = {};
  for (const { end } of tally.tickets.values()) ends[end ?? 'none'] = (ends[end ?? 'none'] ?? 0) + 1;
  const slots = trace.tenants.reduce((sum, one) => sum + 2 * one.slots, 0);
  return {
    side,
    tookMs,
    lastMs,
    dispatches: tally.dispatches,
    jobs: tally.jobs,
    idleJobs: tally.idleJobs,
    lostJobs: tally.lostJobs,
    cancelledJobs: tally.cancelledJobs,
    runnerMinutes: Math.round(tally.runnerMs / 60_000),
    billedMinutes: tally.billedMinutes,
    busyShare: tally.busyMs / tally.runnerMs,
    slotShare: [...tally.slotMs.values()].reduce((a, b) => a + b, 0) / (slots * DAY_MS),
    ends,
    counts: Object.fromEntries(counts),
    violations: tally.violations,
    groups: GROUPS.map(([name, which]) => ({
      name,
      waits: waitsOf(tally, which),
      spans: spansOf(tally, which),
    })),
  };
}
