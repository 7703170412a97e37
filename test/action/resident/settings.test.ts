import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createResidentLog } from '../../../action/resident/log.ts';
import { type ResidentOptions, readSettings } from '../../../action/resident/settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-settings-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const TOKEN = 'pool-token-of-32-random-bytes-or-so-0123456';
const ENV = { COUNTERSIGN_URL: 'https://reviews.example/', COUNTERSIGN_POOL_TOKEN: TOKEN, PATH: '/bin' };
const read = (env: NodeJS.ProcessEnv = ENV, options: Partial<ResidentOptions> = {}) =>
  readSettings(env, { pool: 'own', ...options });

describe('POOL-1: what a resident runner is told', () => {
  test('AUT-2: the server and the token from the environment, or from a file that is read anew each time', () => {
    const settings = read();
    expect(settings.inputs.server).toBe('https://reviews.example');
    expect(settings.token()).toBe(TOKEN);
    const tokenFile = file('token', `${TOKEN}\n`);
    const by = read(
      { COUNTERSIGN_URL: 'https://r.example', COUNTERSIGN_POOL_TOKEN: 'of no use' },
      { tokenFile },
    );
    expect(by.token()).toBe(TOKEN);
    const next = 'another-token-of-32-random-bytes-0123456789';
    writeFileSync(tokenFile, next);
    expect(by.token()).toBe(next);
  });

  test.each([
    ['no server', { COUNTERSIGN_URL: undefined }, {}, 'COUNTERSIGN_URL is not set'],
    ['a server that is no address', { COUNTERSIGN_URL: 'ftp://x' }, {}, 'COUNTERSIGN_URL is not accepted'],
    ['a line that others can read', { COUNTERSIGN_URL: 'http://r.example' }, {}, 'is not accepted'],
    ['no token', { COUNTERSIGN_POOL_TOKEN: ' ' }, {}, 'COUNTERSIGN_POOL_TOKEN is not set'],
    ['what is no token', { COUNTERSIGN_POOL_TOKEN: 'two words and more than enough' }, {}, 'no pool token'],
    ['a file that is not there', {}, { tokenFile: '/nowhere/token' }, 'cannot be read'],
    ['too many at once', {}, { parallel: '65' }, '--parallel'],
    ['part of a number', {}, { parallel: '2x' }, '--parallel'],
    ['no room at all', {}, { images: 'a', containers: '0' }, '--containers'],
    ['too little memory', {}, { images: 'a', memory: '1' }, '--memory'],
    ['no number of processes', {}, { images: 'a', processes: 'many' }, '--processes'],
    ['a network of another name', {}, { images: 'a', network: 'host' }, '--network'],
  ] as const)('POOL-1: %s is refused, and no value is shown', (_, env, options, says) => {
    let said = '';
    try {
      read({ ...ENV, ...env }, options);
    } catch (error) {
      said = (error as Error).message;
    }
    expect(said).toContain(says);
    expect(said).not.toContain('two words');
  });

  test('VER-1: no verify command runs until images are named; any has to be written', () => {
    expect(read().containers).toBeNull();
    expect(read(ENV, { images: ' , ' }).containers).toBeNull();
    const { containers } = read(ENV, { images: 'node:24, python:3.13' });
    expect(containers).toMatchObject({ atOnce: 1, network: 'none', memoryMb: 2048, processes: 512 });
    expect(['node:24', 'python:3.13', 'node:2', 'any'].map((one) => containers?.allows(one))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const open = read(ENV, { images: 'any', containers: '3', network: 'open', memory: '512' }).containers;
    expect(open).toMatchObject({ atOnce: 3, network: 'open', memoryMb: 512 });
    expect(open?.allows('whatever:1')).toBe(true);
  });

  test('AUT-2, REV-1: a policy can name no variable but those of models, and the token is none of them', () => {
    const { inputs } = read({ ...ENV, OPENAI_API_KEY: 'sk-test-0123456789', AWS_SECRET: 'hush-hush-hush' });
    expect(inputs.secret('OPENAI_API_KEY')).toBe('sk-test-0123456789');
    expect(inputs.secret('COUNTERSIGN_POOL_TOKEN')).toBeNull();
    expect(inputs.secret('AWS_SECRET')).toBeNull();
    expect(inputs.keys).toEqual(['OPENAI_API_KEY']);
    expect(inputs.secrets, 'all of them are redacted').toEqual(
      expect.arrayContaining([TOKEN, 'sk-test-0123456789', 'hush-hush-hush']),
    );
  });

  test('POOL-1: a providers file says where models are asked; a wrong one is refused with what it takes', () => {
    const providers = file(
      'providers.yml',
      'providers:\n  - {uses: openai, base_url: https://gateway.example/v1, key: GATEWAY}\n',
    );
    const { inputs, allowance } = read({ ...ENV, GATEWAY: 'gw-0123456789' }, { providers });
    expect(inputs.secret('GATEWAY')).toBe('gw-0123456789');
    expect(allowance.of({ name: 'm', uses: 'openai', model: 'x' })).toMatchObject({
      spec: { base_url: 'https://gateway.example/v1', key: 'GATEWAY' },
    });
    for (const text of [
      'providers: [{uses: magic}]',
      'providers: [{uses: openai-compatible, key: K}]',
      'providers: [{uses: openai, base_url: "file:///etc/passwd"}]',
      'providers: {a: 1}',
      ': : :',
    ])
      expect(() => read(ENV, { providers: file('bad.yml', text) }), text).toThrow(/is not/);
  });
});

test('REV-8, ACT-4: what a resident runner prints is JSON lines without what is masked, and no command of GitHub’s', () => {
  const lines: string[] = [];
  const log = createResidentLog((text) => lines.push(text));
  log.mask('ghs_0123456789');
  log.line('fetch with ghs_0123456789\n::add-mask::x');
  log.error('failed ghs_0123456789');
  log.group('ticket ghs_0123456789', ['a', 'ghs_0123456789']);
  const said = lines.map((line) => JSON.parse(line));
  expect(lines.join('')).not.toContain('ghs_0123456789');
  expect(lines.join('')).not.toContain('::add-mask');
  expect(said.map(({ level, event }) => [level, event])).toEqual([
    ['info', 'runner'],
    ['error', 'runner'],
    ['info', 'ticket'],
  ]);
  expect(lines.every((line) => line.endsWith('}\n'))).toBe(true);
});
