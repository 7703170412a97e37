import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { policySchemaJson } from '../app/domain/policy/schema.ts';
import { listen } from '../app/http/server.ts';
import { startServer } from '../app/server.ts';
import { type InboxStage, inboxStage } from './helpers/inbox.ts';
import { programFile } from './helpers/process.ts';

let stage: InboxStage;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(() => stage.close());

const main = (env: Record<string, string>) =>
  spawn(process.execPath, [programFile('main')], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
const environment = (folder: string): Record<string, string> => ({
  DATABASE_URL: stage.database.url,
  COUNTERSIGN_DATA_DIR: folder,
  PORT: '0',
  APP_ID: String(stage.app.id),
  PRIVATE_KEY: stage.app.privateKey,
  WEBHOOK_SECRET: stage.app.webhookSecret,
  GITHUB_API_URL: stage.gh.apiUrl,
  GITHUB_SERVER_URL: stage.gh.url,
});

describe('OPS-7: health', () => {
  it('says that it lives, that it is ready, and counts', async () => {
    const { url } = stage.server;
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ ok: true });
    // POL-3: editors read the schema that the server parses with
    expect(await (await fetch(`${url}/policy.schema.json`)).json()).toEqual(policySchemaJson());
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ ok: true, missing: [] });
    await fetch(`${url}/api/github/webhooks`, { method: 'POST' });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain('countersign_deliveries_total{status="415"} 1');
    expect(metrics).toMatch(/countersign_jobs \d+/);
    expect(metrics).toMatch(/countersign_checks_stuck 0/);
    expect((await fetch(`${url}/nothing-here`)).status).toBe(404);
    expect((await fetch(`${url}/api/v1/ping`)).status).toBe(200);
  });
});

describe('start and stop', () => {
  it('attack 1: a process with a bad webhook secret exits non-zero before it listens', async () => {
    for (const secret of ['', 'development', 'x'.repeat(31)]) {
      const child = main({ ...environment('/nowhere'), WEBHOOK_SECRET: secret });
      let said = '';
      child.stderr.on('data', (text: Buffer) => {
        said += text.toString();
      });
      child.stdout.resume();
      const [code] = (await once(child, 'exit')) as [number];
      expect(code).toBe(1);
      expect(said).toContain('WEBHOOK_SECRET');
    }
  });

  it('a port that is taken is told in a sentence, without a stack', async () => {
    const { url, close } = await listen('127.0.0.1', 0);
    try {
      await expect(listen('127.0.0.1', Number(new URL(url).port))).rejects.toMatchObject({
        code: 'config_value',
        message: expect.stringContaining('set another PORT or HOST'),
      });
    } finally {
      await close(0);
    }
  });

  it('OPS-7: SIGTERM drains and exits 0, and no line of the log holds a secret', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cs-main-'));
    // the ledger's keys of this database are the stage's
    const child = main({ ...environment(folder), COUNTERSIGN_KEYS: join(stage.config.dataDir, 'keys.json') });
    let log = '';
    child.stderr.resume();
    await new Promise<void>((done, failed) => {
      child.stdout.on('data', (text: Buffer) => {
        log += text.toString();
        if (log.includes('"event":"listening"')) done();
      });
      child.once('exit', () => failed(new Error(log)));
    });
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).toBe(0);
    expect(log).toContain('"event":"stopped"');
    for (const secret of [
      stage.app.webhookSecret,
      'BEGIN RSA',
      'BEGIN PRIVATE',
      new URL(stage.database.url).password,
    ])
      if (secret !== '') expect(log).not.toContain(secret);
    rmSync(folder, { recursive: true });
  });

  it('OPS-4: two servers may start on one database at once', async () => {
    const [a, b] = await Promise.all([stage.another(), stage.another()]);
    for (const one of [a, b]) expect((await fetch(`${one?.url}/readyz`)).status).toBe(200);
  });

  it('LED-7: a ledger that exists is never continued under new keys', async () => {
    await stage.repository().then(({ repository }) => stage.open(repository, 'topic'));
    await stage.settle();
    const dataDir = mkdtempSync(join(tmpdir(), 'cs-keys-'));
    await expect(startServer({ ...stage.config, dataDir }, { worker: false })).rejects.toMatchObject({
      code: 'key_invalid',
    });
    rmSync(dataDir, { recursive: true });
  });
});
