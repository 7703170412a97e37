/**
 * Turns of the queue, gathered over the callers of this process (LSE-1, LSE-4): results that arrive while
 * others are under way are taken together, with the leases that their runners ask for next, in one
 * commit. Each result is a unit of work of its run; when one of them fails, each is tried alone.
 *
 * Reads: run. Writes: lease, ticket, slot, and what the works write. Calls: nothing.
 * May fail with: what the works fail with, `run_missing`, `database_unreachable`.
 */
import {
  type Granted,
  type LeaseAsk,
  type QueuePlace,
  type Settlement,
  turnQueue,
} from '../../db/store/turn.ts';
import { LIMITS } from '../domain/limits.ts';
import { Fault } from '../errors.ts';
import { type RunUnit, withRuns } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { gather } from './gather.ts';
import { createFloors, type Floors } from './take-turn/floors.ts';
import { newsOf, wake } from './wake.ts';

/** What a work came to: the lease that ends with it, and whether its ask is served. */
export interface WorkOutcome<T> {
  readonly value: T;
  readonly end: (Settlement & { readonly leaseId: string }) | null;
  readonly serves: boolean;
}

/** Something done in a run's unit of work; `ending` are leases that end in the same commit and are still live. */
export interface RunWork<T> {
  readonly runId: string;
  /** Two of one lease never share a commit: the second must see what the first did. */
  readonly leaseId: string;
  readonly work: (unit: RunUnit, ending: ReadonlySet<string>) => Promise<WorkOutcome<T>>;
}

/** What a caller wants of one turn. */
export interface TurnInput<T> {
  readonly of: RunWork<T> | null;
  readonly ask: LeaseAsk | null;
}

/** What came of it; `value` is the work's, null where there was none. */
export interface TurnOutput<T> {
  readonly value: T | null;
  readonly granted: readonly Granted[];
}

type Settled<T> = { readonly output: TurnOutput<T> } | { readonly error: unknown };
/** A repository, where its turns begin to look, and the news it had when an ask last found nothing. */
type Here = QueuePlace & { readonly floors: Floors; refused: number | null };
interface Desk {
  readonly floors: Floors;
  readonly take: (input: TurnInput<unknown>) => Promise<Settled<unknown>>;
}

/** Turns of one repository under way at a time, and callers in each: more connections are slower (performance.md). */
const FLIGHTS = 2;
const MOST = 32;

const desks = new WeakMap<Deps, Map<string, Desk>>();

/** Takes a turn for one caller; what it waits for is at most one turn that is under way. */
export async function takeTurn<T>(
  deps: Deps,
  place: QueuePlace,
  input: TurnInput<T>,
): Promise<TurnOutput<T>> {
  const settled = await deskOf(deps, place).take(input as TurnInput<unknown>);
  if ('error' in settled) throw settled.error;
  return settled.output as TurnOutput<T>;
}

function deskOf(deps: Deps, place: QueuePlace): Desk {
  const mine = desks.get(deps) ?? new Map<string, Desk>();
  desks.set(deps, mine);
  const known = mine.get(place.repositoryId);
  if (known !== undefined) return known;
  const here: Here = { ...place, floors: createFloors(), refused: null };
  const take = gather(
    FLIGHTS,
    MOST,
    (inputs: readonly TurnInput<unknown>[]) => together(deps, here, inputs),
    // two flights with results of one run would wait for each other at its lock
    ({ of }) => of?.runId ?? null,
  );
  const made = { floors: here.floors, take };
  mine.set(place.repositoryId, made);
  return made;
}

/** A ticket of the repository went back to the front of its block: the next turn of this process looks there (LSE-5). */
export function lookInFront(deps: Deps, repositoryId: string): void {
  desks.get(deps)?.get(repositoryId)?.floors.forget();
}

