/** A channel of Postgres that is listened to for as long as the process runs (LSE-1, LSE-8): ids only, never facts (case 72). */
import type pg from 'pg';
import type { Database } from './client.ts';

/** Something that listens. */
export interface Listening {
  /** Whether it hears now; false while it connects again. */
  heard(): boolean;
  /** Stops and gives the connection back. */
  close(): Promise<void>;
}

const FIRST_MS = 250;
const LONGEST_MS = 15_000;

/**
 * Listens on one connection of the pool, and again on another when that one breaks. Never fails: what is
 * missed meanwhile is missed, so whoever waits also looks by itself.
 */
export function listenTo(database: Database, channel: string, hear: (payload: string) => void): Listening {
  let client: pg.PoolClient | null = null;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  const connect = async (wait: number): Promise<void> => {
    const again = () => {
      if (closed) return;
      timer = setTimeout(() => {
        connecting = connect(Math.min(wait * 2, LONGEST_MS));
      }, wait);
      timer.unref();
    };
    let made: pg.PoolClient | undefined;
    try {
      made = await database.pool.connect();
      const mine = made;
      mine.on('notification', (notice) => {
        if (notice.channel === channel) hear(notice.payload ?? '');
      });
      mine.once('error', (error) => {
        if (client !== mine) return;
        client = null;
        mine.release(error);
        wait = FIRST_MS;
        again();
      });
      await mine.query(`listen ${channel}`);
      client = mine;
    } catch (error) {
      made?.release(error as Error);
      again();
    }
  };
  let connecting = connect(FIRST_MS);
  return {
    heard: () => client !== null,
    async close() {
      closed = true;
      clearTimeout(timer);
      await connecting;
      clearTimeout(timer);
      // closed, not reused: its channel and its handlers go with it
      client?.release(true);
      client = null;
    },
  };
}
