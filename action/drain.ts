/** The drain (ACT-5): lease, work up to `parallel` at once, lease again until nothing is left for `idle_ms`. */
import { Fault } from '../app/errors.ts';
import { type WorkDeps, workLease } from './lease-work.ts';
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

/** Leases and works until nothing is left, the signal says stop, or the server is gone; then waits for what runs. */
export async function drain(deps: WorkDeps): Promise<DrainEnd> {
  const active = new Set<Promise<void>>();
  try {
    return await leaseAll(deps, active);
  } finally {
    await Promise.all(active);
  }
}

async function leaseAll(deps: WorkDeps, active: Set<Promise<void>>): Promise<DrainEnd> {
  const { client, inputs, log, signal } = deps;
  let idleFrom = performance.now();
  let failingFrom: number | null = null;
  let done = false;
  let asking: 'first' | 'again' = 'first';
  let backOff = 500;
  while (!signal.aborted) {
    const free = inputs.parallel - active.size;
    if (free <= 0) {
      await Promise.race([...active, aborted(signal)]);
      idleFrom = performance.now();
      continue;
    }
    const idle = done ? Math.min(inputs.idleMs, DONE_IDLE_MS) : inputs.idleMs;
    const left =
      active.size > 0 ? Math.min(BUSY_WAIT_MS, inputs.idleMs) : idle - (performance.now() - idleFrom);
    if (left <= 0 && active.size === 0) return { kind: 'drained' };
    try {
      const asked = performance.now();
      const waitMs = Math.round(Math.min(left, asking === 'first' ? FIRST_WAIT_MS : LONGEST_WAIT_MS));
      asking = 'again';
      const answer = await client.lease({ max: Math.min(free, 16), wait_ms: waitMs }, signal);
      failingFrom = null;
      backOff = 500;
      if (!answer.ok) {
        if (answer.status !== 429)
          return { kind: 'failed', message: `Leasing refused: ${answer.code}: ${answer.message}` };
        await sleep(Math.min(answer.retryAfterMs ?? 1000, 60_000), signal);
        continue;
      }
      done = answer.value.done;
      for (const lease of answer.value.leases) {
        const work: Promise<void> = workLease(deps, lease).finally(() => {
          active.delete(work);
          idleFrom = performance.now();
          asking = 'first';
        });
        active.add(work);
      }
      if (answer.value.leases.length > 0) idleFrom = performance.now();
      // a server that answers at once instead of waiting must not be asked in a tight loop
      else if (performance.now() - asked < Math.min(200, waitMs)) await sleep(200, signal);
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof Fault)) throw error;
      failingFrom ??= performance.now();
      if (!error.retryable || (active.size === 0 && performance.now() - failingFrom > PATIENCE_MS))
        return { kind: 'failed', message: `${error.code}: ${error.message}` };
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
