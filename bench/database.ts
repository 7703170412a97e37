/** A durable server of its own for a bench: fsync on, as in production. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { connect, type Database } from '../db/client.ts';
import { startEmbedded } from '../db/embedded.ts';
import { migrateDatabase } from '../db/migrate.ts';

/** A migrated database on a durable server. */
export interface BenchDatabase {
  readonly url: string;
  readonly database: Database;
  /** The server's version. */
  readonly version: string;
}

/** Runs `fn` with a fresh durable server and takes it away afterwards. */
export async function withBenchDatabase<T>(
  max: number,
  fn: (bench: BenchDatabase) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
  const server = await startEmbedded({ folder, settings: { shared_buffers: '512MB', max_wal_size: '4GB' } });
  try {
    await migrateDatabase(server.url());
    const database = await connect(server.url(), { max });
    try {
      const { rows } = await database.pool.query<{ v: string; fsync: string }>(
        `select current_setting('server_version') as v, current_setting('fsync') as fsync`,
      );
      if (rows[0]?.fsync !== 'on') throw new Error('a timed server must be durable');
      return await fn({ url: server.url(), database, version: rows[0].v });
    } finally {
      await database.close();
    }
  } finally {
    await server.stop();
    rmSync(server.folder, { recursive: true, force: true });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The same with `n` migrated databases on the one server, so that they can take turns. */
export async function withBenchDatabases<T>(
  n: number,
  max: number,
  fn: (benches: readonly BenchDatabase[]) => Promise<T>,
): Promise<T> {
  return withBenchDatabase(max, async (first) => {
    const benches: BenchDatabase[] = [first];
    const client = new pg.Client({ connectionString: first.url });
    await client.connect();
    try {
      for (let i = 1; i < n; i++) {
        const url = new URL(first.url);
        url.pathname = `/bench_${i}`;
        await client.query(`create database bench_${i}`);
        await migrateDatabase(url.href);
        benches.push({ url: url.href, database: await connect(url.href, { max }), version: first.version });
      }
      return await fn(benches);
    } finally {
      await client.end();
      for (const bench of benches.slice(1)) await bench.database.close();
    }
  });
}
