/** Opens what the server keeps: Postgres, embedded or by URL, brought to this version's schema, and the ledger's keys. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type Database } from '../../db/client.ts';
import { type Embedded, startEmbedded } from '../../db/embedded.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import type { DataConfig } from '../config.ts';
import { Fault } from '../errors.ts';
import type { Log } from '../flow/deps.ts';
import { openKeys } from '../signing/keys.ts';
import type { Signer } from '../signing/signer.ts';
import { openFolder } from './folder.ts';

/** Connections of the pool: more did not help on any machine that was measured (performance.md). */
const CONNECTIONS = 10;

/** An opened store. */
export interface Store {
  readonly database: Database;
  readonly close: () => Promise<void>;
}

/** Where Postgres is: the URL given, or an embedded server that ends with this process. Refuses to share a running embedded one. */
export async function openPostgres(
  config: DataConfig,
  log: Log,
): Promise<{ readonly url: string; readonly embedded: Embedded | null }> {
  if (config.databaseUrl !== null) return { url: config.databaseUrl, embedded: null };
  openFolder(config.dataDir);
  const embedded = await startEmbedded({ folder: join(config.dataDir, 'postgres') });
  if (embedded.reused) {
    throw new Fault(
      'embedded_failed',
      `another server uses ${embedded.folder}: an embedded database serves one process, replicas need DATABASE_URL`,
    );
  }
  log.info({ folder: embedded.folder }, 'embedded-postgres');
  return { url: embedded.url(), embedded };
}

/** Opens and migrates the database. */
export async function openStore(config: DataConfig, log: Log): Promise<Store> {
  const { url, embedded } = await openPostgres(config, log);
  try {
    const { applied, role } = await migrateDatabase(url);
    log.info({ applied, role }, 'migrate');
    const database = await connect(url, {
      max: CONNECTIONS,
      warn: (code, detail) => log.warn({ code, detail }, 'database'),
    });
    return {
      database,
      close: async () => {
        await database.close();
        await embedded?.stop();
      },
    };
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

/** Opens the ledger's keys, making them on a first start (LED-7). Throws `key_invalid`: a ledger that exists is never continued under new keys. */
export async function openSigner(
  config: DataConfig,
  database: Database,
  origin: string,
  log: Log,
): Promise<Signer> {
  const path = join(config.dataDir, 'keys.json');
  if (config.keys === null && !existsSync(path)) {
    const { rows } = await database.pool.query<{ found: boolean }>(
      'select exists (select from ledger_row) as found',
    );
    if (rows[0]?.found === true) {
      throw new Fault(
        'key_invalid',
        `the database holds a ledger and its keys are not in ${path}: give them by COUNTERSIGN_KEYS`,
      );
    }
  }
  if (config.keys === null) openFolder(config.dataDir);
  const opened = openKeys({ setting: config.keys ?? undefined, folder: config.dataDir, origin });
  if (opened.created) log.warn({ path: opened.path }, 'keys-created');
  log.info({ path: opened.path ?? 'COUNTERSIGN_KEYS', kid: opened.signer.kid }, 'keys');
  return opened.signer;
}
