/**
 * The connection pool. Every connection acts as `countersign_app` where that role exists (LED-5),
 * and a server that could lose acknowledged rows, or a pooler that breaks sessions, is refused.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { DrizzleQueryError } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { Fault, Refusal } from '../app/errors.ts';
import { type Answer, fly, type Statement } from './flight.ts';
import { refuseTransactionPooler } from './pooler.ts';

/** What a transaction is opened and closed with, and what that answered. */
export type { Answer, Statement };

/** The role that the application acts as: it may add to the ledger and never change it. */
export const APP_ROLE = 'countersign_app';

/** A transaction in progress: drizzle over its one connection. Store functions that write take it first. */
export type Tx = NodePgDatabase & { readonly $client: pg.PoolClient };
/** What can read: a transaction, or the pool's `db` for single statements. */
export type Reader = NodePgDatabase & { readonly $client: pg.PoolClient | pg.Pool };

/** The database as everyone but the migrator uses it. */
export interface Database {
  readonly pool: pg.Pool;
  /** Drizzle over the pool, for single statements. */
  readonly db: NodePgDatabase & { readonly $client: pg.Pool };
  /** True only on a server whose owner marked the database as throw-away (tests). */
  readonly throwaway: boolean;
  /** Whether connections act as `countersign_app`; false is the finding `ledger_role_missing`. */
  readonly appRole: boolean;
  /**
   * Runs `fn` in one READ COMMITTED transaction with `synchronous_commit = on`; commits when it
   * resolves, rolls back when it rejects. Inside another one on the same call path it throws
   * `nested_unit_of_work`, since a second connection could wait for the first for ever (case 64).
   * `last` gives closing statements once `fn` resolved: they travel with COMMIT, which the server does not
   * reach when one of them fails. A lost answer to COMMIT is `database_unreachable`: it may have been
   * committed, so look before trying again. `first` travels with BEGIN, and is not reached when that is
   * refused; `fn` gets its answers.
   */
  transaction<T>(
    fn: (tx: Tx, opened: readonly Answer[]) => Promise<T>,
    last?: () => readonly Statement[],
    first?: readonly Statement[],
  ): Promise<T>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** How to connect. */
export interface ConnectOptions {
  /** Most connections at a time. */
  readonly max: number;
  /** Act as `countersign_app` (default true). */
  readonly appRole?: boolean;
  /** Every transaction reads only, by the server's own word (default false). */
  readonly readOnly?: boolean;
  /** Gets what is wrong but not fatal: `ledger_role_missing`, `connection_lost`. */
  readonly warn?: (code: string, detail: string) => void;
}

// synchronous_commit: by session, since the ledger's rows are in no transaction that may commit without it (LED-5)
const SESSION = `set timezone = 'UTC'; set synchronous_commit = on; set lock_timeout = '30s'; set statement_timeout = '120s'; set idle_in_transaction_session_timeout = '60s'`;
const READ_ONLY = 'set default_transaction_read_only = on';
const BEGIN: Statement = { name: 'begin', text: 'begin isolation level read committed', values: [] };
const COMMIT: Statement = { name: 'commit', text: 'commit', values: [] };

const inTransaction = new AsyncLocalStorage<{ open: boolean }>();
const transactions = new WeakMap<pg.PoolClient, Tx>();

/**
 * Connects to any Postgres ≥ 14. Throws `database_unreachable` (retryable) or `database_refused`:
 * a server older than 14, `fsync` or `full_page_writes` off where the database is not marked as
 * throw-away, or a pooler in transaction mode.
 */
export async function connect(url: string, options: ConnectOptions): Promise<Database> {
  const warn = options.warn ?? (() => {});
  const wantRole = options.appRole ?? true;
  let roleMissing = false;
  const setUp = async (client: pg.ClientBase) => {
    await client.query(options.readOnly === true ? `${SESSION}; ${READ_ONLY}` : SESSION);
    if (!wantRole) return;
    try {
      const found = await client.query(
        `select set_config('role', rolname, false) from pg_catalog.pg_roles where rolname = $1`,
        [APP_ROLE],
      );
      if (found.rowCount === 0) roleMissing = true;
    } catch {
      roleMissing = true; // it exists, and this login may not act as it
    }
  };
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max,
    connectionTimeoutMillis: 15_000,
    idleTimeoutMillis: 30_000,
    application_name: 'countersign',
    keepAlive: true,
    // statements that do not wait for each other's answer go out together: fewer round trips per unit
    pipeline: true,
    onConnect: setUp,
  } as pg.PoolConfig);
  pool.on('error', (error) => warn('connection_lost', error.message));
  // a connection that breaks while in use rejects its statement; the event itself must not end the process
  pool.on('connect', (client) => client.on('error', () => {}));
  try {
    const throwaway = await probe(pool, url);
    if (roleMissing) {
      warn(
        'ledger_role_missing',
        `the role ${APP_ROLE} cannot be used: the ledger is guarded by its triggers alone`,
      );
    }
    const db = drizzle({ client: pool });
    return {
      pool,
      db,
      throwaway,
      appRole: wantRole && !roleMissing,
      transaction: (fn, last, first) => transact(pool, fn, last, first),
      close: () => pool.end(),
    };
  } catch (error) {
    await pool.end();
    if (error instanceof Fault) throw error;
    throw new Fault('database_unreachable', `Postgres does not answer: ${(error as Error).message}`, {
      cause: error,
      retryable: true,
    });
  }
}

