import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ReviewerSpec } from '../../app/protocol/runner.ts';
import { makeRepository, startAction } from './harness.ts';
import { makeTicket, type ProtocolServer, refuse, startProtocolServer } from './server.ts';

const node = (code: string, more: Partial<NonNullable<ReviewerSpec['command']>> = {}): ReviewerSpec => ({
  name: 'script',
  uses: 'command',
  command: {
    run: [process.execPath, '-e', code, '{path}'],
    output: 'countersign',
    paths: ['**'],
    ok_exit: [0, 1],
    deletions: false,
    config: [],
    severity: { error: 'high', warning: 'medium', note: 'low' },
    ...more,
  },
});
const clean = 'console.log(JSON.stringify({version: 1, count: 0, findings: []}))';
const slow = (ms: number) => `setTimeout(() => { ${clean} }, ${ms})`;

const repository = makeRepository({}, { 'a.txt': 'one\n', 'b.txt': 'two\n', 'c.txt': 'three\n' });
afterAll(() => repository.remove());

let server: ProtocolServer;
beforeEach(async () => {
  server = await startProtocolServer();
});
afterEach(async () => {
  await server.close();
  expect(server.violations).toEqual([]);
});
const ticket = (file: string, spec: ReviewerSpec, more = {}) =>
  makeTicket({ ...repository.at(file), reviewers: [spec], ...more });
