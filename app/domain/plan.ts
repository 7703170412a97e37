/** Whether runners are to be started, and where (POOL-2): pure, over what is known at one moment. */
import { COMMAND } from './provider.ts';

/** A workflow pool (POOL-1). Counts are confirmed: live runners, dispatches nobody answered yet. */
export interface PlanWorkflowPool {
  readonly kind: 'workflow';
  readonly name: string;
  readonly capacity: number;
  readonly running: number;
  readonly pending: number;
  /** Null: in service; a past moment: one dispatch goes out as the probe. */
  readonly settledUntilMs: number | null;
}
/** A resident pool: nothing starts its runners, and only those that live are capacity (POOL-1). */
export interface PlanResidentPool {
  readonly kind: 'resident';
  readonly name: string;
  /** Runners of it that the policy counts on. */
  readonly capacity: number;
  /** Tickets that each live runner of it could take now; empty: none lives. */
  readonly free: readonly number[];
}
/** A place where runners come from. */
export type PlanPool = PlanWorkflowPool | PlanResidentPool;
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
  /** Slots that are taken, by whatever repository of the installation. */
  readonly busy: number;
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
  | { readonly kind: 'stalled'; readonly reason: 'no_pool' | 'no_runner' };

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
  // LSE-1: where others hold all of them, one runner that asks for a share is of use
  if (provider.settledUntilMs === null) return Math.max(provider.free, heldByOthers(input, provider) ? 1 : 0);
  return provider.settledUntilMs <= input.nowMs ? Math.min(1, provider.free) : 0;
}

function heldByOthers(input: PlanInput, { name, busy }: PlanProvider): boolean {
  const own = input.work.reduce((sum, one) => sum + (one.provider === name ? one.leased : 0), 0);
  return own === 0 && busy > 0;
}

/** Tickets that the live runners of a resident pool could take now, as far as the policy counts on them. */
function offered(pool: PlanResidentPool): number {
  const most = [...pool.free].sort((a, b) => b - a).slice(0, pool.capacity);
  return most.reduce((sum, free) => sum + Math.max(0, free), 0);
}

/** Whether nothing can be had of a pool now: it is settled, or no runner of it lives (POOL-3). */
export function isOut(pool: PlanPool): boolean {
  return pool.kind === 'resident' ? pool.free.length === 0 : pool.settledUntilMs !== null;
}

/**
 * POOL-2: what live residents have room for is theirs. For the rest as many workflow runners as useful
 * tickets keep busy, less those that run or are on their way; one drains many. A settled pool starts nothing
 * until its time, then one probe. Equal plans start nothing twice, since what was started counts as pending.
 */
export function plan(input: PlanInput): Plan {
  const waiting = input.work.some((one) => one.ready > 0 || one.nextMs !== null);
  if (!waiting) return { kind: 'none' };
  if (input.pools.length === 0) return { kind: 'stalled', reason: 'no_pool' };
  const useful = usefulTickets(input);
  if (useful === 0) return whyNothing(input);
  const residents = input.pools.filter((pool) => pool.kind === 'resident');
  const rest = useful - residents.reduce((sum, pool) => sum + offered(pool), 0);
  if (rest <= 0) return { kind: 'none' };
  const workflows = input.pools.filter((pool) => pool.kind === 'workflow');
  const on = workflows.reduce((sum, pool) => sum + pool.running + pool.pending, 0);
  let missing = Math.min(Math.ceil(rest / Math.max(1, input.perRunner)), rest) - on;
  if (missing <= 0 && workflows.length > 0) return { kind: 'none' };
  const starts: { pool: string; n: number }[] = [];
  let settledUntil: number | null = null;
  for (const pool of workflows) {
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
  if (workflows.length === 0 && residents.every(isOut)) return { kind: 'stalled', reason: 'no_runner' };
  // while a resident lives, what waits is waiting for room
  return settledUntil === null || !residents.every(isOut)
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
