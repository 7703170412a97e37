/**
 * Named locks that may be held over a network call: session advisory locks on one connection of the
 * pool, shared by all holders of this process and given back when the last of them is done. A
 * process that dies loses its session and with it the locks, at once. Within the process holders
 * queue without a statement, since a session would grant itself the same lock twice.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { Fault } from '../../app/errors.ts';
import type { Database } from '../client.ts';

const TRY = 'select pg_try_advisory_lock(hashtextextended($1, 7302)) as got';
const FREE = 'select pg_advisory_unlock(hashtextextended($1, 7302))';
const POLL_MS = 100;

/** One connection and how many hold locks on it; `lost` once it broke. */
interface Session {
  readonly client: Promise<pg.PoolClient>;
  count: number;
  lost: Error | undefined;
}

interface Holders {
  session: Session | null;
  readonly queues: Map<string, Promise<void>>;
}

const holders = new WeakMap<Database, Holders>();

/**
 * Runs `fn` while no other process or task runs one under the same name. Throws the retryable fault
 * `lock_busy` when another process holds it for longer than `waitMs`.
 */
export async function withLock<T>(
  database: Database,
  name: string,
  waitMs: number,
  fn: () => Promise<T>,
): Promise<T> {
  const mine = holders.get(database) ?? { session: null, queues: new Map<string, Promise<void>>() };
  holders.set(database, mine);
  const before = mine.queues.get(name) ?? Promise.resolve();
  let done: () => void = () => {};
  const turn = new Promise<void>((resolve) => {
    done = resolve;
  });
  const last = before.then(() => turn);
  mine.queues.set(name, last);
  await before;
  try {
    return await holding(database, mine, name, waitMs, fn);
  } finally {
    done();
    if (mine.queues.get(name) === last) mine.queues.delete(name);
  }
}

async function holding<T>(
  database: Database,
  mine: Holders,
  name: string,
  waitMs: number,
  fn: () => Promise<T>,
): Promise<T> {
  mine.session ??= { client: database.pool.connect(), count: 0, lost: undefined };
  const session = mine.session;
  session.count += 1;
  const onError = (error: Error) => {
    session.lost = error;
    if (mine.session === session) mine.session = null; // who comes now gets a connection that works
  };
  let client: pg.PoolClient | undefined;
  try {
    client = await session.client;
    client.on('error', onError);
    for (let waited = 0; ; waited += POLL_MS) {
      const { rows } = await client.query<{ got: boolean }>(TRY, [name]);
      if (rows[0]?.got === true) break;
      if (waited >= waitMs)
        throw new Fault('lock_busy', 'another process is at it for too long', { retryable: true });
      await sleep(POLL_MS);
    }
    try {
      return await fn();
    } finally {
      // a session that is gone has freed it already
      await client.query(FREE, [name]).catch(onError);
    }
  } finally {
    client?.off('error', onError);
    session.count -= 1;
    if (session.count === 0) {
      if (mine.session === session) mine.session = null;
      client?.release(session.lost);
    }
  }
}
