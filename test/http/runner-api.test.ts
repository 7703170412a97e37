import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type * as z from 'zod';
import { fingerprint } from '../../app/domain/finding.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { secretHash } from '../../app/flow/login.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { runnerApi } from '../../app/http/runner-api.ts';
import { createVerifier } from '../../app/http/runner-auth.ts';
import type { leaseResponse, TicketResult } from '../../app/protocol/runner.ts';
import { addDispatch } from '../../db/store/dispatch.ts';
import { listFindings } from '../../db/store/finding.ts';
import { findRun } from '../../db/store/run.ts';
import { countTickets } from '../../db/store/ticket.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { type TestIssuer, testIssuer } from '../helpers/issuer.ts';
import {
  changedFile,
  INSTALLATION,
  OWNER,
  openQueueRun,
  queueDeps,
  REPOSITORY,
  seedRepository,
  setFiles,
} from '../helpers/queue.ts';

type Lease = z.infer<typeof leaseResponse>['leases'][number];
/** Any answer of the API; each test says what it expects of it. */
interface Answered {
  readonly leases: Lease[];
  readonly token: string;
  readonly runner: string;
  readonly session: string;
  readonly outcome: string;
  readonly paths: Record<string, unknown>;
  readonly error: { readonly code: string };
}

const AUDIENCE = 'https://countersign.test';
let db: TestDatabase;
let issuer: TestIssuer;
let deps: Deps;
let base: string;
let close: () => Promise<void>;
const stopping = new AbortController();

beforeAll(async () => {
  db = await testDatabase();
  issuer = await testIssuer();
  deps = queueDeps(db.database);
  const verify = createVerifier({ issuers: [issuer.url], audience: AUDIENCE, cooldownMs: 60_000 });
  const app = runnerApi(deps, { verify, stopping: stopping.signal });
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await new Promise<void>((done) => server.once('listening', () => done()));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () =>
    new Promise((done) => {
      stopping.abort();
      server.close(() => done());
    });
  await seedRepository(db.database);
});
afterAll(async () => {
  await close();
  await issuer.close();
  await db.drop();
});
beforeEach(async () => {
  await db.database.db.execute(sql`delete from finding`);
  await db.database.db.execute(sql`update run set status = 'closed'`);
  await db.database.db.execute(sql`delete from ticket`);
  await db.database.db.execute(sql`delete from lease`);
  await db.database.db.execute(sql`update slot set session_id = null`);
});

