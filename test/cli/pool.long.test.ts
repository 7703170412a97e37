/** `countersign pool` as people call it: a process beside a database that a server uses. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { secretHash } from '../../app/flow/login.ts';
import { newKeys } from '../../app/signing/keys.ts';
import { upsertInstallation } from '../../db/store/installation.ts';
import { findPoolToken } from '../../db/store/pool.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { programFile } from '../helpers/process.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'cs-pool-'));
const file = join(folder, 'keys.json');
let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
  writeFileSync(file, JSON.stringify(newKeys('pool.test')), { mode: 0o600 });
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

test('AUT-2, POOL-1: add, token, list, revoke and remove; a token is told once, alone on standard output', async () => {
  expect(await countersign('pool', 'add', 'own', '--installation', '42')).toMatchObject({ code: 0, err: '' });
  const made = await countersign('pool', 'token', 'own');
  expect(made.out).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
  const id = /^token (\S+) of own/.exec(made.err)?.[1] ?? '';
  expect((await findPoolToken(db.database.db, secretHash(made.out.trim())))?.id).toBe(id);
  const listed = await countersign('pool', 'list', '--json');
  expect(JSON.parse(listed.out)).toEqual([
    {
      name: 'own',
      serves: ['review'],
      containers: 0,
      scopes: [{ installation: '42', repositories: null }],
      tokens: [id],
      runners: 0,
      capacity: 0,
      leased: 0,
    },
  ]);
  expect(listed.out).not.toContain(made.out.trim());
  expect((await countersign('pool', 'revoke', 'own', '--token', id)).out).toContain(id);
  expect(await findPoolToken(db.database.db, secretHash(made.out.trim()))).toBeNull();
  expect((await countersign('pool', 'remove', 'own')).code).toBe(0);
  expect((await countersign('pool', 'list')).out).toBe('no resident pool is registered\n');
}, 180_000);

test('POOL-1: what is wrong is said with what is accepted', async () => {
  const unknown = await countersign('pool', 'add', 'own', '--installation', '7');
  expect(unknown).toMatchObject({ code: 1, out: '' });
  expect(unknown.err).toContain('accepted: 42 (acme)');
  expect(await countersign('pool', 'add', 'Own!', '--installation', '42')).toMatchObject({ code: 3 });
  expect(await countersign('runner')).toMatchObject({ code: 3 });
  const nowhere = await countersign('runner', '--pool', 'own');
  expect(nowhere).toMatchObject({ code: 1, out: '' });
  expect(nowhere.err).toContain('COUNTERSIGN_URL is not set');
}, 180_000);
