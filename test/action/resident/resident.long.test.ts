/** `countersign runner` as a process against the protocol server: what it does when it is told to stop, refused, or alone. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ReviewerSpec } from '../../../app/protocol/runner.ts';
import { type Child, startChild } from '../../helpers/process.ts';
import { makeRepository } from '../harness.ts';
import { makeTicket, type ProtocolServer, refuse, startProtocolServer } from '../server.ts';

const TOKEN = 'pool-token-of-32-random-bytes-or-so-0123456';
const repository = makeRepository({}, { 'a.txt': 'one\n', 'b.txt': 'two\n' });
const folder = mkdtempSync(join(tmpdir(), 'countersign-resident-'));
afterAll(() => {
  repository.remove();
  rmSync(folder, { recursive: true, force: true });
});

let server: ProtocolServer;
let child: Child | null = null;
beforeEach(async () => {
  server = await startProtocolServer();
});
afterEach(async () => {
  child?.kill();
  await child?.ended;
  child = null;
  await server.close();
  expect(server.violations).toEqual([]);
});

function start(commands = 'node'): Child {
  child = startChild('cli', ['runner', '--pool', 'own', '--commands', commands], {
    PATH: process.env['PATH'],
    HOME: folder,
    TMPDIR: folder,
    COUNTERSIGN_URL: server.url,
    COUNTERSIGN_POOL_TOKEN: TOKEN,
  });
  return child;
}

const script = (code: string): ReviewerSpec => ({
  name: 'script',
  uses: 'command',
  command: {
    run: ['node', '-e', code, '{path}'],
    output: 'countersign',
    paths: ['**'],
    ok_exit: [0],
    deletions: false,
    config: [],
    severity: { error: 'high', warning: 'medium', note: 'low' },
  },
});
const clean = 'console.log(JSON.stringify({version: 1, count: 0, findings: []}))';
const ticket = (name: string, spec: ReviewerSpec) =>
  makeTicket({ ...repository.at(name), reviewers: [spec] });

/** Waits on a condition; the machine may be slow. */
async function until(what: () => boolean, or: () => string): Promise<void> {
  for (const end = Date.now() + 60_000; !what(); ) {
    if (Date.now() > end) throw new Error(or());
    await new Promise((done) => setTimeout(done, 20));
  }
}
const told = (one: Child) => () => `${one.lines.join('\n')}\n${one.errors()}`;

describe('a runner that stays', { timeout: 150_000 }, () => {
  test('AUT-2, POOL-1: it logs in with its pool’s token, works, waits for more, and gives back at SIGTERM before it goes', async () => {
    const runner = start();
    const first = ticket('a.txt', script(clean));
    server.add(first);
    await until(() => server.results.has(first.id), told(runner));
    expect(server.of('login')[0]?.body).toMatchObject({
      pool: 'own',
      token: TOKEN,
      capacity: 4,
      instance: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(server.results.get(first.id)).toMatchObject({ end: 'reviewed', verdict: 'approve' });
    // nothing is left, and it is still there for what comes next
    const held = ticket('b.txt', script(`setTimeout(() => {}, 600_000); ${clean}`));
    server.add(held);
    await until(() => server.mostOpen > 0 && server.of('heartbeat').length > 0, told(runner));
    const from = Date.now();
    runner.process.kill('SIGTERM');
    expect(await runner.ended, told(runner)()).toBe(0);
    expect(Date.now() - from).toBeLessThan(30_000);
    expect(server.returned).toEqual([held.id]);
    expect(server.calls.at(-1)?.verb, 'the last it says is that it goes').toBe('logout');
    expect(runner.lines.join('\n')).not.toContain(TOKEN);
    expect(runner.errors()).toBe('');
  });

  test('POOL-1: a program that its operator did not name is not started, and the ticket says so', async () => {
    const runner = start('eslint');
    const one = ticket('a.txt', script(clean));
    server.add(one);
    await until(() => server.results.has(one.id), told(runner));
    expect(server.results.get(one.id)).toMatchObject({
      end: 'reviewer_unsafe',
      detail: 'script: runners of this pool do not start node (countersign runner --commands)',
      sessions: [],
    });
  });

  test('POOL-1: a server that is away is waited for, before the first login and between two asks', async () => {
    let away = 6;
    server.knob = ({ verb }) =>
      ['ping', 'leases'].includes(verb) && away-- > 0
        ? verb === 'ping'
          ? 'cut'
          : { status: 503, body: { error: { code: 'stopping', message: 'x' } }, headers: {} }
        : null;
    const runner = start();
    const one = ticket('a.txt', script(clean));
    server.add(one);
    await until(() => server.results.has(one.id), told(runner));
    expect(runner.lines.join('\n')).toContain('The server did not answer');
  });

  test.each([
    ['a token that was revoked', refuse(401, 'unauthorized'), 'Login refused: unauthorized'],
    ['another version', refuse(400, 'protocol_version'), 'Login refused: protocol_version'],
  ])('AUT-2, LSE-7: %s ends it with 1 and one line that says why', async (_, refusal, says) => {
    server.knob = ({ verb }) => (verb === 'login' ? { headers: {}, ...refusal } : null);
    const runner = start();
    expect(await runner.ended, told(runner)()).toBe(1);
    const errors = runner.lines.map((line) => JSON.parse(line)).filter((line) => line.level === 'error');
    expect(errors).toHaveLength(1);
    expect(errors[0].text).toContain(says);
    expect(server.of('leases')).toEqual([]);
  });
});
