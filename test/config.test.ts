import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Environment, loadConfig, loadDataConfig } from '../app/config.ts';
import { Fault } from '../app/errors.ts';

const pem = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
  type: 'pkcs1',
  format: 'pem',
}) as string;
const SECRET = 'a-secret-of-at-least-thirty-two-bytes';
const good: Environment = { APP_ID: '123', PRIVATE_KEY: pem, WEBHOOK_SECRET: SECRET };
const folder = mkdtempSync(join(tmpdir(), 'config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fault(env: Environment): Fault {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error('the environment was accepted');
}

describe('loadConfig', () => {
  it('fills every default and is frozen', () => {
    const config = loadConfig(good);
    expect(config).toEqual({
      databaseUrl: null,
      dataDir: resolve('.countersign'),
      keys: null,
      logLevel: 'info',
      inherit: expect.any(Function),
      host: '127.0.0.1',
      port: 3000,
      publicUrl: null,
      appId: '123',
      privateKey: pem,
      webhookSecrets: [SECRET],
      apiUrl: 'https://api.github.com',
      serverUrl: 'https://github.com',
      oidcIssuer: 'https://token.actions.githubusercontent.com',
      oidcAudience: null,
      signIn: null,
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('names everything that is missing at once, as config_missing', () => {
    const error = fault({});
    expect(error.code).toBe('config_missing');
    for (const name of ['APP_ID', 'PRIVATE_KEY', 'WEBHOOK_SECRET'])
      expect(error.message).toContain(`not set: ${name}`);
  });

  it.each([
    ['PORT', '70000'],
    ['PORT', '-1'],
    ['APP_ID', 'Iv1.abc'],
    ['PUBLIC_URL', 'ftp://x'],
    ['PUBLIC_URL', 'example.org'],
    ['DATABASE_URL', 'mysql://x'],
    ['LOG_LEVEL', 'loud'],
    ['PRIVATE_KEY', 'not a key'],
    ['PRIVATE_KEY_PATH', '/nowhere/key.pem'],
  ])('refuses %s=%s as config_value, naming what is accepted', (name, value) => {
    const env =
      name === 'PRIVATE_KEY_PATH' ? { ...good, PRIVATE_KEY: '', [name]: value } : { ...good, [name]: value };
    const error = fault(env);
    expect(error.code).toBe('config_value');
    expect(error.message).toMatch(new RegExp(`not accepted: ${name}: \\S+`));
  });

  it.each([
    ['absent', undefined],
    ['empty', ''],
    ['the word development', 'development'],
    ['31 bytes', 'x'.repeat(31)],
  ])('attack 1: refuses a webhook secret that is %s', (_, value) => {
    const error = fault({ ...good, WEBHOOK_SECRET: value });
    expect(error.message).toContain('WEBHOOK_SECRET');
    expect(['config_missing', 'config_value']).toContain(error.code);
  });

  it('attack 1: holds the previous secret to the same rule, and counts bytes, not characters', () => {
    expect(fault({ ...good, WEBHOOK_SECRET_PREVIOUS: 'short' }).message).toContain('WEBHOOK_SECRET_PREVIOUS');
    expect(loadConfig({ ...good, WEBHOOK_SECRET_PREVIOUS: 'é'.repeat(16) }).webhookSecrets).toHaveLength(2);
  });

  it('never repeats a secret in what it says', () => {
    const error = fault({
      ...good,
      WEBHOOK_SECRET: 'hunter2',
      PRIVATE_KEY: 'my-private-key',
      DATABASE_URL: 'x://u:pass@h',
    });
    expect(error.message).not.toMatch(/hunter2|my-private-key|pass@/);
  });

  it('takes the private key with \\n, in base64, and from a file', () => {
    const path = join(folder, 'key.pem');
    writeFileSync(path, pem);
    expect(loadConfig({ ...good, PRIVATE_KEY: pem.replaceAll('\n', '\\n') }).privateKey).toBe(pem);
    expect(loadConfig({ ...good, PRIVATE_KEY: Buffer.from(pem).toString('base64') }).privateKey).toBe(pem);
    expect(loadConfig({ ...good, PRIVATE_KEY: undefined, PRIVATE_KEY_PATH: path }).privateKey).toBe(pem);
  });

  it('OPS-5: knows where GitHub Enterprise Server and ghe.com keep their pages and tokens', () => {
    expect(loadConfig({ ...good, GITHUB_API_URL: 'https://git.example.org/api/v3/' })).toMatchObject({
      apiUrl: 'https://git.example.org/api/v3',
      serverUrl: 'https://git.example.org',
      oidcIssuer: 'https://git.example.org/_services/token',
    });
    expect(loadConfig({ ...good, GITHUB_API_URL: 'https://api.acme.ghe.com' })).toMatchObject({
      serverUrl: 'https://acme.ghe.com',
      oidcIssuer: 'https://token.actions.acme.ghe.com',
    });
  });

  it('OPS-8: takes an OAuth client whole or not at all, and never tells its secret', () => {
    const client = { CLIENT_ID: 'Iv23liAbc', CLIENT_SECRET: 'c0ffee'.repeat(6) };
    expect(loadConfig({ ...good, ...client }).signIn).toEqual({
      clientId: client.CLIENT_ID,
      clientSecret: client.CLIENT_SECRET,
    });
    expect(loadConfig({ ...good, CLIENT_ID: '', CLIENT_SECRET: '' }).signIn).toBeNull();
    const half = fault({ ...good, CLIENT_SECRET: client.CLIENT_SECRET });
    expect(half).toMatchObject({ code: 'config_missing', message: expect.stringContaining('CLIENT_ID') });
    expect(half.message).not.toContain('c0ffee');
    expect(fault({ ...good, CLIENT_ID: 'Iv23liAbc' }).message).toContain('CLIENT_SECRET');
    expect(fault({ ...good, ...client, CLIENT_SECRET: 'short' })).toMatchObject({ code: 'config_value' });
  });

  it('gives a child process the named variables that are set, and no others', () => {
    const { inherit } = loadConfig({ ...good, PATH: '/bin', NO_PROXY: '' });
    expect(inherit(['PATH', 'NO_PROXY', 'HTTP_PROXY'])).toEqual({ PATH: '/bin' });
  });

  it('reads keys as a path or inline, and the data part alone', () => {
    expect(loadDataConfig({ COUNTERSIGN_KEYS: 'keys.json' }).keys).toBe(resolve('keys.json'));
    expect(loadDataConfig({ COUNTERSIGN_KEYS: ' {"roots":{}}' }).keys).toBe('{"roots":{}}');
    expect(() => loadDataConfig({ LOG_LEVEL: 'loud' })).toThrow(Fault);
  });
});
