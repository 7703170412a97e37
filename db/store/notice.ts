/**
 * Notices that a run has changed, by LISTEN and NOTIFY: ids only, never a fact (LSE-8). One may be lost
 * with its connection, so who waits looks again by itself after a while.
 */
import type { Database, Reader } from '../client.ts';
import { type Listening, listenTo } from '../listen.ts';

const CHANNEL = 'countersign_run';

/** Tells whoever watches the run, with the commit. Only where jobs are queued as well: every NOTIFY takes its turn at commit. */
export async function notifyRun(tx: Reader, runId: string): Promise<void> {
  await tx.$client.query('select pg_notify($1, $2)', [CHANNEL, runId]);
}

/** Watches one run from when it was made; `close` it. */
export interface RunWatch {
  /** Resolves at a notice since the last call, after `ms`, or when `signal` is aborted. */
  next(ms: number, signal: AbortSignal): Promise<void>;
  /** Whether notices are being heard; false: only time wakes. */
  heard(): boolean;
  close(): Promise<void>;
}

interface Hub {
  /** While somebody watches. */
  listening: Listening | null;
  readonly watches: Map<string, Set<() => void>>;
}

const hubs = new WeakMap<Database, Hub>();

/** Begins to watch. Never fails: while no connection listens only time wakes. */
export function watchRun(database: Database, runId: string): RunWatch {
  const hub = hubs.get(database) ?? { listening: null, watches: new Map() };
  hubs.set(database, hub);
  let told = false;
  let wake: (() => void) | null = null;
  const notice = () => {
    told = true;
    wake?.();
  };
  const of = hub.watches.get(runId) ?? new Set();
  of.add(notice);
  hub.watches.set(runId, of);
  hub.listening ??= listenTo(database, CHANNEL, (run) => {
    for (const one of hub.watches.get(run) ?? []) one();
  });
  return {
    heard: () => hub.listening?.heard() ?? false,
    async next(ms, signal) {
      if (!told && !signal.aborted)
        await sleep(ms, signal, (done) => {
          wake = done;
        });
      wake = null;
      told = false;
    },
    async close() {
      of.delete(notice);
      if (of.size === 0 && hub.watches.get(runId) === of) hub.watches.delete(runId);
      if (hub.watches.size > 0) return;
      const { listening } = hub;
      hub.listening = null;
      await listening?.close();
    },
  };
}

/** Waits for `ms`, for the signal, or for whoever calls what is handed to `wakened`. */
function sleep(ms: number, signal: AbortSignal, wakened: (wake: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    wakened(done);
  });
}
