/**
 * The job runner: graphile-worker's tasks are the arrows of flow/order.ts, and a ticker runs their
 * sweeps. A job has one effect however often it runs, so a lost answer or a second worker only costs
 * time. One line is logged per job and per sweep that did something.
 */
import { EventEmitter } from 'node:events';
import { Logger, type Runner, run, runOnce, type TaskList, type WorkerEvents } from 'graphile-worker';
import { Fault, Refusal } from './errors.ts';
import { type Arrow, ORDER, type WorkDeps } from './flow/order.ts';
import { claimPool, type PoolClaim, unlockDeadPools } from './worker/pools.ts';

/** How the worker runs. */
export interface WorkerOptions {
  /** Jobs at a time (default 5). */
  readonly concurrency?: number;
  /** Whether sweeps run by themselves (default true); tests call `sweep`. */
  readonly sweeps?: boolean;
  /** Called when a job ended, for metrics. */
  readonly observe?: (task: string, outcome: JobOutcome, ms: number) => void;
}

/** How a job ended: `retry` comes again later, `dropped` never will. */
export type JobOutcome = 'done' | 'retry' | 'dropped';

/** A running worker. */
export interface Worker {
  /** Takes no more jobs and waits for those that run, at most `graceMs`; what is left then is given back. */
  stop(graceMs: number): Promise<void>;
  /** Whether it takes jobs. */
  running(): boolean;
}

/** How often jobs of processes that died are looked for. */
const UNLOCK_MS = 30_000;
/** A job whose limit names a wait is looked at again after it, within these bounds. */
const LONGEST_WAIT_MS = 60 * 60_000;
/** How long after its end a runner is started again, and again while Postgres is away. */
const AGAIN_MS = 1_000;
/** How long a runner that shuts down may take after the last of its jobs. */
const END_MS = 5_000;

/**
 * Starts taking jobs and, unless told not to, running sweeps. A runner that ends by itself (Postgres
 * went away while it took note of a job's end) is followed by another until `stop`, also one that
 * shuts down and never comes to its end.
 */
export async function startWorker(deps: WorkDeps, options: WorkerOptions = {}): Promise<Worker> {
  const stopping = new AbortController();
  let current: Started | null = await startRunner(deps, options);
  const follow = async () => {
    for (let ended: Started | null = current; ended !== null; ended = current) {
      const end = ended.runner.promise.catch((error: unknown) => deps.log.error({ err: error }, 'worker'));
      const overdue = ended.overdue.then(() => deps.log.error({ afterMs: END_MS }, 'worker-overdue'));
      await Promise.race([end, overdue]);
      current = null;
      // the jobs it held are free for its successor
      await ended.claim.release();
      while (current === null && !stopping.signal.aborted) {
        await pause(AGAIN_MS, stopping.signal);
        if (stopping.signal.aborted) return;
        current = await startRunner(deps, options).catch((error: unknown) => {
          deps.log.error({ err: error }, 'worker');
          return null;
        });
      }
      // stopped while it started
      if (current !== null && stopping.signal.aborted) await current.runner.stop().catch(() => {});
    }
  };
  const followed = follow();
  const tickers = [
    every(UNLOCK_MS, stopping.signal, () =>
      guarded(deps, 'unlock-dead-pools', () => unlockDeadPools(deps.database)),
    ),
    ...(options.sweeps === false ? [] : sweepers(deps, stopping.signal)),
  ];
  return {
    running: () => current !== null && !stopping.signal.aborted,
    async stop(graceMs) {
      if (stopping.signal.aborted) return;
      stopping.abort();
      const late = new Promise<'late'>((done) => setTimeout(done, graceMs, 'late').unref());
      const stopped = current?.runner.stop().catch(() => {});
      const work = Promise.allSettled([stopped, followed, ...tickers]);
      // a job that outlives the grace is given back by the release of its pool's lock
      if ((await Promise.race([work, late])) === 'late') deps.log.warn({ graceMs }, 'worker-grace');
      await current?.claim.release();
    },
  };
}

interface Started {
  readonly runner: Runner;
  readonly claim: PoolClaim;
  /** Resolves when it has been shutting down without a job for longer than it may take. */
  readonly overdue: Promise<void>;
}

/**
 * graphile-worker 0.17 counts the batches that note how jobs ended, and waits for none to be left. Once
 * one failed, each that succeeds is taken off twice: where others are still at work the count passes
 * nought, and the pool neither takes jobs nor ends. Both lie in `batch` of its main.js.
 */
function overdueOf(events: WorkerEvents): Promise<void> {
  return new Promise<void>((done) => {
    let jobs = 0;
    let ending = false;
    let timer: NodeJS.Timeout | undefined;
    const look = () => {
      clearTimeout(timer);
      if (ending && jobs === 0) timer = setTimeout(done, END_MS).unref();
    };
    const ended = () => {
      jobs -= 1;
      look();
    };
    events.on('job:start', () => {
      jobs += 1;
      look();
    });
    events.on('job:complete', ended);
    // the end of its job could not be noted: the other way out
    events.on('worker:fatalError', ended);
    events.on('pool:gracefulShutdown', () => {
      ending = true;
      look();
    });
    events.on('pool:release', () => clearTimeout(timer));
  });
}

