import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Fault } from '../../app/errors.ts';
import { createVerifier } from '../../app/http/runner-auth.ts';
import {
  findRepository,
  setSetupCause,
  upsertEnrolment,
  upsertRepository,
} from '../../db/store/installation.ts';
import { storePolicy } from '../../db/store/policy.ts';
import {
  AUDIENCE,
  call,
  claims,
  clearQueue,
  db,
  dispatched,
  issuer,
  leaseOne,
  logIn,
  loginBody,
  nextWorkflowRun,
  result,
  runWith,
  startApi,
  stopApi,
  submit,
  told,
} from '../helpers/api.ts';
import { testIssuer } from '../helpers/issuer.ts';
import { INSTALLATION, OWNER, POLICY, REPOSITORY } from '../helpers/queue.ts';

beforeAll(startApi);
afterAll(stopApi);
beforeEach(clearQueue);

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
    const unknown = (i: number) =>
      `${part({ alg: 'RS256', typ: 'JWT', kid: `x${i}` })}.${part({ iss: issuer.url, ...claims(of) })}.AAAA`;
    for (let i = 0; i < 20; i++) expect(await refused(unknown(i))).toEqual([401, 'unauthorized']);
    // the rest at the boundary itself: a thousand requests cost more than what they prove
    const verify = createVerifier({ issuers: [issuer.url], audience: AUDIENCE, cooldownMs: 60_000 });
    await verify(await issuer.mint(claims(of)));
    const warm = issuer.fetches();
    for (let i = 0; i < 1000; i++)
      await expect(verify(unknown(i))).rejects.toMatchObject({ code: 'unauthorized' });
    expect(issuer.fetches() - warm).toBe(0);
    expect(warm - before).toBeLessThanOrEqual(2);
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
    // one that we know and serve as well, with the nonce of ours: its dispatches are its own
    await db.database.transaction((tx) =>
      upsertRepository(tx, {
        id: '99',
        installationId: INSTALLATION,
        ownerId: OWNER,
        owner: 'acme',
        name: 'other',
        defaultBranch: 'main',
        private: true,
      }),
    );
    const file = 'acme/other/.github/workflows/countersign.yml@refs/heads/main';
    const theirs = {
      repository_id: '99',
      repository: 'acme/other',
      workflow_ref: file,
      job_workflow_ref: file,
    };
    expect(await refused(await issuer.mint(claims(of, theirs)), of.nonce)).toEqual([403, 'forbidden']);
    expect((await call('/api/v1/login', loginBody(await issuer.mint(claims(of)), of.nonce))).status).toBe(
      200,
    );
  });

  test('attack 16, case 40, case 61: a pull_request run or any other event, another branch, another workflow file: 403', async () => {
    const of = await dispatched('none');
    const file = 'acme/shop/.github/workflows/evil.yml@refs/heads/main';
    for (const more of [
      { event_name: 'pull_request', ref: 'refs/pull/1/merge' },
      ...[
        'pull_request_target',
        'push',
        'merge_group',
        'workflow_run',
        'issue_comment',
        'schedule',
        'repository_dispatch',
        'Workflow_Dispatch',
      ].map((event_name) => ({ event_name })),
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

  test('RUN-9: a job without a key of any model is set-up that is not complete, and leases nothing', async () => {
    const run = await runWith(['src/a.ts']);
    await db.database.transaction(async (tx) => {
      const state = {
        repositoryId: REPOSITORY,
        state: 'valid',
        commit: 'b'.repeat(40),
        mode: 'enforce',
      } as const;
      await upsertEnrolment(tx, {
        ...state,
        baseRef: 'main',
        policyHash: await storePolicy(tx, POLICY),
        error: null,
      });
    });
    const cause = async () => (await findRepository(db.database.db, REPOSITORY))?.setupCause;
    const enter = async (keys: string[] | null) => {
      const of = await dispatched(run);
      const answer = await call('/api/v1/login', loginBody(await issuer.mint(claims(of)), of.nonce, keys));
      expect(answer.status).toBe(200);
      return call('/api/v1/leases', { max: 1, wait_ms: 0 }, answer.body.token);
    };
    // one model of two is enough, and an Action that tells nothing proves nothing
    for (const keys of [['XAI_API_KEY', 'OTHER_TOKEN'], null]) {
      expect((await enter(keys)).body.leases?.length ?? 0).toBeLessThanOrEqual(1);
      expect(await cause()).toBeNull();
    }
    const held = await enter(['OTHER_TOKEN']);
    expect(held.body).toMatchObject({ leases: [], done: true });
    expect(await cause()).toContain('it needs OPENAI_API_KEY, XAI_API_KEY');
    const { rows } = await db.database.db.execute(
      sql`select key from graphile_worker.jobs where key = ${`decide-gate:${run}`}`,
    );
    expect(rows, 'the gate says so').toHaveLength(1);
    await db.database.transaction((tx) => setSetupCause(tx, REPOSITORY, null));
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
    const other = { ...of, workflowRun: nextWorkflowRun() };
    expect(await refused(await issuer.mint(claims(other)), of.nonce)).toEqual([403, 'owner_mismatch']);
    expect(await refused(await issuer.mint(claims(of, { run_attempt: '2' })), of.nonce)).toEqual([
      403,
      'owner_mismatch',
    ]);
  });

  test.each<[string, Partial<NonNullable<typeof told.run>> | null]>([
    ['no run', null],
    ['another event', { event: 'push' }],
    ['another attempt', { attempt: 2 }],
    ['another commit', { headSha: 'e'.repeat(40) }],
    ['another branch', { headBranch: 'feature' }],
    ['another file', { path: '.github/workflows/evil.yml' }],
    ['a person who started it with our nonce', { actor: 'mallory' }],
    ['a bot of another app', { actor: 'countersign-2[bot]' }],
  ])('facts/security.md §4 check 9: GitHub tells of %s for the run of a good token: 403', async (_, run) => {
    const of = await dispatched('none');
    const token = await issuer.mint(claims(of));
    told.run = run;
    try {
      expect(await refused(token, of.nonce)).toEqual([403, 'forbidden']);
    } finally {
      told.run = {};
    }
    // nothing was spent by it
    expect((await call('/api/v1/login', loginBody(token, of.nonce))).status).toBe(200);
  });

  test('facts/security.md §4 check 9: GitHub that is away is 503, and the same token passes once it is back', async () => {
    const of = await dispatched('none');
    const token = await issuer.mint(claims(of));
    told.failure = new Fault('github_unavailable', 'no answer', { retryable: true });
    try {
      expect(await refused(token, of.nonce)).toEqual([503, 'github_unavailable']);
    } finally {
      told.failure = null;
    }
    expect((await call('/api/v1/login', loginBody(token, of.nonce))).status).toBe(200);
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

  test('POOL-1, LSE-1: a runner started for one run works any ticket of its repository', async () => {
    const first = await runWith(['a.ts']);
    const { token } = await logIn(first);
    const second = await runWith(['b.ts']);
    const got = [await leaseOne(token), await leaseOne(token)];
    expect(got.map((lease) => lease.ticket.run).sort()).toEqual([first, second].sort());
  });

  test('AUT-4: what a runner is told holds no credential but its own', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    expect(Object.keys(lease)).toEqual([
      'id',
      'token',
      'grant',
      'expires_at',
      'heartbeat_ms',
      'session',
      'ticket',
    ]);
    expect(lease.ticket.repository.clone_url).toBe('https://github.test/acme/shop.git');
    const { rows } = await db.database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from lease where position(${lease.token}::text in lease::text) > 0`,
    );
    expect(rows[0]?.n).toBe(0);
  });
});
