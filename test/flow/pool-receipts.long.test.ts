import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandDigest } from '../../app/domain/receipt/input-hash.ts';
import { type ReceiptWhy, WHY } from '../../app/domain/receipt/words.ts';
import { acceptReceipt } from '../../app/flow/accept-receipt.ts';
import { authenticate } from '../../app/flow/authenticate.ts';
import { changePool } from '../../app/flow/change-pool.ts';
import { changeSetting } from '../../app/flow/change-setting.ts';
import { expireReceipts } from '../../app/flow/expire-receipts.ts';
import { giveBackReceipt } from '../../app/flow/give-back-receipt.ts';
import { heartbeatReceipt } from '../../app/flow/heartbeat-receipt.ts';
import { type GivenReceipt, leaseReceipts } from '../../app/flow/lease-receipts.ts';
import { loginPool } from '../../app/flow/login-pool.ts';
import { logout } from '../../app/flow/logout.ts';
import { settleReceipts } from '../../app/flow/settle-receipts.ts';
import { startReceipt } from '../../app/flow/start-receipt.ts';
import { RECEIPT_VERSION, type ReceiptDetail } from '../../app/protocol/receipt.ts';
import { PROTOCOL_VERSION } from '../../app/protocol/runner.ts';
import type { Login } from '../../db/store/runner.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type InboxStage, inboxStage, POLICY } from '../helpers/inbox.ts';

const MINUTE = 60_000;
const RUN = { run: ['npm', 'test'], env: {}, ports: [], artifacts: [] };
const policyOf = (pool: string) => `${POLICY}verify:
  e2e: {from: pool, pool: ${pool}, image: "img:1", run: [npm, test]}
routes:
  - {when: {paths: ["**/*.ts"]}, verify: [e2e]}
pools:
  - {kind: workflow}
  - {kind: resident, name: ${pool}, serves: [verify]}
`;

let stage: InboxStage;
let pools = 0;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

interface Place {
  readonly pool: string;
  readonly repository: Repository;
  readonly installation: string;
  readonly pull: Pull;
  readonly runner: (runtime?: string | null) => Promise<Login>;
}

/** A pull request whose files a command of a pool of its own must pass for; without `add` the pool is not registered. */
async function place(add = true): Promise<Place> {
  const pool = `box-${++pools}`;
  const { repository, installation } = await stage.repository({ policy: policyOf(pool) });
  const id = String(installation.id);
  let secret = '';
  const register = async () => {
    await changePool(stage.deps, pool, { change: 'add', installations: [id], repositories: null });
    secret = (await changePool(stage.deps, pool, { change: 'token' })).secret ?? '';
  };
  await stage.settle();
  if (add) await register();
  const runner = async (runtime: string | null = 'podman 5.4.2') => {
    if (secret === '') await register();
    const { token } = await loginPool(stage.deps, {
      protocol: PROTOCOL_VERSION,
      pool,
      token: secret,
      instance: randomUUID(),
      version: '0.1.0',
      capacity: 4,
      keys: null,
      runtime,
    });
    return authenticate(stage.deps, token);
  };
  const pull = await stage.open(repository, 'topic');
  await stage.settle();
  return { pool, repository, installation: id, pull, runner };
}

const lease = (login: Login, more: { request?: string; again?: boolean; max?: number } = {}) =>
  leaseReceipts(stage.deps, {
    login,
    max: more.max ?? 4,
    request: more.request ?? null,
    again: more.again ?? false,
  });
async function one(login: Login): Promise<GivenReceipt> {
  const [given] = await lease(login);
  if (given === undefined) throw new Error('nothing was leased');
  return given;
}
const claimOf = (login: Login, { id, token, grant }: GivenReceipt) => ({ login, lease: id, token, grant });

const zero = 'a'.repeat(64);
const detail = (pull: Pull, more: Partial<ReceiptDetail> = {}): ReceiptDetail => ({
  v: RECEIPT_VERSION,
  command: 'e2e',
  run: { items: RUN.run, more: 0 },
  command_sha256: commandDigest(RUN),
  environment_sha256: zero,
  input_sha256: zero,
  base: null,
  head: pull.head.sha,
  tree: { before: 'b'.repeat(40), after: 'b'.repeat(40) },
  mutated: { items: [], more: 0 },
  started: true,
  exit: 0,
  signal: null,
  timed_out: false,
  cancelled: false,
  ms: 1200,
  stdout: { bytes: 3, sha256: zero, tail: 'ok\n' },
  stderr: { bytes: 0, sha256: zero, tail: '' },
  artifacts: { found: { items: [], more: 0 }, missing: { items: [], more: 0 } },
  ports: [],
  ...more,
});
const ran = (pull: Pull, more: Partial<ReceiptDetail> = {}) =>
  ({ end: 'ran', detail: detail(pull, more) }) as const;

