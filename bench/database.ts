/** A durable server of its own for a bench: fsync on, as in production. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