async function call(path: string, body?: unknown, token?: string) {
  const response = await fetch(`${base}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'content-type': 'application/json',
      // a refused body leaves a connection that the next request must not use
      connection: 'close',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Answered };
}

let workflowRuns = 31_700_000_003;
async function dispatched(run: string): Promise<{ nonce: string; workflowRun: string }> {
  const nonce = randomUUID();
  await db.database.transaction((tx) =>
    addDispatch(
      tx,
      {
        id: randomUUID(),
        installationId: INSTALLATION,
        repositoryId: REPOSITORY,
        runId: run,
        pool: 'countersign.yml',
        workflow: 'countersign.yml',
        generation: 1,
        nonceHash: secretHash(nonce),
      },
      600_000,
    ),
  );
  return { nonce, workflowRun: String(workflowRuns++) };
}

function claims(of: { workflowRun: string }, more: Record<string, unknown> = {}) {
  return {
    aud: AUDIENCE,
    jti: randomUUID(),
    repository: 'acme/shop',
    repository_id: REPOSITORY,
    repository_owner_id: OWNER,
    run_id: of.workflowRun,
    run_attempt: '1',
    check_run_id: '4900000001',
    event_name: 'workflow_dispatch',
    ref: 'refs/heads/main',
    ref_type: 'branch',
    workflow_ref: 'acme/shop/.github/workflows/countersign.yml@refs/heads/main',
    job_workflow_ref: 'acme/shop/.github/workflows/countersign.yml@refs/heads/main',
    runner_environment: 'github-hosted',
    sha: 'd'.repeat(40),
    workflow_sha: 'd'.repeat(40),
    ...more,
  };
}

const loginBody = (oidc: string, nonce: string | null) => ({
  protocol: '1.0',
  oidc,
  nonce,
  version: '0.1.0',
  capacity: 4,
  keys: null,
});

async function logIn(run: string) {
  const of = await dispatched(run);
  const answer = await call('/api/v1/login', loginBody(await issuer.mint(claims(of)), of.nonce));
  expect(answer.status).toBe(200);
  return { token: answer.body.token, ...of, runner: answer.body.runner };
}

let runs = 0;
/** An open run whose files are cut into tickets. */
async function runWith(files: readonly string[], level: 'L1' | 'L2' = 'L1') {
  const id = `run-${++runs}`;
  await openQueueRun(deps, id, runs);
  await setFiles(
    deps,
    id,
    files.map((path) => changedFile(id, path, { level })),
  );
  await cutTickets(deps, { run: id });
  return id;
}

async function leaseOne(token: string): Promise<Lease> {
  const answer = await call('/api/v1/leases', { max: 1, wait_ms: 0 }, token);
  expect(answer.status).toBe(200);
  const [lease] = answer.body.leases;
  if (lease === undefined) throw new Error('no lease');
  return lease;
}

function result(lease: Lease, more: Partial<TicketResult> = {}): TicketResult {
  return {
    end: 'reviewed',
    detail: null,
    retry_after_ms: null,
    blobs: lease.ticket.blob,
    verdict: 'approve',
    partial: false,
    sessions: [
      {
        id: `${lease.id}.1`,
        reviewer: lease.ticket.reviewers[0]?.name ?? '',
        provider: 'command',
        model: null,
        end: 'complete',
        detail: null,
        exit: 0,
        tokens_in: 0,
        tokens_out: 0,
        cost_micro: 0,
        ms: 5,
      },
    ],
    findings: [],
    unplaced: [],
    brief_sha256: null,
    ms: 6,
    ...more,
  };
}

function found(lease: Lease, title: string, quote: string, more: Record<string, unknown> = {}) {
  const path = lease.ticket.path;
  return {
    fingerprint: fingerprint({ path, lens: 'correctness', title, quote, ordinal: 0 }),
    side: 'head' as const,
    start_line: 3,
    end_line: 3,
    severity: 'high' as const,
    lens: 'correctness',
    title,
    body: 'why',
    quote,
    suggestion: null,
    grounded: true,
    reviewer: lease.ticket.reviewers[0]?.name ?? '',
    ...more,
  };
}

const submit = (lease: Lease, token: string, value: TicketResult) =>
  call(`/api/v1/leases/${lease.id}/submit`, { token: lease.token, grant: lease.grant, result: value }, token);

async function kinds(run: string): Promise<Record<string, number>> {
  const { rows } = await db.database.db.execute<{ kind: string; n: number }>(
    sql`select kind, count(*)::int as n from ledger_row where run_id = ${run} group by kind`,
  );
  return Object.fromEntries(rows.map((row) => [row.kind, row.n]));
}

async function verifies(id: string): Promise<boolean> {
  const run = await findRun(db.database.db, id);
  return run !== null && (await verifyRun(deps, run)).verdict.kind === 'intact';
}

describe('the road of a ticket', () => {
  test('LSE-4: login, lease, heartbeat, submit: one ticket.ended, findings and jobs in one commit, and the run verifies', async () => {
    const run = await runWith(['a.ts', 'b.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    expect(lease.ticket).toMatchObject({ run, repository: { id: REPOSITORY, owner: 'acme' }, level: 'L1' });
    expect(lease.session).toBeNull();
    const beat = await call(
      `/api/v1/leases/${lease.id}/heartbeat`,
      { token: lease.token, grant: lease.grant },
      token,
    );
    expect(beat).toMatchObject({ status: 200, body: { control: 'none' } });
    const secret = `ghp_${'A1b2C3d4E5f6G7h8I9j0'.repeat(2).slice(0, 36)}`;
    const value = result(lease, {
      verdict: 'findings',
      findings: [found(lease, 'A hole', `const t = "${secret}"`)],
    });
    expect((await submit(lease, token, value)).body).toEqual({
      accepted: true,
      late: false,
      repeated: false,
    });
    expect(await kinds(run)).toMatchObject({ 'ticket.ended': 1, 'finding.raised': 1 });
    const [finding] = await listFindings(db.database.db, run);
    expect(finding).toMatchObject({ number: 1, state: 'open', command: true, severity: 'high' });
    const { rows } = await db.database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from stored_text where position(${secret}::bytea in content) > 0`,
    );
    expect(rows[0]?.n).toBe(0);
    const jobs = await db.database.db.execute<{ key: string }>(
      sql`select key from graphile_worker.jobs where key like 'decide-gate:%'`,
    );
    expect(jobs.rows.map((row) => row.key)).toContain(`decide-gate:${run}`);
    expect(await verifies(run)).toBe(true);
  });

  test('LSE-4: the same result again is accepted once; another under the same grant is a conflict', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const value = result(lease);
    expect((await submit(lease, token, value)).status).toBe(200);
    expect((await submit(lease, token, value)).body).toMatchObject({ accepted: true, repeated: true });
    const other = await submit(lease, token, { ...value, ms: 7 });
    expect(other).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } });
    await submit(lease, token, { ...value, ms: 8 });
    expect(await kinds(run)).toMatchObject({ 'ticket.ended': 1, 'ticket.conflict': 1 });
  });

  test('attack 18: a submit after expiry is kept as refused and never counted', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    await db.database.db.execute(
      sql`update lease set expires_at = cs_now() - interval '1 second' where id = ${lease.id}`,
    );
    const answer = await submit(lease, token, result(lease));
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'expired' } } });
    await submit(lease, token, result(lease));
    expect(await kinds(run)).toMatchObject({ 'ticket.refused': 1 });
    expect((await kinds(run))['ticket.ended']).toBeUndefined();
    const beat = await call(
      `/api/v1/leases/${lease.id}/heartbeat`,
      { token: lease.token, grant: lease.grant },
      token,
    );
    expect(beat).toMatchObject({ status: 409, body: { error: { code: 'expired' } } });
  });

  test('case 40, AUT-3: another blob than the ticket’s is wrong_content', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const answer = await submit(lease, token, result(lease, { blobs: { base: null, head: 'e'.repeat(40) } }));
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'wrong_content' } } });
    expect(await kinds(run)).toMatchObject({ 'ticket.refused': 1 });
    expect((await submit(lease, token, result(lease))).status).toBe(200);
  });

  test('REV-10: reviewed without a complete session of every reviewer is worker_error, never an approval', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    expect((await submit(lease, token, result(lease, { sessions: [] }))).status).toBe(200);
    const { rows } = await db.database.db.execute(
      sql`select end_code, verdict, state from ticket where run_id = ${run}`,
    );
    expect(rows).toEqual([{ end_code: 'worker_error', verdict: null, state: 'ended' }]);
  });

  test('ADM-1: a model session that was never admitted does not count', async () => {
    const run = await runWith(['a.ts'], 'L2');
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    expect(lease.session).not.toBeNull();
    const made = result(lease);
    await submit(lease, token, made);
    const { rows } = await db.database.db.execute(sql`select end_code from ticket where run_id = ${run}`);
    expect(rows).toEqual([{ end_code: 'worker_error' }]);
  });

  test('ADM-1: the lease’s slot is its first session’s; a second takes its own; ending frees it', async () => {
    const run = await runWith(['a.ts'], 'L2');
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const ask = (reviewer: string, purpose: string) =>
      call(
        `/api/v1/leases/${lease.id}/admit`,
        { token: lease.token, grant: lease.grant, reviewer, purpose, prompt_tokens: 10 },
        token,
      );
    const first = await ask('model', 'review');
    expect(first.body).toMatchObject({ outcome: 'admitted', session: lease.session });
    const taken = async () =>
      (
        await db.database.db.execute<{ n: number }>(
          sql`select count(*)::int as n from slot where session_id is not null`,
        )
      ).rows[0]?.n;
    expect(await taken()).toBe(1);
    const second = await ask('model', 'repair');
    expect(second.body.outcome).toBe('admitted');
    expect(await taken()).toBe(2);
    const third = await ask('other', 'fallback');
    expect(third.body.outcome).toBe('admitted');
    expect(await taken()).toBe(3);
    expect((await ask('stranger', 'review')).status).toBe(400);
    const end = {
      token: lease.token,
      grant: lease.grant,
      end: 'complete',
      detail: null,
      tokens_in: 5,
      tokens_out: 6,
      cost_micro: 7,
      ms: 8,
    };
    expect((await call(`/api/v1/sessions/${second.body.session}/end`, end, token)).status).toBe(200);
    expect(await taken()).toBe(2);
    const value = result(lease, {
      sessions: [{ ...result(lease).sessions[0]!, id: first.body.session, provider: 'openai', model: 'm-1' }],
    });
    expect((await submit(lease, token, value)).status).toBe(200);
    expect(await taken()).toBe(0);
    const { rows } = await db.database.db.execute(
      sql`select end_code, verdict from ticket where run_id = ${run}`,
    );
    expect(rows).toEqual([{ end_code: 'reviewed', verdict: 'approve' }]);
  });

  test('LSE-5: a ticket given back waits for another runner and counts as no failure', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const back = { token: lease.token, grant: lease.grant, reason: 'stopping' };
    expect((await call(`/api/v1/leases/${lease.id}/return`, back, token)).status).toBe(200);
    expect(await countTickets(db.database.db, run)).toEqual({ pending: 1 });
    const again = await leaseOne(token);
    expect(again).toMatchObject({ grant: 2, ticket: { id: lease.ticket.id } });
    expect((await submit(lease, token, result(lease))).body.error.code).toBe('superseded');
  });

  test('RND-1: what a command no longer finds on new content is fixed; on the same content it stands', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const first = await leaseOne(token);
    await submit(
      first,
      token,
      result(first, { verdict: 'findings', findings: [found(first, 'A', 'x'), found(first, 'B', 'y')] }),
    );
    // a rerun on the same content that is silent closes nothing
    await cutTickets(deps, { run, rerun: { scope: 'all' } });
    const second = await leaseOne(token);
    expect(second.ticket).toMatchObject({ round: 1 });
    expect(second.ticket.earlier.map((one) => one.title)).toEqual(['A', 'B']);
    await submit(second, token, result(second));
    expect((await listFindings(db.database.db, run)).map((one) => one.state)).toEqual(['open', 'open']);
    // new content: A is raised again, B is not
    await setFiles(deps, run, [changedFile(run, 'a.ts', { blobHead: 'f'.repeat(40), key: 'f'.repeat(64) })]);
    await cutTickets(deps, { run });
    const third = await leaseOne(token);
    await submit(third, token, result(third, { verdict: 'findings', findings: [found(third, 'A', 'x')] }));
    expect((await listFindings(db.database.db, run)).map((one) => [one.number, one.state])).toEqual([
      [1, 'open'],
      [2, 'fixed'],
    ]);
    expect(await verifies(run)).toBe(true);
  });

  test('RUN-4: a result whose key no head wants any more is late, and says so', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    await setFiles(deps, run, [changedFile(run, 'a.ts', { blobHead: 'f'.repeat(40), key: 'f'.repeat(64) })]);
    expect((await submit(lease, token, result(lease))).body).toMatchObject({ accepted: true, late: true });
    expect(await kinds(run)).toMatchObject({ 'ticket.ended': 1, 'ticket.late': 1 });
  });

  test('LSE-7: ping says the protocol and the run; another major version leases nothing', async () => {
    const run = await runWith(['a.ts']);
    expect((await call('/api/v1/ping')).body).toMatchObject({ protocol: '1.0', run: null });
    const { token } = await logIn(run);
    expect((await call('/api/v1/ping', undefined, token)).body).toMatchObject({ run });
    const of = await dispatched(run);
    const old = { ...loginBody(await issuer.mint(claims(of)), of.nonce), protocol: '2.0' };
    expect((await call('/api/v1/login', old)).body.error).toMatchObject({ code: 'protocol_version' });
  });

  test('LSE-1: a long poll is answered as soon as there is a ticket', async () => {
    const run = await runWith([]);
    const { token } = await logIn(run);
    const polling = call('/api/v1/leases', { max: 1, wait_ms: 20_000 }, token);
    await setFiles(deps, run, [changedFile(run, 'z.ts')]);
    await cutTickets(deps, { run });
    const from = performance.now();
    expect((await polling).body.leases).toHaveLength(1);
    expect(performance.now() - from).toBeLessThan(3_000);
  });

  test('the API refuses what it does not know: fields, sizes, bodies, tokens', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0, extra: 1 }, token)).status).toBe(400);
    expect((await call('/api/v1/leases', '{', token)).body.error.code).toBe('bad_request');
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0 })).status).toBe(401);
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0 }, 'x'.repeat(43))).status).toBe(401);
    const big = await call('/api/v1/leases/x/submit', { token: 'a'.repeat(1_100_000) }, token);
    expect(big).toMatchObject({ status: 413, body: { error: { code: 'too_large' } } });
    const described = await call('/api/v1/openapi.json');
    expect(Object.keys(described.body.paths)).toEqual(
      expect.arrayContaining([
        '/api/v1/login',
        '/api/v1/leases',
        '/api/v1/leases/{id}/submit',
        '/api/v1/sessions/{id}/end',
      ]),
    );
  });
});

