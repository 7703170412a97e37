/** Whether runners are to be started, and where (POOL-2): pure, over what is known at one moment. */
import { COMMAND } from './provider.ts';

/** A place where runners come from (POOL-1). Counts are confirmed: live runners, dispatches nobody answered yet. */
export interface PlanPool {
  readonly name: string;
  readonly capacity: number;
  readonly running: number;
  readonly pending: number;
  /** Null: in service; a past moment: one dispatch goes out as the probe. */
  readonly settledUntilMs: number | null;
}
/** Tickets of one run for one provider. */
export interface PlanWork {
  readonly run: string;
  readonly provider: string;
  /** Pending and not waiting out a back-off. */
  readonly ready: number;
  /** When the next one waiting out a back-off may be leased; null: none does. */
  readonly nextMs: number | null;
  readonly leased: number;
  readonly parallel: number;
}
/** A provider: its free slots, and until when it is settled. */
export interface PlanProvider {
  readonly name: string;
  readonly free: number;
  readonly settledUntilMs: number | null;
}
/** What the plan is a function of. */
export interface PlanInput {
  readonly nowMs: number;
  readonly work: readonly PlanWork[];
  readonly pools: readonly PlanPool[];
  readonly providers: readonly PlanProvider[];
  /** Tickets one runner works at once. */
  readonly perRunner: number;
}
/** What to do. `wait.untilMs` null: something that runs has to end first. */
export type Plan =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'wait';
      readonly reason: 'backoff' | 'provider_down' | 'capacity' | 'dispatch_stalled';
      readonly untilMs: number | null;
    }
  | { readonly kind: 'start'; readonly starts: readonly { readonly pool: string; readonly n: number }[] }
  | { readonly kind: 'stalled'; readonly reason: 'no_pool' };

/** Tickets a runner could work right now, under every cap of LSE-1. */
export function usefulTickets(input: PlanInput): number {
  const leased = new Map<string, number>();
  for (const one of input.work) leased.set(one.run, (leased.get(one.run) ?? 0) + one.leased);
  const wanted = new Map<string, number>();
  const berths = new Map<string, number>();
  for (const one of input.work) {
    const free = berths.get(one.run) ?? Math.max(0, one.parallel - (leased.get(one.run) ?? 0));
    const n = Math.min(one.ready, free);
    berths.set(one.run, free - n);
    wanted.set(one.provider, (wanted.get(one.provider) ?? 0) + n);
  }
  let useful = 0;
  for (const [name, n] of wanted) useful += Math.min(n, capacityOf(input, name));
  return useful;
}

function capacityOf(input: PlanInput, name: string): number {
  if (name === COMMAND) return Number.POSITIVE_INFINITY;
  const provider = input.providers.find((one) => one.name === name);
  if (provider === undefined) return 0;
  if (provider.settledUntilMs === null) return provider.free;
  return provider.settledUntilMs <= input.nowMs ? Math.min(1, provider.free) : 0;
}

/**
 * POOL-2: as many runners as useful tickets keep busy, less those that run or are on their way; one
 * drains many. A settled pool starts nothing until its time, then one probe. Equal plans start
 * nothing twice, since what was started counts as pending.
 */
export function plan(input: PlanInput): Plan {
  const waiting = input.work.some((one) => one.ready > 0 || one.nextMs !== null);
  if (!waiting) return { kind: 'none' };
  if (input.pools.length === 0) return { kind: 'stalled', reason: 'no_pool' };
  const useful = usefulTickets(input);
  if (useful === 0) return whyNothing(input);
  const on = input.pools.reduce((sum, pool) => sum + pool.running + pool.pending, 0);
  let missing = Math.min(Math.ceil(useful / Math.max(1, input.perRunner)), useful) - on;
  if (missing <= 0) return { kind: 'none' };
  const starts: { pool: string; n: number }[] = [];
  let settledUntil: number | null = null;
  for (const pool of input.pools) {
    if (missing <= 0) break;
    const settled = pool.settledUntilMs;
    if (settled !== null && settled > input.nowMs) {
      settledUntil = settledUntil === null ? settled : Math.min(settledUntil, settled);
      continue;
    }
    const free = pool.capacity - pool.running - pool.pending;
    const n = Math.min(missing, settled === null ? free : Math.min(free, pool.pending > 0 ? 0 : 1));
    if (n <= 0) continue;
    starts.push({ pool: pool.name, n });
    missing -= n;
  }
  if (starts.length > 0) return { kind: 'start', starts };
  return settledUntil === null
    ? { kind: 'wait', reason: 'capacity', untilMs: null }
    : { kind: 'wait', reason: 'dispatch_stalled', untilMs: settledUntil };
}

function whyNothing(input: PlanInput): Plan {
  const settled = input.work
    .filter((one) => one.ready > 0)
    .flatMap((one) => input.providers.filter((provider) => provider.name === one.provider))
    .map((provider) => provider.settledUntilMs)
    .filter((until) => until !== null && until > input.nowMs);
  const times = settled.filter((until) => until !== null);
  if (times.length > 0) return { kind: 'wait', reason: 'provider_down', untilMs: Math.min(...times) };
  const next = input.work.map((one) => one.nextMs).filter((ms) => ms !== null);
  if (input.work.every((one) => one.ready === 0) && next.length > 0)
    return { kind: 'wait', reason: 'backoff', untilMs: Math.min(...next) };
  return { kind: 'wait', reason: 'capacity', untilMs: null };
}
