/** A database opened to look at it: nothing is made or migrated, and what is missing is named. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { DataConfig } from '../../app/config.ts';
import { openReadOnly } from '../../app/server/read-only.ts';
import { newKeys } from '../../app/signing/keys.ts';
import { testDatabase } from '../helpers/database.ts';

const folder = mkdtempSync(join(tmpdir(), 'cs-read-only-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const config = (more: Partial<DataConfig>): DataConfig => ({
  databaseUrl: null,
  dataDir: folder,
  keys: JSON.stringify(newKeys('log.test')),
  logLevel: 'silent',
  inherit: () => ({}),
  ...more,
});

describe('OPS-9: open to read only', () => {
  it('where nothing was ever recorded, or no keys are, says so and makes neither', async () => {
    await expect(openReadOnly(config({}))).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('DATABASE_URL or COUNTERSIGN_DATA_DIR'),
    });
    const none = config({ databaseUrl: 'postgres://a:b@127.0.0.1:1/x', keys: null });
    await expect(openReadOnly(none)).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('COUNTERSIGN_KEYS'),
    });
    writeFileSync(join(folder, 'short.json'), '{}');
    const wrong = config({ databaseUrl: 'postgres://a:b@127.0.0.1:1/x', keys: join(folder, 'short.json') });
    await expect(openReadOnly(wrong)).rejects.toMatchObject({ code: 'key_invalid' });
  });

  it('an older schema is refused, never migrated', async () => {
    const empty = await testDatabase({ empty: true });
    await expect(openReadOnly(config({ databaseUrl: empty.url }))).rejects.toMatchObject({
      code: 'database_refused',
      message: expect.stringMatching(/lacks \d+ of \d+ migrations/),
    });
    const { rows } = await empty.database.pool.query(`select 1 from pg_tables where schemaname = 'public'`);
    expect(rows).toEqual([]);
    await empty.drop();
  });

  it('reads, and cannot write, in a transaction or out of one', async () => {
    const db = await testDatabase();
    const opened = await openReadOnly(config({ databaseUrl: db.url }));
    expect((await opened.database.pool.query('select count(*)::int as n from run')).rows).toEqual([{ n: 0 }]);
    const insert = `insert into policy (hash, bytes, stored_at) values ('x', '', now())`;
    await expect(opened.database.pool.query(insert)).rejects.toMatchObject({ code: '25006' });
    const inside = opened.database.transaction(async (tx) => {
      await tx.execute(insert);
    });
    await expect(inside).rejects.toMatchObject({ code: '25006' });
    await opened.close();
    await db.drop();
  });
});