const until = async (what: () => boolean): Promise<void> => {
  const from = Date.now();
  while (!what()) {
    if (Date.now() - from > 60_000) throw new Error('did not happen');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('draining', () => {
  test('ACT-5: works what there is, then ends with 0, counts and a summary', async () => {
    const tickets = ['a.txt', 'b.txt', 'c.txt'].map((file) => ticket(file, node(clean)));
    for (const one of tickets) server.add(one);
    const run = await startAction({ server: server.url, parallel: '2', nonce: 'the-nonce' }, server.env).done;
    expect(run).toMatchObject({ code: 0, stderr: '' });
    for (const one of tickets)
      expect(server.results.get(one.id)).toMatchObject({
        end: 'reviewed',
        verdict: 'approve',
        blobs: one.blob,
      });
    expect(run.outputs).toEqual({
      tickets: '3',
      findings: '0',
      unavailable: '0',
      returned: '0',
      run_url: 'https://github.example/octo/repo/actions/runs/77',
    });
    expect(run.summary).toContain('| `a.txt` | `approve` | 0 |');
    expect(run.stdout.split('\n')[0]).toBe('Countersign runner: starting');
    expect(run.stdout.match(/^::group::/gm)).toHaveLength(3);
    expect(server.of('login')[0]?.body).toMatchObject({ nonce: 'the-nonce', capacity: 2 });
    expect(server.of('login')[0]?.body['oidc']).toBe(`oidc-1-for-${server.url}`);
    expect(Math.max(...server.of('leases').map((call) => Number(call.body['max'])))).toBe(2);
  });

  test('ACT-5: heartbeats go on while a reviewer works', async () => {
    server.add(ticket('a.txt', node(slow(1500))));
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(0);
    expect(server.of('heartbeat').length).toBeGreaterThanOrEqual(4);
  });

  test('ACT-5: a 401 leads to one new login with a fresh OIDC token, and the work goes on', async () => {
    server.add(ticket('a.txt', node(clean)));
    let turned = false;
    server.knob = (call) => {
      if (call.verb !== 'submit' || turned) return null;
      turned = true;
      return refuse(401, 'unauthorized');
    };
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(0);
    expect(server.of('login').map((call) => String(call.body['oidc']).slice(0, 6))).toEqual([
      'oidc-1',
      'oidc-2',
    ]);
    expect(server.results.size).toBe(1);
  });

  test('ACT-5: a login that is refused ends the runner with 1, says the code, and is not repeated', async () => {
    server.knob = (call) => (call.verb === 'login' ? refuse(403, 'forbidden') : null);
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('Login refused: forbidden');
    expect(server.of('login')).toHaveLength(1);
    expect(server.of('leases')).toHaveLength(0);
  });

  test('LSE-7: another major protocol version is told in one line and leases nothing', async () => {
    server.protocol = '2.3';
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(
      /^::error::server_refused: The server speaks protocol 2\.3, this Action 1\.\d+/m,
    );
    expect(server.of('login')).toHaveLength(0);
    expect(server.of('leases')).toHaveLength(0);
  });

  test('AUT-1: a job without id-token permission says what its workflow needs', async () => {
    const run = await startAction({ server: server.url }).done;
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('permissions: id-token: write');
  });

  test('ACT-4: an input that is not valid is refused before anything is sent; its value is not printed', async () => {
    for (const inputs of [
      { server: 'http://example.org' },
      { server: server.url, parallel: '17' },
      { server: server.url, mode: 'fix' },
      { server: `http://user:hunter22@127.0.0.1:1` },
    ]) {
      const run = await startAction(inputs, server.env).done;
      expect(run.code).toBe(1);
      expect(run.stdout).toContain('::error::Input ');
      expect(run.stdout).not.toContain('hunter22');
    }
    expect(server.calls).toEqual([]);
  });

  test('LSE-5: results and leases survive connections that are cut', async () => {
    server.add(ticket('a.txt', node(clean)));
    const cut = new Map<string, number>();
    server.knob = (call) => {
      const seen = (cut.get(call.verb) ?? 0) + 1;
      cut.set(call.verb, seen);
      return ['login', 'leases', 'submit'].includes(call.verb) && seen === 1 ? 'cut' : null;
    };
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(0);
    expect(server.results.size).toBe(1);
    expect(run.stdout).toContain('Result not accepted yet (server_unavailable), kept and tried again');
    // what the unheard answers may have granted is asked for again by name
    const [unheard, heard] = server.of('leases').map((one) => one.body);
    expect(heard).toMatchObject({ request: unheard?.['request'], again: true });
    expect(unheard).toMatchObject({ request: expect.any(String), again: false });
    const [lost, told] = server.of('submit').map((one) => one.body['lease_next'] as Record<string, unknown>);
    expect(told).toMatchObject({ request: lost?.['request'], again: true });
  });

  test('LSE-1: what comes back with a result is worked, and parallel is never exceeded', async () => {
    for (const name of ['a.txt', 'b.txt', 'c.txt', 'd.txt', 'e.txt'])
      server.add(ticket('a.txt', node(clean), { block: { id: name.slice(0, 1), title: name, brief: '' } }));
    const run = await startAction({ server: server.url, parallel: '2' }, server.env).done;
    expect(run.code).toBe(0);
    expect(server.results.size).toBe(5);
    expect(server.mostOpen).toBe(2);
  });

  test('LSE-7: a server of protocol 1.0 is sent nothing that it does not know', async () => {
    server.protocol = '1.0';
    server.add(ticket('a.txt', node(clean)));
    expect((await startAction({ server: server.url }, server.env).done).code).toBe(0);
    expect(server.of('leases').every((one) => Object.keys(one.body).sort().join() === 'max,wait_ms')).toBe(
      true,
    );
    expect(server.of('submit').map((one) => 'lease_next' in one.body)).toEqual([false]);
  });

  test('ACT-5: a result that is not accepted is kept on disk without the lease token, and forgotten when accepted', async () => {
    server.add(ticket('a.txt', node(clean)));
    let open = false;
    server.knob = (call) => (call.verb === 'submit' && !open ? { status: 503, body: {} } : null);
    const running = startAction({ server: server.url }, server.env);
    const dir = path.join(running.temp, 'countersign-results');
    await until(() => running.stdout().includes('kept and tried again'));
    const [file] = readdirSync(dir);
    expect(file).toBe('lease-1-1.json');
    expect(readFileSync(path.join(dir, String(file)), 'utf8')).not.toContain('lease-token');
    open = true;
    await until(() => server.results.size === 1);
    await until(() => readdirSync(dir).length === 0);
    expect((await running.done).code).toBe(0);
  });
});

describe('losing and giving back', () => {
  test('LSE-3: a heartbeat answered 409 stops the work; nothing is submitted', async () => {
    server.add(ticket('a.txt', node(slow(600_000))));
    server.knob = (call) => (call.verb === 'heartbeat' ? refuse(409, 'revoked') : null);
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(0);
    // and it did not wait for the reviewer, which would have outlived this test
    expect(run.stdout).toContain('Lease lost: revoked');
    expect(server.of('submit')).toEqual([]);
    expect(server.of('return')).toEqual([]);
  });

  test('LSE-3: a result refused with 409 is said and not repeated', async () => {
    server.add(ticket('a.txt', node(clean)));
    server.knob = (call) => (call.verb === 'submit' ? refuse(409, 'superseded') : null);
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(0);
    expect(server.of('submit')).toHaveLength(1);
    expect(run.stdout).toContain('Outcome: refused: superseded');
  });

  test('TKT-3: a recall before anything was spent gives the ticket back', async () => {
    server.control = 'recall';
    server.add(ticket('a.txt', node(slow(600_000))));
    const run = await startAction({ server: server.url }, server.env).done;
    expect(run.code).toBe(0);
    expect(server.of('return').map((call) => call.body['reason'])).toEqual(['recalled']);
    expect(run.outputs['returned']).toBe('1');
  });

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'ACT-5: %s ends a stubborn process group, gives the ticket back and exits in seconds',
    async (signal) => {
      // ignores TERM, and so does its child: only the KILL of the group ends both
      const dir = mkdtempSync(path.join(tmpdir(), 'cs-pids-'));
      const ignore = `process.on('SIGTERM', () => {}); require('node:fs').writeFileSync(${JSON.stringify(`${dir}/`)} + process.pid, ''); setInterval(() => {}, 1000);`;
      const stubborn = `${ignore} require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(ignore)}], {stdio: ['ignore', 'ignore', 'inherit']})`;
      server.add(ticket('a.txt', node(stubborn)));
      server.add(ticket('b.txt', node(stubborn)));
      const running = startAction({ server: server.url }, server.env);
      await until(() => readdirSync(dir).length === 4);
      const from = performance.now();
      running.kill(signal);
      const run = await running.done;
      // 7 s of its own, and some for a machine that is busy; without the end it would be the minute that a heartbeat has
      expect(performance.now() - from).toBeLessThan(30_000);
      expect(run.code).toBe(signal === 'SIGINT' ? 130 : 143);
      expect(server.of('return').map((call) => call.body['reason'])).toEqual(['stopping', 'stopping']);
      expect(server.of('submit')).toEqual([]);
      // killed before the runner left; the system's own first process reaps them a moment later
      await until(() => readdirSync(dir).every((pid) => !isAlive(Number(pid))));
      rmSync(dir, { recursive: true });
    },
  );

  test('TKT-1: a ticket whose id is not that of its content is bad_ticket and runs nothing', async () => {
    const forged = { ...ticket('a.txt', node(clean)), id: 'f'.repeat(64) };
    server.add(forged);
    await startAction({ server: server.url }, server.env).done;
    expect(server.results.get(forged.id)).toMatchObject({ end: 'bad_ticket', sessions: [] });
  });

  test('AUT-3: the blob ids that are submitted are those git has, never the ticket’s word', async () => {
    const wrong = ticket('a.txt', node(clean), { blob: { base: null, head: '1'.repeat(40) } });
    server.add(wrong);
    await startAction({ server: server.url }, server.env).done;
    expect(server.results.get(wrong.id)).toMatchObject({
      end: 'bad_ticket',
      blobs: { base: null, head: repository.blob('head', 'a.txt') },
    });
  });

  test('TKT-6: one poisoned ticket does not stop the others', async () => {
    const poisoned = ticket('a.txt', node('process.abort()'));
    const good = ticket('b.txt', node(clean));
    server.add(poisoned);
    server.add(good);
    await startAction({ server: server.url, parallel: '1' }, server.env).done;
    expect(server.results.get(poisoned.id)).toMatchObject({ end: 'worker_error', verdict: null });
    expect(server.results.get(good.id)).toMatchObject({ end: 'reviewed', verdict: 'approve' });
  });
});