/** A runner whose pool is claimed; it ends when the claim is lost, since others may then take its jobs. */
async function startRunner(deps: WorkDeps, options: WorkerOptions): Promise<Started> {
  const events = new EventEmitter() as WorkerEvents;
  const overdue = overdueOf(events);
  const claim = await claimPool(deps.database, events);
  let runner: Runner | undefined;
  try {
    runner = await run({
      ...queue(deps),
      concurrency: options.concurrency ?? 5,
      pollInterval: 1_000,
      events,
      taskList: tasks(deps, options),
    });
    const started = runner;
    void claim.lost.then(() => started.stop().catch(() => {}));
    await claim.settled();
    await unlockDeadPools(deps.database);
    return { runner, claim, overdue };
  } catch (error) {
    await runner?.stop().catch(() => {});
    await claim.release();
    throw error;
  }
}

/**
 * What every way of working jobs needs. With a delay, even none, graphile-worker takes note of a
 * job's end in a batch, whose failure ends its pool; without one it drops the promise of it, whose
 * failure ends this process.
 */
function queue(deps: WorkDeps) {
  return {
    pgPool: deps.database.pool,
    noHandleSignals: true,
    logger: quiet(deps),
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  };
}

/** Works the jobs that are ready, and those they queue, until none is: for tests and for the command line. */
export async function workReady(deps: WorkDeps): Promise<void> {
  await runOnce({ ...queue(deps), taskList: tasks(deps, {}) });
}

/** Runs every sweep once, in order; a failing one is logged and stops no other (POOL-5). Answers the names that failed. */
export async function sweep(deps: WorkDeps, arrows: readonly Arrow[] = ORDER): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const arrow of arrows) {
    if (arrow.sweep === undefined) continue;
    const { run: work } = arrow.sweep;
    if (!(await guarded(deps, arrow.name, () => work(deps)))) failed.push(arrow.name);
  }
  return failed;
}

function sweepers(deps: WorkDeps, signal: AbortSignal): Promise<void>[] {
  return ORDER.flatMap((arrow) => {
    const due = arrow.sweep;
    return due === undefined
      ? []
      : [every(due.everyMs, signal, () => guarded(deps, arrow.name, () => due.run(deps)))];
  });
}

async function guarded(deps: WorkDeps, name: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    const outcome = await work();
    if (outcome !== undefined && outcome !== 0) deps.log.info({ sweep: name, outcome }, 'sweep');
    return true;
  } catch (error) {
    deps.log.error({ sweep: name, err: error }, 'sweep');
    return false;
  }
}

/** Runs `work` now and then every `ms`, never twice at a time, until the signal; resolves when the last run ended. */
async function every(ms: number, signal: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await work();
    await pause(ms, signal);
  }
}

/** Resolves after `ms`, or with the signal. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise<void>((done) => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      done();
    }
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

function tasks(deps: WorkDeps, options: WorkerOptions): TaskList {
  return Object.fromEntries(
    ORDER.flatMap((arrow) => {
      const work = arrow.run;
      if (work === undefined) return [];
      const task: TaskList[string] = async (payload, helpers) => {
        const started = performance.now();
        const line = { task: arrow.name, job: helpers.job.id, attempt: helpers.job.attempts, payload };
        const told = (outcome: JobOutcome, more: Record<string, unknown>) => {
          const ms = Math.round(performance.now() - started);
          options.observe?.(arrow.name, outcome, ms);
          const level = outcome === 'done' ? 'info' : outcome === 'retry' ? 'warn' : 'error';
          deps.log[level]({ ...line, ...more, outcome, ms }, 'job');
        };
        try {
          // what came of it is told by the arrow's own line
          await work(deps, payload);
          told('done', {});
        } catch (error) {
          const wait = error instanceof Fault ? error.retryAfterMs : undefined;
          if (error instanceof Fault && error.retryable && wait !== undefined) {
            // waited out as told (OPS-6): it is no failure of the job and costs none of its attempts
            await helpers.addJob(arrow.name, payload as object, {
              runAt: new Date(Date.now() + Math.min(wait, LONGEST_WAIT_MS)),
              maxAttempts: helpers.job.max_attempts,
              priority: helpers.job.priority,
              ...(helpers.job.key === null ? {} : { jobKey: helpers.job.key }),
            });
            told('retry', { code: error.code, waitMs: wait });
            return;
          }
          const final = error instanceof Refusal || (error instanceof Fault && !error.retryable);
          told(final ? 'dropped' : 'retry', { err: error });
          // an error that is not ours may be a passing one of Postgres: the queue's attempts bound it
          if (!final) throw error;
        }
      };
      return [[arrow.name, task]];
    }),
  );
}

/** graphile-worker's own lines; a failed task was told already, and its lines would show payloads. */
function quiet(deps: WorkDeps): Logger {
  return new Logger(() => (level, message) => {
    if (level === 'error' && !message.startsWith('Failed task'))
      deps.log.error({ message }, 'graphile-worker');
  });
}