async function probe(pool: pg.Pool, url: string): Promise<boolean> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    const { rows } = await client.query<{
      version: number;
      fsync: string;
      pages: string;
      pid: number;
      throwaway: boolean;
    }>(
      `select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync,
              current_setting('full_page_writes') as pages, pg_backend_pid() as pid,
              exists (select from pg_catalog.pg_db_role_setting s join pg_catalog.pg_database d on d.oid = s.setdatabase
                      where d.datname = current_database() and s.setrole = 0
                        and 'countersign.throwaway=on' = any (s.setconfig)) as throwaway`,
    );
    const server = rows[0];
    if (server === undefined) throw new Fault('bug', 'a probe without an answer');
    if (server.version < 140_000) throw new Fault('database_refused', 'Postgres 14 or newer is needed');
    if (!server.throwaway && (server.fsync !== 'on' || server.pages !== 'on')) {
      throw new Fault(
        'database_refused',
        'this server runs with fsync or full_page_writes off: a crash would lose rows that were acknowledged',
      );
    }
    const told = (client as unknown as { processID: number | null }).processID;
    if (told !== server.pid) await refuseTransactionPooler(url, client);
    return server.throwaway;
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}

async function transact<T>(
  pool: pg.Pool,
  fn: (tx: Tx, opened: readonly Answer[]) => Promise<T>,
  last: () => readonly Statement[] = () => [],
  first: readonly Statement[] = [],
): Promise<T> {
  if (inTransaction.getStore()?.open === true) {
    throw new Fault('nested_unit_of_work', 'a transaction was opened inside another one');
  }
  const client = await pool.connect().catch((cause: Error) => {
    throw new Fault('database_unreachable', 'no connection to Postgres can be had', {
      cause,
      retryable: true,
    });
  });
  const tx = transactionOf(client);
  const unit = { open: true };
  let broken: Error | undefined;
  const onError = (error: Error) => {
    broken = error;
  };
  client.on('error', onError);
  try {
    const [, ...opened] = await fly(client, [BEGIN, ...first]);
    const result = await inTransaction.run(unit, () => fn(tx, opened));
    unit.open = false;
    await committed(fly(client, [...last(), COMMIT]));
    return result;
  } catch (error) {
    unit.open = false;
    await client.query('rollback').catch((lost: Error) => {
      broken ??= lost;
    });
    if (broken === undefined || error instanceof Fault || error instanceof Refusal)
      throw withoutParameters(error);
    throw new Fault('database_unreachable', 'the connection was lost: nothing was committed', {
      cause: withoutParameters(error),
      retryable: true,
    });
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/** Drizzle's error quotes every parameter in its message; Postgres's own, its cause, quotes none. */
function withoutParameters(error: unknown): unknown {
  return error instanceof DrizzleQueryError && error.cause instanceof Error ? error.cause : error;
}

/** Tells a rollback from a commit whose answer was lost: once COMMIT was sent, only the server's own words prove a rollback. */
async function committed(committing: Promise<readonly Answer[]>): Promise<void> {
  let ended: Answer | undefined;
  try {
    ended = (await committing).at(-1);
  } catch (cause) {
    if (isAnswer(cause)) throw cause;
    throw new Fault('database_unreachable', 'the answer to COMMIT was lost: it may have been committed', {
      cause,
      retryable: true,
    });
  }
  // a transaction that a swallowed error aborted answers COMMIT with ROLLBACK
  if (ended?.command !== 'COMMIT') {
    throw new Fault('bug', 'a failed statement was swallowed: the transaction was rolled back');
  }
}

/** Whether the server refused a statement; its farewells (57P, 08) tell nothing of a COMMIT under way. */
function isAnswer(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^(57P|08)/.test(error.code ?? '');
}

/** Drizzle over one pooled connection, made once a connection. */
function transactionOf(client: pg.PoolClient): Tx {
  const known = transactions.get(client);
  if (known !== undefined) return known;
  const made = drizzle({ client }) as Tx;
  transactions.set(client, made);
  return made;
}
