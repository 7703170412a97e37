/** `countersign settings` as people call it: a process beside a database that others use. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newKeys } from '../../app/signing/keys.ts';
import { upsertInstallation } from '../../db/store/installation.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { programFile } from '../helpers/process.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'cs-settings-'));
const file = join(folder, 'keys.json');
let db: TestDatabase;

beforeAll(async () => {
  db = await testDatabase();
  writeFileSync(file, JSON.stringify(newKeys('settings.test')), { mode: 0o600 });
  await db.database.transaction((tx) =>
    upsertInstallation(tx, { id: '42', accountId: '1', accountLogin: 'acme', status: 'active' }),
  );
});
afterAll(async () => {
  await db.drop();
  rmSync(folder, { recursive: true, force: true });
});

function countersign(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    DATABASE_URL: db.url,
    COUNTERSIGN_DATA_DIR: folder,
    COUNTERSIGN_KEYS: file,
  };
  return new Promise((done) => {
    execFile(process.execPath, [programFile('cli'), ...args], { cwd: root, env }, (error, out, err) =>
      done({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });
}

test('POL-2, CTL-5: set, get, list, unset and check, with what was wrong and what is accepted', async () => {
  const why = ['--installation', '42', '--reason', 'a larger contract', '--by', 'olga'];
  expect(await countersign('settings', 'set', 'slots.openai', '16', ...why)).toMatchObject({
    code: 0,
    out: '42  slots.openai = 16, recorded in 1 chain(s)\n',
  });
  expect((await countersign('settings', 'set', 'slots.openai', '16', ...why)).out).toContain(
    'nothing was changed',
  );
  expect((await countersign('settings', 'set', 'kill', 'on', ...why)).out).toContain(
    '0 lease(s) were revoked',
  );
  expect((await countersign('settings', 'unset', 'kill', ...why)).code).toBe(0);
  await countersign(
    'settings',
    'set',
    'policy.gate.block_at',
    'medium',
    '--installation',
    'all',
    '--reason',
    'audit',
  );
  const listed = await countersign('settings', 'list', '--installation', '42');
  expect(listed.out.split('\n')[0]).toMatch(/^all {2}policy\.gate\.block_at = "medium" {2}\(.+: audit\)$/);
  expect(listed.out).toMatch(/^42 {2}slots\.openai = 16 {2}\(olga, .+ UTC: a larger contract\)$/m);
  const got = await countersign('settings', 'get', 'slots.openai', '--installation', '42', '--json');
  expect(JSON.parse(got.out)).toMatchObject({
    installation: '42',
    key: 'slots.openai',
    value: 16,
    by: 'olga',
  });
  const policy = join(folder, 'policy.yml');
  writeFileSync(policy, 'version: 1\ngate: {block_at: critical}\n');
  const checked = await countersign('config', 'check', policy, '--installation', '42');
  expect(checked.code).toBe(0);
  expect(checked.out).toContain(
    'note: gate.block_at: the settings of this installation are stricter, and count',
  );
  const refused = [
    [['set', 'slot', '3', ...why], 1, 'did you mean slots?'],
    [['set', 'slots', '0', ...why], 1, 'accepted: at least 1'],
    [['set', 'slots', '3', '--installation', '42'], 3, '--reason is needed'],
    [['set', 'slots', '3', '--reason', 'x'], 3, '--installation is needed'],
    [['set', 'slots', '3', '--installation', '43', '--reason', 'x'], 1, '42 (acme)'],
    [['get', 'ceiling.usd'], 1, 'ceiling.usd is not set for all'],
    [['turn', 'slots'], 3, 'usage: countersign settings list'],
  ] as const;
  await Promise.all(
    refused.map(async ([args, code, says]) => {
      const ended = await countersign('settings', ...args);
      expect([ended.code, ended.out], args.join(' ')).toEqual([code, '']);
      expect(ended.err).toContain(says);
    }),
  );
});