async function together(
  deps: Deps,
  place: Here,
  inputs: readonly TurnInput<unknown>[],
): Promise<Settled<unknown>[]> {
  const first = new Set<string>();
  const again = inputs.map(({ of }) => {
    if (of === null) return false;
    const repeated = first.has(of.leaseId);
    first.add(of.leaseId);
    return repeated;
  });
  const now = inputs.filter((_, i) => again[i] !== true);
  const outputs = new Map<TurnInput<unknown>, Settled<unknown>>();
  try {
    for (const [i, output] of (await turn(deps, place, now)).entries())
      outputs.set(now[i] as TurnInput<unknown>, { output });
  } catch (error) {
    // One that fails must not take the others with it. Where it may all have been committed, nothing is tried
    // again here: whoever asked looks, and asks again by the same name.
    const alike = now.length === 1 || first.size === 0 || mayStand(error);
    for (const one of now) outputs.set(one, alike ? { error } : await alone(deps, place, one));
  }
  for (const [i, one] of inputs.entries())
    if (again[i] === true) outputs.set(one, await alone(deps, place, one));
  return inputs.map((one) => outputs.get(one) as Settled<unknown>);
}

function mayStand(error: unknown): boolean {
  return error instanceof Fault && error.code === 'database_unreachable';
}

async function alone(deps: Deps, place: Here, input: TurnInput<unknown>): Promise<Settled<unknown>> {
  try {
    const [output] = await turn(deps, place, [input]);
    return { output: output as TurnOutput<unknown> };
  } catch (error) {
    return { error };
  }
}

async function turn(
  deps: Deps,
  place: Here,
  inputs: readonly TurnInput<unknown>[],
): Promise<TurnOutput<unknown>[]> {
  const ttlMs = LIMITS.leaseMs.default;
  const asks = inputs.flatMap((one) => one.ask ?? []);
  const runs = inputs.flatMap((one) => one.of?.runId ?? []);
  if (runs.length === 0) {
    const news = newsOf(deps.database, place.repositoryId);
    const { granted, heads } = await turnQueue(deps.database.db, {
      ends: [],
      place,
      asks,
      ttlMs,
      // who was told that there is something is not asked to look whether there is
      doubtful: place.refused === news,
      ...place.floors.next(),
    });
    place.floors.learn(heads);
    place.refused = heads.size === 0 ? news : null;
    return inputs.map((one) => ({
      value: null,
      granted: one.ask === null ? [] : grantedTo(one.ask, asks, granted),
    }));
  }
  const outputs = await withRuns(deps, runs, async (units, tx) => {
    const ending = new Set<string>();
    const works = new Map<TurnInput<unknown>, WorkOutcome<unknown>>();
    // each run's works in their order, the runs side by side; all of them come to rest before a failure is told
    const rested = await Promise.allSettled(
      [...units].map(async ([runId, unit]) => {
        for (const one of inputs) {
          if (one.of?.runId !== runId) continue;
          const done = await one.of.work(unit, ending);
          if (done.end !== null) ending.add(done.end.leaseId);
          works.set(one, done);
        }
      }),
    );
    for (const one of rested) if (one.status === 'rejected') throw one.reason;
    const served = inputs.flatMap((one) =>
      one.ask !== null && (works.get(one)?.serves ?? true) ? one.ask : [],
    );
    const ends = [...works.values()].flatMap((one) => one.end ?? []);
    const { ended, granted, heads } =
      ends.length + served.length === 0
        ? { ended: new Set<string>(), granted: [], heads: new Map<string, string>() }
        : await turnQueue(tx, { ends, place, asks: served, ttlMs, ...place.floors.next() });
    place.floors.learn(heads);
    if (ends.some((one) => !ended.has(one.leaseId)))
      throw new Fault('bug', 'a lease that was locked live did not end');
    return inputs.map((one) => ({
      value: works.get(one)?.value ?? null,
      granted: one.ask === null ? [] : grantedTo(one.ask, served, granted),
    }));
  });
  // what ended leaves room, and its lane has the next ticket: as many of those who wait here look at once
  wake(deps.database, place.repositoryId, inputs.filter((one) => one.of !== null && one.ask === null).length);
  return outputs;
}

function grantedTo(
  ask: LeaseAsk,
  asks: readonly LeaseAsk[],
  granted: readonly (readonly Granted[])[],
): readonly Granted[] {
  return granted[asks.indexOf(ask)] ?? [];
}
