/** `countersign operator` as people call it: a process beside a database that a server uses. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { secretHash } from '../../app/flow/login.ts';
import { newKeys } from '../../app/signing/keys.ts';
import { upsertInstallation } from '../../db/store/installation.ts';
import { findOperatorToken } from '../../db/store/operator.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { programFile } from '../helpers/process.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'cs-operator-'));
const file = join(folder, 'keys.json');
let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
  writeFileSync(file, JSON.stringify(newKeys('operator.test')), { mode: 0o600 });
  await db.database.transaction((tx) =>
    upsertInstallation(tx, { id: '42', accountId: '1', accountLogin: 'acme', status: 'active' }),
  );
});
afterAll(async () => {
  await db.drop();
  rmSync(folder, { recursive: true, force: true });
});

function operator(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    DATABASE_URL: db.url,
    COUNTERSIGN_DATA_DIR: folder,
    COUNTERSIGN_KEYS: file,
  };
  return new Promise((done) => {
    execFile(
      process.execPath,
      [programFile('cli'), 'operator', ...args],
      { cwd: root, env },
      (error, out, err) => done({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });
}

test('CTL-5: add, list and revoke; a token is told once, alone on standard output', async () => {
  const made = await operator('add', 'on-call', '--installation', '42');
  expect(made).toMatchObject({ code: 0, err: 'token of on-call, shown this once:\n' });
  expect(made.out).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
  const hash = secretHash(made.out.trim());
  expect(await findOperatorToken(db.database.db, hash)).toMatchObject({
    name: 'on-call',
    installationId: '42',
  });
  expect(await operator('add', 'on-call', '--installation', 'all')).toMatchObject({
    code: 1,
    err: 'conflict: on-call has a token; accepted: revoke it first, or take another name\n',
  });
  expect((await operator('add', 'pager', '--installation', 'all')).code).toBe(0);
  expect(JSON.parse((await operator('list', '--json')).out)).toMatchObject([
    { name: 'on-call', installation: '42' },
    { name: 'pager', installation: 'all' },
  ]);
  expect((await operator('list')).out).toMatch(/^on-call: 42, since \S+Z\npager: all, since \S+Z\n$/);
  expect((await operator('revoke', 'on-call')).out).toBe('the token of on-call is revoked\n');
  expect(await findOperatorToken(db.database.db, hash)).toBeNull();
  expect(await operator('revoke', 'on-call')).toMatchObject({
    code: 1,
    err: 'not_found: on-call has no token; accepted: a name that operator list shows\n',
  });
});

test('CTL-5: a wrong call says what is accepted, and makes nothing', async () => {
  for (const [args, says] of [
    [[], 'operator add, list or revoke'],
    [['add', 'x'], '--installation is needed: the number of an installation, or all'],
    [['add', 'X y', '--installation', 'all'], 'NAME is lower-case letters, digits and -, at most 40'],
    [['revoke', 'a', 'b'], 'one name at a time: b'],
  ] as const)
    expect(await operator(...args)).toMatchObject({ code: 3, out: '', err: expect.stringContaining(says) });
  expect(await operator('add', 'nowhere', '--installation', '77')).toMatchObject({
    code: 1,
    err: 'not_found: no installation 77 is known here; accepted: another number, or all\n',
  });
});
