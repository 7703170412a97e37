/**
 * One simulated day on the planner and the lease as they run in production. Real: the database, queue_turn
 * and every arrow from dispatch and login to lease, admission, heartbeat, result, expiry and the sweeps.
 * Modelled: time, GitHub Actions, what a review takes, and the gate, whose jobs are thrown away.
 */
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../app/domain/limits.ts';
import { withRun } from '../../app/flow/append-rows.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { dispatch } from '../../app/flow/dispatch.ts';
import { expire } from '../../app/flow/expire.ts';
import { noteWorkflow } from '../../app/flow/note-workflow.ts';
import { pointTicketsOf } from '../../app/flow/point-tickets.ts';
import { sweepDispatches } from '../../app/flow/sweep-dispatches.ts';
import { sweepProviders } from '../../app/flow/sweep-providers.ts';
import { newKeys } from '../../app/signing/keys.ts';
import { createSigner } from '../../app/signing/signer.ts';
import type { Database } from '../../db/client.ts';
import { Actions, type Job } from './actions.ts';
import { hearAll, ownLogin, topUp } from './alone.ts';
import { leanArrows, wholeArrows } from './arrows.ts';
import { account, check } from './checks.ts';
import { DayClock } from './clock.ts';
import { dayPolicy, fillTenants, queueArrival, runName } from './fill.ts';
import { Tally } from './measure.ts';
import { DayRunner } from './runner.ts';
import { type Arrival, DAY_MS, type Trace } from './trace.ts';
import { hours, World } from './world.ts';

/** `ours`; `fifo`: the same without fairness, oldest ticket first; `alone`: a runner is started for each ticket. */
export type Scheme = 'ours' | 'fifo' | 'alone';

/** A day's outcome. */
export interface DayOutcome {
  readonly tally: Tally;
  readonly counts: ReadonlyMap<string, number>;
  /** When the last ticket was over, in ms of the day. */
  readonly lastMs: number;
  readonly tookMs: number;
}

const SWEEP_MS = LIMITS.sweepMs.default;
/** Whatever is not over by then is stuck. */
const MOST_MS = 3 * DAY_MS;

/** How a day is lived. */
export interface DayOptions {
  /** Without what planner and lease never look at (arrows.ts): for a day at full size. */
  readonly lean?: boolean;
  readonly progress?: (line: string) => void;
}

/** Lives the day of a trace on a migrated throw-away database that nothing else uses. */
export async function simulateDay(
  place: { readonly url: string; readonly database: Database },
  trace: Trace,
  scheme: Scheme,
  { lean = false, progress = () => {} }: DayOptions = {},
): Promise<DayOutcome> {
  const from = performance.now();
  const clock = await DayClock.start(place.url);
  const tally = new Tally();
  const world = new World(clock, depsOf(place.database), trace, tally, lean);
  world.arrows = lean ? leanArrows(world) : wholeArrows(world);
  world.actions = new Actions(clock, trace, tally, {
    started: (job) => started(world, job, scheme),
    gone: async (job, how) => world.runners.get(job.workflowRun)?.gone(how),
    over: (job, conclusion) => over(world, job, conclusion, scheme),
  });
  (world.deps as { github: Deps['github'] }).github = world.actions.port();
  try {
    if (scheme === 'fifo') await goByAge(clock);
    await fillTenants(world.deps, trace);
    await clock.owner.query('analyze');
    for (const [i, arrival] of trace.arrivals.entries())
      clock.at(arrival.atMs, () => arrive(world, arrival, i + 1, scheme));
    clock.at(0, () => sweep(world, scheme));
    clock.at(0, () => check(world, progress));
    if (scheme === 'alone') clock.at(0, () => hearAll(world));
    let happened = 0;
    for (let happen = clock.next(); happen !== undefined; happen = clock.next()) {
      if (world.open === 0 && clock.nowMs > (trace.arrivals.at(-1)?.atMs ?? 0) + 600_000) break;
      if (clock.nowMs > MOST_MS) {
        tally.violations.push(`${world.open} tickets are not over after three days`);
        break;
      }
      world.queues = false;
      await happen();
      if (world.queues) await workJobs(world, scheme);
      if (++happened % 20_000 === 0)
        progress(`${scheme}: ${hours(clock.nowMs)}, ${world.open} open, ${tally.dispatches} dispatches`);
    }
    await clock.tell();
    await check(world, progress);
    await account(world);
    const ends = [...tally.tickets.values()].map((one) => one.endedMs ?? 0);
    return {
      tally,
      counts: world.counts,
      lastMs: ends.reduce((a, b) => Math.max(a, b), 0),
      tookMs: performance.now() - from,
    };
  } finally {
    await clock.close();
  }
}

function depsOf(database: Database): Deps {
  let n = 0;
  const never = (): never => {
    throw new Error('a day reads no git');
  };
  const count = (level: string) => (fields: Readonly<Record<string, unknown>>, event: string) => {
    if (level === 'error') console.error(event, fields);
  };
  return {
    database,
    signer: createSigner(newKeys('day.test')),
    github: undefined as never,
    git: {
      readPull: never,
      readGroup: never,
      readBlobs: never,
      readPath: never,
      readEntries: never,
      pairSimilar: never,
      isAncestor: never,
    } as Deps['git'],
    log: { info: () => {}, warn: () => {}, error: count('error') },
    ids: {
      // in order of making, so that a day is the same each time
      next: () => `d${String(n++).padStart(12, '0')}`,
      secret: () => randomUUID() + randomUUID(),
    },
    settings: { publicUrl: 'https://day.test', serverUrl: 'https://github.test', version: '0' },
  };
}

