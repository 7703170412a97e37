/**
 * Who is alive. graphile-worker locks jobs by the id of a worker pool and leaves them locked for four
 * hours when its process is killed. So each process holds a session advisory lock per pool id: a
 * lock that is free says that the process is gone, and its jobs are given back.
 */
import type { WorkerEvents } from 'graphile-worker';
import type { Database } from '../../db/client.ts';

/** Class of the lock of one pool id, and the lock that is held between a pool's first job and its own lock. */
const POOL_CLASS = 7_311;
const STARTING = 'pg_advisory_lock(7311, 0)';

/** This process's claim to its pool ids. */
export interface PoolClaim {
  /** Resolves when the pool that was created since is claimed. */
  settled(): Promise<void>;
  /** Resolves when the connection that holds the locks is lost: others take these pools for dead from then on. */
  readonly lost: Promise<void>;
  /** Gives the locks back, so that jobs that are still locked are freed by others at once. */
  release(): Promise<void>;
}

/**
 * Begins a claim before the pool exists: until `settled`, nobody judges who is dead, since a pool
 * may lock its first job before its own lock is taken.
 */
export async function claimPool(database: Database, events: WorkerEvents): Promise<PoolClaim> {
  const client = await database.pool.connect();
  let broken: Error | undefined;
  const lost = new Promise<void>((done) => {
    client.on('error', (error) => {
      // another process may now take our jobs: each has one effect, so that costs time only
      broken = error;
      done();
    });
  });
  await client.query(`select ${STARTING}`);
  const claims: Promise<unknown>[] = [];
  events.on('pool:create', ({ workerPool }) => {
    claims.push(client.query('select pg_advisory_lock($1::int, hashtext($2))', [POOL_CLASS, workerPool.id]));
  });
  let released = false;
  return {
    lost,
    async settled() {
      await Promise.all(claims);
      await client.query('select pg_advisory_unlock(7311, 0)');
    },
    async release() {
      if (released) return;
      released = true;
      await client.query('select pg_advisory_unlock_all()').catch((error: Error) => {
        broken ??= error;
      });
      client.release(broken);
    },
  };
}

/** Gives back the jobs of pools whose process is gone; answers how many pools that were. */
export async function unlockDeadPools(database: Database): Promise<number> {
  return database.transaction(async (tx) => {
    const client = tx.$client;
    const quiet = await client.query<{ got: boolean }>('select pg_try_advisory_xact_lock(7311, 0) as got');
    if (quiet.rows[0]?.got !== true) return 0;
    const { rows } = await client.query<{ id: string }>(
      `select id from (select distinct locked_by as id from graphile_worker._private_jobs where locked_by is not null) held
       where pg_try_advisory_xact_lock($1::int, hashtext(id))`,
      [POOL_CLASS],
    );
    if (rows.length === 0) return 0;
    await client.query('select graphile_worker.force_unlock_workers($1)', [rows.map((row) => row.id)]);
    return rows.length;
  });
}
