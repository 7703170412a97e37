/** Opens what is recorded beside a server that runs: nothing is made or migrated, and read-only nothing written. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '../../db/client.ts';
import { startEmbedded } from '../../db/embedded.ts';
import { requireSchema } from '../../db/migrate.ts';
import type { DataConfig } from '../config.ts';
import { Refusal } from '../errors.ts';
import { openKeys } from '../signing/keys.ts';
import type { Signer } from '../signing/signer.ts';
import type { Store } from './store.ts';

/** What was opened. */
export interface ReadOnly extends Store {
  readonly signer: Signer;
}

/** Opens database and keys to read: as `openBeside`, on connections that cannot write. */
export function openReadOnly(config: DataConfig): Promise<ReadOnly> {
  return openBeside(config, { readOnly: true });
}

/**
 * Opens database and keys. The embedded Postgres of a server that runs is shared; one that does not
 * run is started and stopped again. Throws `not_found` where nothing was ever recorded, `database_refused`
 * for an older schema, `key_invalid`, and what Postgres does.
 */
export async function openBeside(
  config: DataConfig,
  { readOnly }: { readonly readOnly: boolean },
): Promise<ReadOnly> {
  const folder = join(config.dataDir, 'postgres');
  const keys = join(config.dataDir, 'keys.json');
  if (config.databaseUrl === null && !existsSync(folder))
    throw new Refusal(
      'not_found',
      `nothing is recorded in ${config.dataDir}: give DATABASE_URL or COUNTERSIGN_DATA_DIR`,
    );
  if (config.keys === null && !existsSync(keys))
    throw new Refusal('not_found', `the ledger's keys are not in ${keys}: give them by COUNTERSIGN_KEYS`);
  const { signer } = openKeys({ setting: config.keys ?? undefined, folder: config.dataDir, origin: '' });
  const embedded = config.databaseUrl === null ? await startEmbedded({ folder }) : null;
  try {
    const url = config.databaseUrl ?? embedded?.url() ?? '';
    await requireSchema(url);
    const database = await connect(url, { max: 4, readOnly });
    return {
      database,
      signer,
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
