/** What the server keeps: the ledger's keys on a first start. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openSigner } from '../../app/server/store.ts';
import { testDatabase } from '../helpers/database.ts';

it('LED-7: a first start makes the keys for their owner alone and the log says where; a second opens the same', async () => {
  const one = await testDatabase();
  const dataDir = join(mkdtempSync(join(tmpdir(), 'cs-first-')), 'data');
  const said: [string, unknown][] = [];
  const note = (what: Record<string, unknown>, event: string) => said.push([event, what['path']]);
  const log = { info: note, warn: note, error: note };
  const config = {
    databaseUrl: one.url,
    dataDir,
    keys: null,
    logLevel: 'info',
    inherit: () => ({}),
  } as const;
  const path = join(dataDir, 'keys.json');
  const first = await openSigner(config, one.database, 'one.test', log);
  expect(said).toEqual([
    ['keys-created', path],
    ['keys', path],
  ]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const { roots, log: held } = JSON.parse(readFileSync(path, 'utf8'));
  for (const secret of [...Object.values(roots), held.seed])
    expect(JSON.stringify(said)).not.toContain(secret);
  said.length = 0;
  const second = await openSigner(config, one.database, 'two.test', log);
  expect(said).toEqual([['keys', path]]);
  expect([second.vkey, second.logOf('5')]).toEqual([first.vkey, 'one.test/i/5']);
  rmSync(join(dataDir, '..'), { recursive: true });
  await one.drop();
});