/** What the rows say of receipts, in order. */
async function story(pull: Pull): Promise<string[]> {
  return (await stage.rows(pull)).flatMap((row) => {
    switch (row.kind) {
      case 'receipt.reserved':
        return [`${row.data.receipt} reserved ${row.data.from}`];
      case 'receipt.waiting':
        return [`${row.data.receipt} waits ${row.data.why}`];
      case 'receipt.started':
        return [`${row.data.receipt} started ${row.data.grant}`];
      case 'receipt.ended':
        return [`${row.data.receipt} ${row.data.state} ${row.data.why ?? row.data.conclusion}`];
      case 'receipt.reused':
        return [`${row.data.receipt} reuses ${row.data.from.receipt}`];
      case 'receipt.refused':
        return [`${row.data.receipt} refused ${row.data.reason}`];
      default:
        return [];
    }
  });
}
const reasons = async (pull: Pull) => {
  const decided = (await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided');
  return decided?.kind === 'gate.decided'
    ? decided.data.reasons.flatMap(({ code, detail: told }) =>
        code.startsWith('verify') ? [`${code}: ${told}`] : [],
      )
    : [];
};
const settle = async (pull: Pull) => settleReceipts(stage.deps, { run: (await stage.run(pull))?.id ?? '' });
/** Moves product time, and keeps a runner alive meanwhile. */
const later = async (ms: number) => {
  await stage.database.moveClock(ms);
  stage.gh.advance(ms);
};

describe('a verify command of a pool', () => {
  it('VER-1: is leased to a runner with a container runtime, started, and ends by the exit that the pool saw', async () => {
    const { pull, runner } = await place();
    const login = await runner();
    const given = await one(login);
    expect(given).toMatchObject({
      grant: 1,
      receipt: {
        receipt: 'RCP-001',
        head: pull.head.sha,
        command: 'e2e',
        run_argv: ['npm', 'test'],
        image: 'img:1',
        network: 'none',
        timeout_ms: 900_000,
      },
    });
    expect(given.access).toMatch(/^ghs_/);
    expect(await lease(login), 'one at a time').toEqual([]);
    const claim = claimOf(login, given);
    await startReceipt(stage.deps, claim);
    await startReceipt(stage.deps, claim);
    expect(await heartbeatReceipt(stage.deps, claim)).toMatchObject({ control: 'none' });
    await stage.settle();
    expect((await reasons(pull))[0]).toMatch(/^verify_pending: e2e/);
    expect(await acceptReceipt(stage.deps, claim, ran(pull))).toEqual({ accepted: true, repeated: false });
    expect(await story(pull)).toEqual([
      'RCP-001 reserved pool',
      'RCP-001 waits pool_away',
      'RCP-001 started 1',
      'RCP-001 passed success',
    ]);
    const ended = (await stage.rows(pull)).findLast((row) => row.kind === 'receipt.ended');
    expect(ended).toMatchObject({
      actor: { kind: 'runner', id: login.runnerId, via: 'pool_token' },
      cause: { kind: 'lease', id: given.id },
      data: {
        job: null,
        lease: given.id,
        ms: 1200,
        told: { exit: 0, signal: null, tree: { before: 'b'.repeat(40) }, stdout: { bytes: 3, sha256: zero } },
      },
    });
    await stage.settle();
    expect(await reasons(pull)).toEqual([]);
    expect(await settle(pull)).toMatchObject({ changed: 0 });
  });

  it('VER-3: what is told beside the exit only makes it worse', async () => {
    const { pull, runner } = await place();
    const login = await runner();
    const claim = claimOf(login, await one(login));
    await startReceipt(stage.deps, claim);
    const tree = { before: 'b'.repeat(40), after: 'c'.repeat(40) };
    await acceptReceipt(stage.deps, claim, ran(pull, { tree, mutated: { items: ['a.ts'], more: 0 } }));
    expect((await story(pull)).at(-1)).toBe('RCP-001 failed mutated');
    await stage.settle();
    expect(await reasons(pull)).toEqual(['verify_failed: e2e: it changed the tree it ran in']);
  });

  it('VER-1: of two runners that ask at once one gets it', async () => {
    const { runner } = await place();
    const both = [await runner(), await runner()];
    const given = await Promise.all([...both, ...both].map((login) => lease(login)));
    expect(given.flat()).toHaveLength(1);
  });

  it('VER-1, LSE-3: what another head, another lease or nobody proves is refused', async () => {
    const { pull, runner } = await place();
    const [login, other] = [await runner(), await runner()];
    const given = await one(login);
    const claim = claimOf(login, given);
    const refused = (what: Promise<unknown>, code: string) => expect(what).rejects.toMatchObject({ code });
    await refused(startReceipt(stage.deps, claimOf(other, given)), 'owner_mismatch');
    await refused(startReceipt(stage.deps, { ...claim, token: 'x'.repeat(43) }), 'forbidden');
    await refused(startReceipt(stage.deps, { ...claim, grant: 2 }), 'superseded');
    await refused(acceptReceipt(stage.deps, claim, ran(pull)), 'bad_request');
    await startReceipt(stage.deps, claim);
    await refused(acceptReceipt(stage.deps, claim, ran(pull, { head: 'c'.repeat(40) })), 'wrong_content');
    expect(await story(pull)).not.toContain('RCP-001 passed success');
  });

  it('VER-1, LSE-4: the same result again is a success; another one under the grant is a conflict, and nothing passes by it', async () => {
    const { pull, runner } = await place();
    const login = await runner();
    const claim = claimOf(login, await one(login));
    await startReceipt(stage.deps, claim);
    await acceptReceipt(stage.deps, claim, ran(pull));
    expect(await acceptReceipt(stage.deps, claim, ran(pull))).toEqual({ accepted: true, repeated: true });
    await stage.settle();
    expect(await reasons(pull)).toEqual([]);
    for (let i = 0; i < 2; i++)
      await expect(acceptReceipt(stage.deps, claim, ran(pull, { ms: 7 }))).rejects.toMatchObject({
        code: 'conflict',
      });
    expect((await story(pull)).slice(-2)).toEqual(['RCP-001 passed success', 'RCP-001 refused conflict']);
    await stage.settle();
    expect(await reasons(pull)).toEqual(['verify_failed: e2e: its runner told of two different ends of it']);
    await pull.comment(stage.alice, '/rerun e2e');
    await stage.settle();
    expect((await story(pull)).at(-1)).toBe('RCP-001 waits again');
  });

  it('VER-3, LSE-6: a lost runner aborts it; it runs again elsewhere, three times, and what comes late is kept and not counted', async () => {
    const { pull, runner } = await place();
    const first = await runner();
    const given = await one(first);
    await startReceipt(stage.deps, claimOf(first, given));
    await later(6 * MINUTE);
    expect(await expireReceipts(stage.deps)).toBeGreaterThan(0);
    expect((await story(pull)).slice(-2)).toEqual(['RCP-001 aborted lost', 'RCP-001 waits again']);
    await expect(acceptReceipt(stage.deps, claimOf(first, given), ran(pull))).rejects.toMatchObject({
      code: 'expired',
    });
    expect((await story(pull)).at(-1)).toBe('RCP-001 refused expired');
    const second = await runner();
    expect(await lease(second), 'not before its time').toEqual([]);
    await later(31_000);
    for (const grant of [2, 3]) {
      const login = await runner();
      const again = await one(login);
      expect(again.grant).toBe(grant);
      await startReceipt(stage.deps, claimOf(login, again));
      // it goes without a word of its own: its leases end with it
      await logout(stage.deps, login);
      await later(2 * MINUTE);
    }
    expect((await story(pull)).at(-1)).toBe('RCP-001 aborted lost');
    await stage.settle();
    expect(await reasons(pull)).toEqual(['verify_failed: e2e: its runner was lost']);
    expect(await lease(await runner())).toEqual([]);
    await pull.comment(stage.alice, '/rerun failed');
    await stage.settle();
    const login = await runner();
    const last = await one(login);
    await startReceipt(stage.deps, claimOf(login, last));
    await acceptReceipt(stage.deps, claimOf(login, last), ran(pull));
    expect((await story(pull)).slice(-3)).toEqual([
      'RCP-001 waits again',
      'RCP-001 started 4',
      'RCP-001 passed success',
    ]);
  });

  it('VER-3: /rerun never touches what a runner has', async () => {
    const { pull, runner } = await place();
    const login = await runner();
    const given = await one(login);
    await startReceipt(stage.deps, claimOf(login, given));
    await pull.comment(stage.alice, '/rerun all');
    await stage.settle();
    expect((await story(pull)).at(-1)).toBe('RCP-001 started 1');
    expect(await lease(await runner())).toEqual([]);
    expect(await heartbeatReceipt(stage.deps, claimOf(login, given))).toMatchObject({ control: 'none' });
  });

  it('VER-1, CTL-2: another head, a closed pull request and the kill switch stand in the way of a start', async () => {
    const { pull, runner, installation } = await place();
    const login = await runner();
    const old = claimOf(login, await one(login));
    await pull.push({ files: { 'a.ts': '// another\n' } });
    await stage.settle();
    await expect(startReceipt(stage.deps, old)).rejects.toMatchObject({ code: 'fenced' });
    expect(await heartbeatReceipt(stage.deps, old)).toMatchObject({ control: 'recall' });
    await giveBackReceipt(stage.deps, old, 'recalled');
    expect(await story(pull)).not.toContain('RCP-001 started 1');

    const given = await one(login);
    expect(given.receipt).toMatchObject({ receipt: 'RCP-002', head: pull.head.sha });
    const killed = claimOf(login, given);
    await startReceipt(stage.deps, killed);
    const kill = { installation, key: 'kill', by: 'ops', reason: 'a test', via: 'command_line' } as const;
    await changeSetting(stage.deps, { ...kill, value: true });
    await expect(heartbeatReceipt(stage.deps, killed)).rejects.toMatchObject({ code: 'revoked' });
    expect(await lease(login)).toEqual([]);
    await expireReceipts(stage.deps);
    expect((await story(pull)).slice(-2)).toEqual(['RCP-002 aborted stopped', 'RCP-002 waits again']);
    expect(await lease(login)).toEqual([]);
    await changeSetting(stage.deps, { ...kill, value: undefined });

    const last = claimOf(login, await one(login));
    await pull.close();
    await stage.settle();
    await expect(startReceipt(stage.deps, last)).rejects.toMatchObject({ code: 'revoked' });
    await expireReceipts(stage.deps);
    expect((await story(pull)).at(-1)).toBe('RCP-002 waits again');
    expect(await lease(login)).toEqual([]);
  });

  it('VER-1, LSE-5: given back, or granted in an answer that was lost, it waits for another runner', async () => {
    const { pull, runner } = await place();
    const [login, other] = [await runner(), await runner()];
    const [unheard] = await lease(login, { request: 'r1' });
    const [again] = await lease(login, { request: 'r1', again: true });
    expect([unheard?.grant, again?.grant]).toEqual([1, 2]);
    if (again === undefined) throw new Error('nothing was leased');
    await startReceipt(stage.deps, claimOf(login, again));
    await giveBackReceipt(stage.deps, claimOf(login, again), 'stopping');
    expect((await story(pull)).at(-1)).toBe('RCP-001 waits given_back');
    await expect(heartbeatReceipt(stage.deps, claimOf(login, again))).rejects.toMatchObject({
      code: 'superseded',
    });
    expect((await one(other)).grant).toBe(3);
  });

  it('VER-1, TKT-6: what no runner could run at all says why; what may pass is tried again', async () => {
    const { pull, runner } = await place();
    const login = await runner();
    await acceptReceipt(stage.deps, claimOf(login, await one(login)), {
      end: 'refused',
      reason: 'content_unavailable',
    });
    expect((await story(pull)).slice(-2)).toEqual([
      'RCP-001 aborted content_unavailable',
      'RCP-001 waits again',
    ]);
    await later(31_000);
    const next = await runner();
    await acceptReceipt(stage.deps, claimOf(next, await one(next)), {
      end: 'refused',
      reason: 'image_missing',
    });
    await stage.settle();
    expect(await reasons(pull)).toEqual([
      'verify_failed: e2e: its image is not on the machine of the pool, and none is pulled',
    ]);
  });
});

describe('what a receipt of a pool waits for', () => {
  it('VER-1, POOL-1: a pool that is not registered, has no runner, or none with a container runtime is named, and is never green', async () => {
    const { pull, runner } = await place(false);
    const waits = async (why: ReceiptWhy) => {
      await settle(pull);
      await stage.settle();
      expect((await story(pull)).at(-1)).toBe(`RCP-001 waits ${why}`);
      expect(stage.gates(pull)[0]).toMatchObject({ status: 'in_progress' });
    };
    await waits('pool_unregistered');
    expect(stage.gates(pull)[0]?.summary?.replaceAll('\\', '')).toContain(WHY.pool_unregistered);
    const plain = await runner(null);
    await waits('pool_no_runtime');
    expect(await lease(plain), 'it confirmed none').toEqual([]);
    await logout(stage.deps, plain);
    await waits('pool_away');
    await runner();
    await waits('pool_busy');
    // the deadline of the gate is the deadline of this wait
    await later(7 * 60 * MINUTE);
    const run = await stage.run(pull);
    await stage.deps.database.pool.query(
      `select graphile_worker.add_job('decide-gate', json_build_object('run', $1::text))`,
      [run?.id],
    );
    await stage.settle();
    expect(stage.gates(pull)[0]?.conclusion).toBe('failure');
  });

  it('VER-1, LSE-3: over HTTP it is asked for with the tickets, described, strict, and 409 where a lease does not hold', async () => {
    const { pull, pool, installation, runner } = await place();
    await runner();
    const { url } = stage.server;
    const call = async (path: string, body: object, token?: string) => {
      const headers = {
        'content-type': 'application/json',
        ...(token ? { authorization: `Bearer ${token}` } : {}),
      };
      const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    await changePool(stage.deps, pool, { change: 'add', installations: [installation], repositories: null });
    const { secret } = await changePool(stage.deps, pool, { change: 'token' });
    const said = {
      protocol: PROTOCOL_VERSION,
      pool,
      token: secret,
      version: '0.1.0',
      capacity: 4,
      keys: null,
    };
    const logIn = (more: object) => call('/api/v1/login', { ...said, instance: randomUUID(), ...more });
    expect((await logIn({ runtime: '' })).status).toBe(400);
    const { token } = (await logIn({ runtime: 'docker 28.2.2' })).body as { token: string };
    const plain = await call('/api/v1/leases', { max: 1, wait_ms: 0 }, token);
    expect(plain.body, 'who does not ask is told nothing of it').toEqual({ leases: [], done: false });
    const asked = await call('/api/v1/leases', { max: 1, wait_ms: 0, verify: 1 }, token);
    const [given] = asked.body['verify'] as { id: string; token: string; grant: number }[];
    if (given === undefined) throw new Error(JSON.stringify(asked));
    const proof = { token: given.token, grant: given.grant };
    const at = (verb: string) => `/api/v1/receipts/${given.id}/${verb}`;
    expect((await call(at('start'), { ...proof, more: 1 }, token)).status).toBe(400);
    expect((await call(at('start'), proof)).status).toBe(401);
    expect(await call(at('start'), proof, token)).toEqual({ status: 200, body: {} });
    expect((await call(at('heartbeat'), proof, token)).body).toMatchObject({ control: 'none' });
    const result = ran(pull);
    const submitted = await call(at('submit'), { ...proof, result }, token);
    expect(submitted).toEqual({ status: 200, body: { accepted: true, repeated: false } });
    expect(await call(at('return'), { ...proof, reason: 'stopping' }, token)).toMatchObject({
      status: 409,
      body: { error: { code: 'superseded' } },
    });
    const described = (await (await fetch(`${url}/api/v1/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(described.paths).filter((path) => path.includes('/receipts/'))).toHaveLength(4);
  });

  it('VER-4: a head with the same content reuses what passed, and a pool runs nothing for it', async () => {
    const { pull, runner } = await place();
    const login = await runner();
    const claim = claimOf(login, await one(login));
    await startReceipt(stage.deps, claim);
    await acceptReceipt(stage.deps, claim, ran(pull));
    await pull.push({ message: 'The same again', files: {} });
    await stage.settle();
    expect((await story(pull)).slice(-2)).toEqual(['RCP-002 reserved pool', 'RCP-002 reuses RCP-001']);
    expect(await lease(login)).toEqual([]);
    expect(await reasons(pull)).toEqual([]);
  });

  it('VER-1: nobody runs what a policy says no more of', async () => {
    const { pull, runner, repository, pool } = await place();
    const login = await runner();
    await repository.commit({
      message: 'Another command',
      files: { '.github/countersign.yml': policyOf(pool).replace('[npm, test]', '[npm, run, other]') },
    });
    await stage.settle();
    expect(await lease(login)).toEqual([
      expect.objectContaining({ receipt: expect.objectContaining({ run_argv: ['npm', 'run', 'other'] }) }),
    ]);
    expect(await story(pull)).toContain('RCP-002 reserved pool');
  });
});
