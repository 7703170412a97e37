/**
 * Who waits in this process for work of a repository (LSE-1's long poll, by LISTEN/NOTIFY or by what
 * this process did itself). Nothing depends on it: who waits looks again by itself after a while.
 */
import type { Database } from '../../db/client.ts';

/** The channel of the queue; a message is a repository's id (case 72). */
export const QUEUE_CHANNEL = 'countersign_queue';

const waiting = new WeakMap<Database, Map<string, Set<() => void>>>();
const news = new WeakMap<Database, Map<string, number>>();

/** A number that rises with each {@link wake} of the repository, whether anybody waited or not. */
export function newsOf(database: Database, repositoryId: string): number {
  return news.get(database)?.get(repositoryId) ?? 0;
}

/** Under which the runners of a resident pool wait: its place is no repository. */
export const poolPlace = (pool: string) => `pool ${pool}`;
/** Most runners of one pool that one message wakes: each looks, and a message stands for a few tickets. */
const POOL_WAKES = 16;

/**
 * Wakes those who wait for work of a repository, longest first, at most `most` of them; then runners of
 * resident pools, which find out with one look whether it is theirs.
 */
export function wake(database: Database, repositoryId: string, most = Number.POSITIVE_INFINITY): void {
  const told = news.get(database) ?? new Map<string, number>();
  news.set(database, told.set(repositoryId, newsOf(database, repositoryId) + 1));
  const mine = waiting.get(database);
  if (mine === undefined) return;
  let left = most;
  for (const one of [...(mine.get(repositoryId) ?? [])]) {
    if (left-- <= 0) return;
    one();
  }
  for (const [place, those] of [...mine]) {
    if (!place.startsWith('pool ')) continue;
    for (const one of [...those].slice(0, Math.max(0, Math.min(left, POOL_WAKES)))) one();
  }
}

/** Resolves when somebody wakes those who wait for the repository, or the pool's place, after `ms`, or when the signal says stop. */
export function untilWoken(
  database: Database,
  place: string,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const mine = waiting.get(database) ?? new Map<string, Set<() => void>>();
  waiting.set(database, mine);
  const those = mine.get(place) ?? new Set();
  mine.set(place, those);
  return new Promise((done) => {
    const stop = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      those.delete(stop);
      if (those.size === 0 && mine.get(place) === those) mine.delete(place);
      done();
    };
    const timer = setTimeout(stop, ms);
    those.add(stop);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop);
  });
}
