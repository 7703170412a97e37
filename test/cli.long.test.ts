/** The command line as people call it: a process, its exit code, what it prints; on a real database. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withRun } from '../app/flow/append-rows.ts';
import { verifyInstallation, verifyRun } from '../app/flow/verify-run.ts';
import { openKeys } from '../app/signing/keys.ts';
import { upsertInstallation } from '../db/store/installation.ts';
import { findRun } from '../db/store/run.ts';
import { asOwner, type TestDatabase, testDatabase } from './helpers/database.ts';
import { openTestRun, smallRow } from './helpers/ledger.ts';
import { programFile } from './helpers/process.ts';

const root = resolve(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'cs-cli-'));
const file = join(folder, 'keys.json');
let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});
afterAll(async () => {
  await db.drop();
  rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function countersign(...args: string[]): Promise<Ended> {
  return given('', ...args);
}

/** The same with text on its standard input. */
function given(input: string, ...args: string[]): Promise<Ended> {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    DATABASE_URL: db.url,
    COUNTERSIGN_DATA_DIR: folder,
    COUNTERSIGN_KEYS: file,
  };
  return new Promise((done) => {
    const child = execFile(
      process.execPath,
      [programFile('cli'), ...args],
      { cwd: root, env },
      (error, out, err) => done({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
    child.stdin?.end(input);
  });
}

describe('countersign keys', () => {
  it('LED-6: new makes a file for its owner alone and prints no key; never over one that exists', async () => {
    const made = await countersign('keys', 'new', '--out', file, '--origin', 'log.test');
    expect(made).toMatchObject({ code: 0, err: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const before = readFileSync(file, 'utf8');
    for (const secret of before.match(/[A-Za-z0-9+/]{43}=/g) ?? []) expect(made.out).not.toContain(secret);
    const again = await countersign('keys', 'new', '--out', file);
    expect(again).toMatchObject({ code: 1, out: '', err: expect.stringContaining('name another') });
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it('LED-6: rotate records the new root under the old one, keeps the old to verify, and a run goes on over both', async () => {
    const old = openKeys({ setting: file, folder, origin: 'log.test' }).signer;
    await db.database.transaction((tx) =>
      upsertInstallation(tx, { id: '5', accountLogin: 'acme', status: 'active' }),
    );
    await openTestRun({ database: db.database, signer: old }, 'r1', '7');
    const rotated = await countersign('keys', 'rotate');
    expect(rotated).toMatchObject({ code: 0, err: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { signer } = openKeys({ setting: file, folder, origin: 'log.test' });
    expect(signer.kid).not.toBe(old.kid);
    expect(signer.vkey, 'who signs heads is another key').toBe(old.vkey);
    const deps = { database: db.database, signer };
    const chain = await verifyInstallation(deps, { id: '5', epoch: 1 }, { full: true });
    expect(chain.verdict.kind).toBe('intact');
    expect(chain.rows.map((row) => [row.kind, row.kid, row.data])).toEqual([
      ['key.rotated', old.kid, { from: old.kid, to: signer.kid }],
    ]);
    await withRun(deps, 'r1', async (unit) => void unit.append('command.refused', smallRow('after')));
    const run = await findRun(db.database.db, 'r1');
    if (run === null) throw new Error('no run');
    const { verdict, rows } = await verifyRun(deps, run, { full: true });
    expect(verdict.kind).toBe('intact');
    expect(rows.map((row) => row.kid)).toEqual([old.kid, signer.kid]);
    // the old root alone does not know the new one: that is no tampering
    expect((await verifyRun({ database: db.database, signer: old }, run, { full: true })).verdict).toEqual({
      kind: 'unverifiable',
      seq: 2,
      kid: signer.kid,
    });
    const listed = await countersign('keys', 'list');
    expect(listed.out.trim().split('\n')).toEqual([old.kid, `${signer.kid} (signs now)`, signer.vkey]);
  });
});

it('attack 33, 35: verify-run is 0 with a head from outside, 2 without one or without a key, 1 tampered, 3 for a wrong call', async () => {
  const bare = await countersign('verify-run', 'r1');
  expect(bare.code).toBe(2);
  expect(bare.out).toMatch(/^cannot tell: 2 rows follow each other, head [0-9a-f]{64}\nnot proved: /);
  const [head = ''] = /[0-9a-f]{64}/.exec(bare.out) ?? [];
  expect(await countersign('verify-run', 'r1', '--head', head)).toMatchObject({ code: 0 });
  const { signer } = openKeys({ setting: file, folder, origin: 'log.test' });
  const note = join(folder, 'note.txt');
  const hash = Buffer.from(head, 'hex');
  writeFileSync(note, signer.signHead({ log: signer.logOf('5'), run: 'r1', seq: 2, hash }));
  const intact = await countersign('verify-run', 'r1', '--note', note);
  expect(intact).toMatchObject({ code: 0, err: '' });
  expect(intact.out).toBe(`intact: 2 rows, head ${head}\nthe head given is its last row\n`);
  expect((await countersign('verify-run', 'r1', '--head', 'f'.repeat(64))).code).toBe(1);
  expect((await countersign('verify-run', 'r1', '--head', 'abc')).code).toBe(3);
  expect((await countersign('verify-run', 'r1', '--note', join(folder, 'none'))).code).toBe(3);
  const keys = JSON.parse(readFileSync(file, 'utf8')) as { roots: Record<string, string>; current: string };
  const { [keys.current]: signs = '' } = keys.roots;
  writeFileSync(file, JSON.stringify({ ...keys, roots: { [keys.current]: signs } }));
  const missing = await countersign('verify-run', 'r1', '--head', head);
  expect(missing.code).toBe(2);
  expect(missing.out).toMatch(/^cannot tell: row 1 needs key m[0-9a-f]{8}$/m);
  writeFileSync(file, JSON.stringify(keys));
  await asOwner(db.url, async (client) => {
    await client.query('alter table ledger_row disable trigger user');
    await client.query(
      `update ledger_row set body = overlay(body placing '\\x20' from 10 for 1) where run_id = 'r1' and seq = 2`,
    );
  });
  const tampered = await countersign('verify-run', 'r1', '--note', note);
  expect(tampered.code).toBe(1);
  expect(tampered.out).toMatch(/^tampered: row 2: edited/);
  expect((await countersign('verify-run')).code).toBe(3);
});

it('POL-3: config check reads standard input, says where a policy is not valid, and ends with 1', async () => {
  const wrong = await given('version: 1\nreviewes: {}\n', 'config', 'check', '-');
  expect(wrong).toMatchObject({ code: 1, err: '' });
  expect(wrong.out).toMatch(
    /^standard input:2: reviewes: unknown key "reviewes"; did you mean reviewers\?; accepted: /,
  );
});

it('OPS-9: help goes to standard output and ends with 0, a command that is none to standard error with 3', async () => {
  const [help, one, none] = await Promise.all([
    countersign('--help'),
    countersign('simulate', '--help'),
    countersign('simulat'),
  ]);
  expect(help).toMatchObject({ code: 0, err: '' });
  expect(help.out).toContain('countersign simulate OWNER/REPO#N [--policy FILE] [--json]');
  expect(one).toMatchObject({ code: 0, err: '' });
  expect(one.out).toMatch(/^usage: countersign simulate [\s\S]* 3 {2}something would change/);
  expect(none).toMatchObject({ code: 3, out: '' });
  expect(none.err).toMatch(/^there is no command simulat\nusage:/);
}, 30_000);

it('ACT-3: workflow takes only a server that runners can reach by its URL', async () => {
  expect(await countersign('workflow', '--server', 'nonsense')).toMatchObject({ code: 3, out: '' });
  const printed = await countersign('workflow', '--server', 'https://countersign.example/');
  expect(printed).toMatchObject({ code: 0, err: '' });
  expect(printed.out).toContain('server: "https://countersign.example"');
});
