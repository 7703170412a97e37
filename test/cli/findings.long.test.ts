/** `countersign findings` as people and other tools call it: a process, its exit code, what it prints; on a real run. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import Ajv4 from 'ajv-draft-04';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newKeys } from '../../app/signing/keys.ts';
import { createSigner } from '../../app/signing/signer.ts';
import { asOwner } from '../helpers/database.ts';
import { type GateStage, gateStage, type TestRun } from '../helpers/gate-stage.ts';
import { programFile } from '../helpers/process.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'cs-findings-'));
const keys = join(folder, 'keys.json');
let stage: GateStage;
let run: TestRun;
beforeAll(async () => {
  const fresh = newKeys('log.test');
  writeFileSync(keys, JSON.stringify(fresh));
  stage = await gateStage(createSigner(fresh));
  run = await stage.open({ 'src/a.ts': 'one\ntwo\n', 'src/b.ts': 'three\n' }, { policy: 'version: 1\n' });
  await run.sync({ 'src/a.ts': { level: 'L2' }, 'src/b.ts': { level: 'L2' } });
  await run.review('src/a.ts', [
    { title: 'Marked \u001b[2J line', line: 2, quote: 'two', severity: 'critical', suggestion: '2' },
    { title: 'Odd name', severity: 'low' },
  ]);
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

function countersign(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    DATABASE_URL: stage.database.url,
    COUNTERSIGN_DATA_DIR: folder,
    COUNTERSIGN_KEYS: keys,
    GITHUB_API_URL: 'https://github.example/api/v3',
  };
  return new Promise((done) => {
    execFile(process.execPath, [programFile('cli'), ...args], { cwd: root, env }, (error, out, err) =>
      done({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });
}

it('FND-1: findings prints what verified rows say, as text, JSON and valid SARIF, and of no other rows', async () => {
  const [text, json, sarif, both, none] = await Promise.all([
    countersign('findings', run.id),
    countersign('findings', run.id, '--json'),
    countersign('findings', run.id, '--sarif'),
    countersign('findings', run.id, '--json', '--sarif'),
    countersign('findings', 'no-such-run'),
  ]);
  expect(text).toMatchObject({ code: 0, err: '' });
  expect(text.out).toMatch(
    /^in_progress on [0-9a-f]{40}: 2 finding\(s\), 1 file\(s\) not reviewed; \d+ rows verified/,
  );
  expect(text.out).toContain('F1 critical correctness open, blocks src/a.ts:2 Marked  line');
  expect(text.out).toContain('not reviewed: src/b.ts (pending)');
  expect(JSON.parse(json.out)).toMatchObject({
    version: 1,
    kind: 'findings',
    run: run.id,
    verdict: 'in_progress',
    findings: [
      { number: 1, state: 'open', blocks: true },
      { number: 2, blocks: false },
    ],
    unreviewed: [{ path: 'src/b.ts', standing: 'pending' }],
  });
  expect(sarif).toMatchObject({ code: 0, err: '' });
  const log = JSON.parse(sarif.out);
  const ajv = new Ajv4.default({ strict: false, unicodeRegExp: false });
  addFormats.default(ajv);
  const schema = createRequire(import.meta.url).resolve(
    '@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json',
  );
  const validate = ajv.compile(JSON.parse(readFileSync(schema, 'utf8')));
  expect(validate(log) ? [] : validate.errors).toEqual([]);
  expect(log.runs[0].versionControlProvenance[0]).toMatchObject({
    repositoryUri: 'https://github.example/acme/sample',
    revisionId: run.pull.head.sha,
  });
  expect(log.runs[0].results).toHaveLength(2);
  expect(both.code).toBe(3);
  expect(none).toMatchObject({ code: 1, out: '', err: expect.stringContaining('not_found') });

  await asOwner(stage.database.url, async (client) => {
    await client.query('alter table ledger_row disable trigger user');
    // what a finding says is made milder by somebody who can write the database
    await client.query(
      `update ledger_row set body = convert_to(replace(convert_from(body, 'UTF8'), '"critical"', '"info"'), 'UTF8') where run_id = $1`,
      [run.id],
    );
  });
  const tampered = await countersign('findings', run.id, '--sarif');
  expect(tampered).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringMatching(/^ledger_invalid: the rows/),
  });
  writeFileSync(keys, JSON.stringify(newKeys('log.test')));
  const foreign = await countersign('findings', run.id, '--sarif');
  expect(foreign).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringMatching(/^ledger_unverifiable: the rows/),
  });
});
