/** Telling a pooler that breaks sessions from one that keeps them. */
import pg from 'pg';
import { Fault } from '../app/errors.ts';

/**
 * Behind a pooler the process id that the connection was told is not the server's. A pooler in
 * session mode is fine; one in transaction mode gives us whatever server connection is free, so that
 * sooner or later one client finds itself on two: advisory locks and SET ROLE would be lost.
 */
export async function refuseTransactionPooler(url: string, client: pg.ClientBase): Promise<void> {
  const refused = new Fault(
    'database_refused',
    'DATABASE_URL leads to a pooler in transaction mode: use session mode or the server itself',
  );
  // a connection of its own: the pool may have no second one to give
  const other = new pg.Client({ connectionString: url, application_name: 'countersign' });
  other.on('error', () => {});
  await other.connect();
  const seen = new Map<pg.ClientBase, number>();
  const look = async (one: pg.ClientBase) => {
    // no answer: the pooler has no second server connection while a transaction holds the first
    const { rows } = await within(
      5_000,
      one.query<{ pid: number }>('select pg_backend_pid() as pid'),
      refused,
    );
    const pid = rows[0]?.pid ?? 0;
    if ((seen.get(one) ?? pid) !== pid) throw refused;
    seen.set(one, pid);
  };
  try {
    // each in turn holds a transaction while both are looked at: whichever way servers are handed out
    for (const holder of [other, client, other, client]) {
      await within(5_000, holder.query('begin'), refused);
      await look(client);
      await look(other);
      await holder.query('rollback');
    }
  } finally {
    // not awaited: behind a pooler that is stuck the farewell would be too
    other.end().catch(() => {});
  }
}

async function within<T>(ms: number, promise: Promise<T>, late: Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late), ms);
  });
  promise.catch(() => {});
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}