describe('who gets a login', () => {
  const refused = async (token: string, nonce: string | null = null) => {
    const answer = await call('/api/v1/login', loginBody(token, nonce));
    return [answer.status, answer.body.error?.code];
  };

  test('attack 10: no algorithm, a foreign key, a thousand unknown key ids: 401 and at most one fetch of keys', async () => {
    const of = await dispatched('none');
    await refused(await issuer.mint(claims(of)));
    const before = issuer.fetches();
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const none = `${part({ alg: 'none', typ: 'JWT' })}.${part(claims(of))}.`;
    expect(await refused(none)).toEqual([401, 'unauthorized']);
    const hs = `${part({ alg: 'HS256', typ: 'JWT', kid: 'k1' })}.${part({ iss: issuer.url, ...claims(of) })}.AAAA`;
    expect(await refused(hs)).toEqual([401, 'unauthorized']);
    for (let i = 0; i < 1000; i++) {
      const head = part({ alg: 'RS256', typ: 'JWT', kid: `x${i}` });
      expect(await refused(`${head}.${part({ iss: issuer.url, ...claims(of) })}.AAAA`)).toEqual([
        401,
        'unauthorized',
      ]);
    }
    expect(issuer.fetches() - before).toBeLessThanOrEqual(1);
    for (const header of [{ jku: issuer.url }, { jwk: { kty: 'RSA' } }, { x5u: issuer.url }])
      expect(await refused(await issuer.mint(claims(of), header), of.nonce)).toEqual([401, 'unauthorized']);
  });

  test('attack 11: another issuer, or ours with a suffix, is 401 and nothing is fetched from it', async () => {
    const of = await dispatched('none');
    const foreign = await testIssuer();
    expect(await refused(await foreign.mint(claims(of)), of.nonce)).toEqual([401, 'unauthorized']);
    expect(await refused(await foreign.mint({ ...claims(of), iss: `${issuer.url}/evil` }))).toEqual([
      401,
      'unauthorized',
    ]);
    expect(foreign.fetches()).toBe(0);
    // a foreign key under our issuer's name
    expect(await refused(await foreign.mint({ ...claims(of), iss: issuer.url }))).toEqual([
      401,
      'unauthorized',
    ]);
    await foreign.close();
  });

  test('attack 12: aud as an array with ours, the owner’s default, ours with a slash: 401', async () => {
    const of = await dispatched('none');
    for (const aud of [[AUDIENCE], [AUDIENCE, 'x'], 'https://github.com/acme', `${AUDIENCE}/`])
      expect(await refused(await issuer.mint(claims(of, { aud })), of.nonce)).toEqual([401, 'unauthorized']);
  });

  test('attack 13: no exp, empty jti, numeric ids, iat in the future, too old: 401', async () => {
    const of = await dispatched('none');
    const now = Math.floor(Date.now() / 1000);
    for (const more of [
      { exp: undefined },
      { nbf: undefined },
      { jti: '' },
      { jti: undefined },
      { repository_id: 7 },
      { run_id: 7 },
      { iat: now + 120 },
      { iat: now - 900, exp: now + 300 },
      { exp: now - 60 },
    ])
      expect(await refused(await issuer.mint(claims(of, more)), of.nonce)).toEqual([401, 'unauthorized']);
  });

  test('attack 15: another repository of the same owner, or a re-made one of the same name: 403', async () => {
    const of = await dispatched('none');
    for (const more of [{ repository_id: '99' }, { repository_owner_id: '98' }])
      expect(await refused(await issuer.mint(claims(of, more)), of.nonce)).toEqual([403, 'forbidden']);
  });

  test('attack 16, case 61: a pull_request run, another branch, another workflow file: 403', async () => {
    const of = await dispatched('none');
    const file = 'acme/shop/.github/workflows/evil.yml@refs/heads/main';
    for (const more of [
      { event_name: 'pull_request', ref: 'refs/pull/1/merge' },
      { event_name: 'pull_request_target' },
      { event_name: 'push' },
      {
        ref: 'refs/heads/feature',
        workflow_ref: 'acme/shop/.github/workflows/countersign.yml@refs/heads/feature',
      },
      { ref_type: 'tag', ref: 'refs/tags/main' },
      { workflow_ref: file, job_workflow_ref: file },
      { job_workflow_ref: 'evil/repo/.github/workflows/countersign.yml@refs/heads/main' },
      { runner_environment: 'self-hosted' },
    ])
      expect(await refused(await issuer.mint(claims(of, more)), of.nonce)).toEqual([403, 'forbidden']);
  });

  test('AUT-1: a token id passes once, also when two replicas get it at the same moment', async () => {
    const of = await dispatched('none');
    const token = await issuer.mint(claims(of));
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => call('/api/v1/login', loginBody(token, of.nonce))),
    );
    expect(answers.map((one) => one.status).sort()).toEqual([200, 401, 401, 401]);
  });

  test('case 54, POOL-4: no dispatch of ours: 403; a nonce takes one workflow run, once; a re-run is another attempt', async () => {
    const of = await dispatched('none');
    expect(await refused(await issuer.mint(claims(of)), null)).toEqual([403, 'forbidden']);
    expect(await refused(await issuer.mint(claims(of)), randomUUID())).toEqual([403, 'forbidden']);
    const first = await call('/api/v1/login', loginBody(await issuer.mint(claims(of)), of.nonce));
    expect(first.status).toBe(200);
    const other = { ...of, workflowRun: String(workflowRuns++) };
    expect(await refused(await issuer.mint(claims(other)), of.nonce)).toEqual([403, 'owner_mismatch']);
    expect(await refused(await issuer.mint(claims(of, { run_attempt: '2' })), of.nonce)).toEqual([
      403,
      'owner_mismatch',
    ]);
  });

  test('case 59, RID-1: the same job logs in again, keeps its leases, and its old token is worth nothing', async () => {
    const run = await runWith(['a.ts']);
    const first = await logIn(run);
    const lease = await leaseOne(first.token);
    const again = await call('/api/v1/login', loginBody(await issuer.mint(claims(first)), first.nonce));
    expect(again.body.runner).toBe(first.runner);
    expect((await call('/api/v1/ping', undefined, first.token)).status).toBe(401);
    expect((await submit(lease, again.body.token, result(lease))).status).toBe(200);
    const stranger = await logIn(run);
    expect((await submit(lease, stranger.token, result(lease))).body.error.code).toBe('owner_mismatch');
  });

  test('facts/security.md §4: keys that cannot be had are 503, not 401', async () => {
    const broken = await testIssuer();
    broken.breakKeys(true);
    const verify = createVerifier({ issuers: [broken.url], audience: AUDIENCE });
    await expect(verify(await broken.mint(claims({ workflowRun: '1' })))).rejects.toMatchObject({
      code: 'oidc_unavailable',
      retryable: true,
    });
    await broken.close();
    await expect(verify(await broken.mint(claims({ workflowRun: '1' })))).rejects.toMatchObject({
      code: 'oidc_unavailable',
    });
  });
});
