/**
 * Migrations: drizzle's, then the job queue's, then the grants, under one session advisory lock, so
 * that any number of processes may start at once (OPS-4). They run as the role of the URL.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { Logger, runMigrations } from 'graphile-worker';
import pg from 'pg';
import { Fault } from '../app/errors.ts';

/** Any constant of our own: every process of this product takes the same session lock. */
const LOCK = 'select pg_advisory_lock(4027301167)';

/** The folder of numbered SQL, from the sources and from dist/ alike: beside the nearest package.json. */
export function migrationsFolder(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const found = join(folder, 'db', 'migrations');
    if (existsSync(join(folder, 'package.json')) && existsSync(join(found, 'meta', '_journal.json')))
      return found;
    if (folder === dirname(folder))
      throw new Fault('bug', 'the folder db/migrations is missing from this installation');
  }
}

/** What a migration run found and did. */
export interface Migrated {
  /** Number of migrations of ours that were applied by this call. */
  readonly applied: number;
  /** Whether `countersign_app` exists; without the right to create it the triggers alone guard the ledger. */
  readonly role: boolean;
}

/**
 * Brings the database to this version's schema. Throws `schema_newer` when a newer version of the
 * app made a breaking change there, `database_unreachable` when the server does not answer.
 */
export async function migrateDatabase(url: string): Promise<Migrated> {
  // two connections at least: the lock holds one while the queue's migrations take another
  const pool = new pg.Pool({
    connectionString: url,
    max: 2,
    application_name: 'countersign migrate',
    connectionTimeoutMillis: 15_000,
  });
  // the statement that was running rejects as well
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  try {
    const client = await pool.connect().catch((cause: Error) => {
      throw new Fault('database_unreachable', `Postgres does not answer: ${cause.message}`, {
        cause,
        retryable: true,
      });
    });
    try {
      await client.query(LOCK);
      await refuseNewerSchema(client);
      const before = await appliedCount(client);
      await migrate(drizzle({ client }), { migrationsFolder: migrationsFolder() });
      await runMigrations({ pgPool: pool, logger: quiet });
      const { rows } = await client.query<{ granted: boolean }>('select cs_grant() as granted');
      return { applied: (await appliedCount(client)) - before, role: rows[0]?.granted === true };
    } finally {
      client.release(true); // closing the session gives the advisory lock back, whatever happened
    }
  } finally {
    await pool.end();
  }
}

/**
 * Refuses a database that is not at this version's schema, and changes nothing. Throws `database_refused`
 * for an older one, `schema_newer`, `database_unreachable`.
 */
export async function requireSchema(url: string): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'countersign',
    connectionTimeoutMillis: 15_000,
  });
  client.on('error', () => {});
  try {
    await client.connect().catch((cause: Error) => {
      throw new Fault('database_unreachable', `Postgres does not answer: ${cause.message}`, {
        cause,
        retryable: true,
      });
    });
    await refuseNewerSchema(client);
    const [applied, own] = [await appliedCount(client), ownTags().length];
    if (applied < own)
      throw new Fault(
        'database_refused',
        `the database lacks ${own - applied} of ${own} migrations: start this version once, or run countersign migrate`,
      );
  } finally {
    await client.end();
  }
}

function ownTags(): string[] {
  const journal = JSON.parse(readFileSync(join(migrationsFolder(), 'meta', '_journal.json'), 'utf8')) as {
    entries: { tag: string }[];
  };
  return journal.entries.map((entry) => entry.tag);
}

/** A migration that an older app cannot live with writes its tag to `schema_break`; a tag that we do not know is newer than us. */
async function refuseNewerSchema(client: pg.ClientBase): Promise<void> {
  const known = new Set(ownTags());
  const exists = await client.query<{ found: boolean }>(
    `select to_regclass('public.schema_break') is not null as found`,
  );
  if (exists.rows[0]?.found !== true) return;
  const { rows } = await client.query<{ tag: string }>('select tag from public.schema_break order by tag');
  const newer = rows.find((row) => !known.has(row.tag));
  if (newer !== undefined) {
    throw new Fault(
      'schema_newer',
      `the database was changed by a newer version (${newer.tag}): start that version, or a newer one`,
    );
  }
}

async function appliedCount(client: pg.ClientBase): Promise<number> {
  const exists = await client.query<{ found: boolean }>(
    `select to_regclass('drizzle.__drizzle_migrations') is not null as found`,
  );
  if (exists.rows[0]?.found !== true) return 0;
  const { rows } = await client.query<{ n: number }>(
    'select count(*)::int as n from drizzle.__drizzle_migrations',
  );
  return rows[0]?.n ?? 0;
}

const quiet = new Logger(() => () => {});
