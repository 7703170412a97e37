/** A database of its own for a test file, cloned from the migrated template in well under 100 ms. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { connect, type Database } from '../../db/client.ts';

/** A cloned database, marked as throw-away so that its clock can move. */
export interface TestDatabase {
  /** Connection string as the owner of the tables (a superuser on the embedded server). */
  readonly url: string;
  /** The product's own pool on it. */
  readonly database: Database;
  /** Moves product time (`cs_now()`) forward by so many milliseconds, or back by a negative number. */
  moveClock(ms: number): Promise<void>;
  /** Closes the pool and drops the database; throws when a connection was left open by somebody. */
  drop(): Promise<void>;
}

/** Options of `testDatabase`. */
export interface TestDatabaseOptions {
  /** Size of the product's pool (default 8). */
  readonly max?: number;
  /** Do not clone the template: an empty database, for tests of migrations. */
  readonly empty?: boolean;
  /** False: leave the throw-away mark off, as in production. */
  readonly throwaway?: boolean;
}

/** Makes a database; call it in `beforeAll` and `drop` in `afterAll`. Names are unique, so files run side by side. */
export async function testDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { url: adminUrl, name } = await createDatabase(options);
  const url = withDatabase(adminUrl, name);
  const database = await connect(url, { max: options.max ?? 8 });
  // kept, because a connection costs ten times the statement that moves the clock
  const owner = new pg.Pool({ connectionString: url, max: 1, application_name: 'test clock' });
  owner.on('error', () => {});
  return {
    url,
    database,
    async moveClock(ms) {
      await owner.query(
        `insert into clock_offset (ahead) values ($1 * interval '1 millisecond')
         on conflict (one) do update set ahead = clock_offset.ahead + excluded.ahead`,
        [ms],
      );
    },
    async drop() {
      await owner.end();
      await database.close();
      await dropDatabase(adminUrl, name);
    },
  };
}

async function createDatabase(options: TestDatabaseOptions): Promise<{ url: string; name: string }> {
  const url = inject('postgresUrl');
  const name = `t_${randomBytes(8).toString('hex')}`;
  await asOwner(url, async (client) => {
    if (options.empty === true) await client.query(`create database ${name}`);
    else {
      // file_copy needs Postgres 15, and is several times faster for a small template
      const { rows } = await client.query<{ v: number }>(
        `select current_setting('server_version_num')::int as v`,
      );
      const strategy = (rows[0]?.v ?? 0) >= 150_000 ? 'strategy file_copy' : '';
      await client.query(`create database ${name} template ${inject('postgresTemplate')} ${strategy}`);
    }
    if (options.throwaway !== false)
      await client.query(`alter database ${name} set countersign.throwaway = 'on'`);
  });
  return { url, name };
}

async function dropDatabase(url: string, name: string): Promise<void> {
  await asOwner(url, async (client) => {
    // a backend ends a moment after its client: give it that moment, then it is a leak
    let left: { application_name: string; query: string }[] = [];
    for (const until = Date.now() + 60_000; Date.now() < until; ) {
      ({ rows: left } = await client.query<{ application_name: string; query: string }>(
        `select application_name, query from pg_stat_activity where datname = $1`,
        [name],
      ));
      if (left.length === 0) break;
      await new Promise((done) => setTimeout(done, 20));
    }
    await client.query(`drop database if exists ${name} with (force)`);
    if (left.length > 0) {
      const whose = left.map((one) => `${one.application_name}: ${one.query.slice(0, 80)}`).join('\n  ');
      throw new Error(`${left.length} connection(s) left open at the end of the test file:\n  ${whose}`);
    }
  });
}

/** Runs `fn` on one connection of the URL's own role (the owner), closed afterwards. */
export async function asOwner<T>(url: string, fn: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'test owner' });
  await client.connect();
  try {
    return await fn(client);
  } finally {
    await client.end();
  }
}

function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}