/** Without fairness: the same lease goes by the age of tickets and not by turns of runs. */
async function goByAge(clock: DayClock): Promise<void> {
  await clock.owner.query(`
    create function day_by_age() returns trigger language plpgsql as $$
    begin
      if new.tag is not null then
        new.tag := (extract(epoch from new.queued_at) * 1000)::bigint % 1000000000 * 1000000 + new.turn % 1000000;
      end if;
      return new;
    end $$;
    create trigger day_by_age before insert or update of tag on ticket for each row execute function day_by_age()`);
}

async function arrive(world: World, arrival: Arrival, pull: number, scheme: Scheme): Promise<void> {
  world.queues = true;
  await world.clock.tell();
  const ids = await queueArrival(world.deps, arrival, pull);
  world.opened(arrival, runName(pull));
  for (const [index, id] of ids.entries())
    world.queued(id, {
      arrival,
      index,
      queuedMs: world.clock.nowMs,
      startedMs: null,
      endedMs: null,
      end: null,
      grants: 0,
    });
  if (scheme === 'alone') for (const _ of ids) world.actions.dispatch(arrival.repository, '');
  else await world.wakeAll(arrival.repository);
}

async function started(world: World, job: Job, scheme: Scheme): Promise<void> {
  world.queues = true;
  await world.clock.tell();
  const runner = new DayRunner(world, job, scheme !== 'alone');
  world.runners.set(job.workflowRun, runner);
  const here = world.here.get(job.repository) ?? new Set();
  world.here.set(job.repository, here);
  here.add(runner);
  await runner.start(scheme === 'alone' ? await ownLogin(world, job) : null);
}

async function over(world: World, job: Job, conclusion: string, scheme: Scheme): Promise<void> {
  world.queues = true;
  if (conclusion !== 'success') world.trouble(job.tenant);
  const runner = world.runners.get(job.workflowRun);
  if (runner !== undefined) {
    runner.dead = true;
    world.here.get(job.repository)?.delete(runner);
    world.runners.delete(job.workflowRun);
  }
  // a job that nothing of ours stands for concerns nobody unless it took tickets with it
  if (scheme === 'alone' && conclusion === 'success') return;
  await world.clock.tell();
  await noteWorkflow(world.deps, {
    repository: job.repository,
    workflowRun: job.workflowRun,
    attempt: 1,
    job: null,
    completed: true,
    conclusion,
    title: 'countersign',
  });
  await world.readAdrift();
  if (scheme === 'alone') await topUp(world);
}

/** What the worker does with the jobs that the arrows queue; decisions of the gate and their publishing are no part of a day. */
async function workJobs(world: World, scheme: Scheme): Promise<void> {
  for (;;) {
    const { rows } = await world.clock.owner.query<{ task: string; payload: Record<string, string> }>({
      name: 'take-jobs',
      text: `with taken as (delete from graphile_worker._private_jobs returning id, task_id, payload)
        select t.identifier as task, j.payload from taken j join graphile_worker._private_tasks t on t.id = j.task_id order by j.id`,
    });
    if (rows.length === 0) return;
    for (const { task, payload } of rows) {
      if (task === 'dispatch' && scheme !== 'alone')
        await dispatch(world.deps, { repository: payload['repository'] as string });
      if (task === 'cut-tickets') await pointAnew(world, payload['run'] as string);
    }
  }
}

/** The part of cut-tickets that a run without a new head comes to: its waiting tickets are pointed, its windows filled. */
async function pointAnew(world: World, run: string): Promise<void> {
  const woken = await withRun(world.deps, run, async (unit) => {
    const ready = await pointTicketsOf(unit, dayPolicy);
    if (ready > 0)
      unit.enqueue(
        'dispatch',
        { repository: unit.run.repositoryId },
        { key: `dispatch:${unit.run.repositoryId}` },
      );
    return ready > 0 ? unit.run.repositoryId : null;
  });
  if (woken !== null) await world.wakeAll(woken);
}

/** Whether one of the sweeps would find anything, in one statement instead of all of theirs. */
async function isAnythingDue(world: World): Promise<boolean> {
  if (world.clock.nowMs >= world.restlessMs) return false;
  await world.clock.tell();
  const { rows } = await world.deps.database.pool.query<{ due: boolean }>({
    name: 'day-due',
    text: `select exists (select from provider where settled_until is not null or not noted)
        or exists (select from pool where settled_until <= cs_now())
        or exists (select from ticket where state = 'pending' and not_before <= cs_now())
        or exists (select from dispatch where due_at <= cs_now())
        or exists (select from lease l join runner r on r.id = l.runner_id where l.state = 'live'
             and (l.expires_at <= cs_now() or r.ended_at is not null))
        or exists (select from runner where ended_at is null and heartbeat_at < cs_now() - $1 * interval '1 millisecond') as due`,
    values: [LIMITS.leaseMs.default],
  });
  return rows[0]?.due === true;
}

async function sweep(world: World, scheme: Scheme): Promise<void> {
  world.queues = true;
  if (!world.lean || world.anyStarving() || (await isAnythingDue(world))) {
    world.tally.events++;
    await world.clock.tell();
    await expire(world.deps);
    await sweepDispatches(world.deps);
    await sweepProviders(world.deps);
    await world.readAdrift();
    if (scheme === 'alone') {
      await topUp(world);
      await world.wakeEach();
    }
  }
  world.clock.after(SWEEP_MS, () => sweep(world, scheme));
}
