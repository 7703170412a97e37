/** The drain (ACT-5): lease, work up to `parallel` at once, lease again until nothing is left for `idle_ms`. */
import { randomUUID } from 'node:crypto';
import { Fault } from '../app/errors.ts';
import { type Lease, type WorkDeps, workLease } from './lease-work.ts';
import { sleep } from './sleep.ts';

/** Why the drain ended. */
export type DrainEnd =
  | Readonly<{ kind: 'drained' }>
  | Readonly<{ kind: 'stopped' }>
  | Readonly<{ kind: 'failed'; message: string }>;

/** Longest one wait for work: proxies cut connections that are silent for a minute. */
const LONGEST_WAIT_MS = 25_000;
/** While something is worked: short, so that the end of the work is not slept through. */
const BUSY_WAIT_MS = 2000;
/** How long the server may be away before a runner without work gives up. */
const PATIENCE_MS = 120_000;
/** The first wait after work: short, to hear soon whether anything is left at all. */
const FIRST_WAIT_MS = 1000;
/** Once the server says that the run has nothing left, follow-up work appears soon or not at all. */
const DONE_IDLE_MS = 2000;

/**
 * Leases and works until nothing is left, the signal says stop, or the server is gone; then waits for what runs.
 * Who stays (a resident runner) ends by the signal or a refusal alone: it waits for work and for the server.
 */
export async function drain(deps: WorkDeps, stays = false): Promise<DrainEnd> {
  const active = new Set<Promise<void>>();
  try {
    return await leaseAll(deps, active, stays);
  } finally {
    await Promise.all(active);
  }
}

async function leaseAll(deps: WorkDeps, active: Set<Promise<void>>, stays: boolean): Promise<DrainEnd> {
  const { client, inputs, log, signal, verifier } = deps;
  // one listener for the whole drain: one a ticket would stay for as long as the job runs
  const stopped = aborted(signal);
  let idleFrom = performance.now();
  let failingFrom: number | null = null;
  let done = false;
  let asking: 'first' | 'again' = 'first';
  let backOff = 500;
  /** The name of the request that has no answer yet; asked again, the server takes back what that one got. */
  let unheard: string | null = null;
  const follow = (worked: Promise<void>): void => {
    idleFrom = performance.now();
    const work: Promise<void> = worked.finally(() => {
      active.delete(work);
      idleFrom = performance.now();
      asking = 'first';
    });
    active.add(work);
  };
  const start = (lease: Lease): void =>
    follow(
      workLease(deps, lease, (next) => {
        done = next.done;
        for (const one of next.leases) start(one);
      }),
    );
  while (!signal.aborted) {
    const free = inputs.parallel - active.size;
    if (free <= 0) {
      await Promise.race([...active, stopped]);
      idleFrom = performance.now();
      continue;
    }
    const idle = done ? Math.min(inputs.idleMs, DONE_IDLE_MS) : inputs.idleMs;
    const left = stays
      ? LONGEST_WAIT_MS
      : active.size > 0
        ? Math.min(BUSY_WAIT_MS, inputs.idleMs)
        : idle - (performance.now() - idleFrom);
    if (left <= 0 && active.size === 0) return { kind: 'drained' };
    try {
      const asked = performance.now();
      const waitMs = Math.round(
        Math.min(left, asking === 'first' && !stays ? FIRST_WAIT_MS : LONGEST_WAIT_MS),
      );
      asking = 'again';
      const again = unheard !== null;
      const request: string = unheard ?? randomUUID();
      unheard = request;
      const room = Math.min(verifier?.room() ?? 0, 16);
      const answer = await client.lease(
        {
          max: Math.min(free, 16),
          wait_ms: waitMs,
          request,
          again,
          ...(room > 0 ? { verify: room } : {}),
        },
        signal,
      );
      unheard = null;
      failingFrom = null;
      backOff = 500;
      if (!answer.ok) {
        if (answer.status !== 429)
          return { kind: 'failed', message: `Leasing refused: ${answer.code}: ${answer.message}` };
        await sleep(Math.min(answer.retryAfterMs ?? 1000, 60_000), signal);
        continue;
      }
      done = answer.value.done;
      for (const lease of answer.value.leases) start(lease);
      const receipts = verifier === undefined ? [] : (answer.value.verify ?? []);
      for (const one of receipts) if (verifier !== undefined) follow(verifier.work(one));
      if (answer.value.leases.length + receipts.length > 0) idleFrom = performance.now();
      // a server that answers at once instead of waiting must not be asked in a tight loop
      else if (performance.now() - asked < Math.min(200, waitMs)) await sleep(200, signal);
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof Fault)) throw error;
      failingFrom ??= performance.now();
      const gone = !stays && active.size === 0 && performance.now() - failingFrom > PATIENCE_MS;
      if (!error.retryable || gone) return { kind: 'failed', message: `${error.code}: ${error.message}` };
      log.line(`The server did not answer, asking again in ${backOff} ms`);
      await sleep(backOff, signal);
      backOff = Math.min(backOff * 2, 15_000);
      // being away is not being idle
      idleFrom = performance.now();
    }
  }
  return { kind: 'stopped' };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
