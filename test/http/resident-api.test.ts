import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { changePool, listPoolViews } from '../../app/flow/change-pool.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import { expire } from '../../app/flow/expire.ts';
import { verifyInstallation } from '../../app/flow/verify-run.ts';
import { QUEUE_CHANNEL, wake } from '../../app/flow/wake.ts';
import { listenTo } from '../../db/listen.ts';
import { upsertInstallation, upsertRepository } from '../../db/store/installation.ts';
import { putPoolUse } from '../../db/store/pool.ts';
import { ensureProviders } from '../../db/store/provider.ts';
import {
  call,
  clearQueue,
  db,
  deps,
  type Lease,
  result,
  startApi,
  stopApi,
  submit,
  told,
} from '../helpers/api.ts';
import { changedFile, INSTALLATION, OWNER, openQueueRun, REPOSITORY, setFiles } from '../helpers/queue.ts';

const OTHER = '9007199254740901';
const THEIRS = '9007199254740903';
const UNNAMED = '9007199254740905';
const SECOND = '9007199254740907';

let runs = 0;
/** A run whose files are cut into tickets, in one of the repositories. */
async function waiting(
  files: number,
  repositoryId = REPOSITORY,
  installationId = INSTALLATION,
  level: 'L1' | 'L2' = 'L1',
) {
  const id = `resident-${++runs}`;
  await openQueueRun(deps, id, 1_000 + runs, { installationId, repositoryId });
  await setFiles(
    deps,
    id,
    Array.from({ length: files }, (_, i) => changedFile(id, `f${i}-${runs}`, { level })),
  );
  await cutTickets(deps, { run: id });
  return id;
}

async function place(repositoryId: string, installationId: string, pools: readonly string[]) {
  await db.database.transaction(async (tx) => {
    await upsertRepository(tx, {
      id: repositoryId,
      installationId,
      ownerId: OWNER,
      owner: 'acme',
      name: `r${repositoryId}`,
      defaultBranch: 'main',
      private: true,
    });
    await putPoolUse(tx, { installationId, repositoryId, baseRef: 'main' }, pools);
  });
}

const add = (name: string, ...installations: string[]) =>
  changePool(deps, name, { change: 'add', installations, repositories: null });
const tokenOf = async (name: string) => (await changePool(deps, name, { change: 'token' })).secret ?? '';
const body = (pool: string, token: string, more: Record<string, unknown> = {}) => ({
  protocol: '1.2',
  pool,
  token,
  instance: randomUUID(),
  version: '0.1.0',
  capacity: 4,
  keys: null,
  ...more,
});
const logIn = async (pool: string, token: string, more: Record<string, unknown> = {}) => {
  const answer = await call('/api/v1/login', body(pool, token, more));
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const ask = async (token: string, max = 4, more: Record<string, unknown> = {}) => {
  const answer = await call('/api/v1/leases', { max, wait_ms: 0, ...more }, token);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body.leases;
};
const repositoriesOf = (leases: readonly Lease[]) => leases.map((one) => one.ticket.repository.id);

beforeAll(async () => {
  await startApi();
  told.readToken = async (repository) => `ghs_${repository.id}`;
  await db.database.transaction(async (tx) => {
    await upsertInstallation(tx, { id: OTHER, accountId: '1', accountLogin: 'other', status: 'active' });
    await ensureProviders(tx, OTHER, ['command', 'openai'], 4);
  });
  await place(REPOSITORY, INSTALLATION, ['own']);
  await place(THEIRS, OTHER, ['own', 'narrow']);
  await place(UNNAMED, INSTALLATION, []);
  await add('own', INSTALLATION);
});
afterAll(stopApi);
beforeEach(async () => {
  await clearQueue();
  await db.database.db.execute(sql`update runner set ended_at = cs_now() where ended_at is null`);
});

describe('AUT-2: logging in with a pool token', () => {
  test('AUT-2, RID-1: what was verified is frozen: the pool, and null for all that a workflow run would be', async () => {
    const { token, runner } = await logIn('own', await tokenOf('own'));
    const { rows } = await db.database.db.execute(
      sql`select identity, pool_token from login where runner_id = ${runner}`,
    );
    expect(rows).toEqual([
      {
        identity: {
          role: 'worker',
          installation: null,
          repository: null,
          run: null,
          workflowRun: null,
          attempt: null,
          job: null,
          pool: 'own',
          serves: ['review'],
        },
        pool_token: expect.any(String),
      },
    ]);
    expect(await ask(token)).toEqual([]);
    expect((await call('/api/v1/ping', undefined, token)).body).toMatchObject({ run: null });
  });

  test('RID-1: a second login of the same process is the same runner with one login, of another process another runner', async () => {
    const secret = await tokenOf('own');
    const instance = randomUUID();
    const first = await logIn('own', secret, { instance });
    const again = await logIn('own', secret, { instance });
    expect(again.runner).toBe(first.runner);
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0 }, first.token)).status).toBe(401);
    expect((await logIn('own', secret)).runner).not.toBe(first.runner);
  });

  test('AUT-2: no oracle: a pool that is not there, a token of another pool, of none and a revoked one are told the same', async () => {
    const secret = await tokenOf('own');
    await add('narrow', OTHER);
    const narrow = await changePool(deps, 'narrow', { change: 'token' });
    await changePool(deps, 'narrow', { change: 'revoke', token: narrow.token });
    const answers = [];
    for (const [pool, token] of [
      ['nowhere', secret],
      ['narrow', secret],
      ['own', 'x'.repeat(43)],
      ['narrow', narrow.secret ?? ''],
    ] as const) {
      const { status, body: said } = await call('/api/v1/login', body(pool, token));
      answers.push([status, said.error]);
    }
    expect(new Set(answers.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(answers[0]).toEqual([401, expect.objectContaining({ code: 'unauthorized' })]);
  });

  test('AUT-2: refused logins are told to slow down, and who has a token that holds is not held up by them', async () => {
    const secret = await tokenOf('own');
    const statuses = [];
    for (let i = 0; i < 40; i++)
      statuses.push((await call('/api/v1/login', body('own', 'y'.repeat(43)))).status);
    expect(statuses.slice(-5)).toEqual([429, 429, 429, 429, 429]);
    await logIn('own', secret);
  });

  test('LSE-7: another major version is told so and gets no login', async () => {
    const answer = await call('/api/v1/login', body('own', await tokenOf('own'), { protocol: '2.0' }));
    expect(answer.body.error.code).toBe('protocol_version');
  });

  test('AUT-2: only the hash of a token is kept; a revoked one ends its logins, its runners and their leases', async () => {
    const made = await changePool(deps, 'own', { change: 'token' });
    const kept = await changePool(deps, 'own', { change: 'token' });
    const { rows } = await db.database.db.execute<{ n: number }>(
      sql`select length(token_hash) as n from pool_token where id = ${made.token}`,
    );
    expect(rows).toEqual([{ n: 32 }]);
    await waiting(2);
    const one = await logIn('own', made.secret ?? '');
    const two = await logIn('own', kept.secret ?? '');
    const [mine] = await ask(one.token, 1);
    expect(mine).toBeDefined();
    await changePool(deps, 'own', { change: 'revoke', token: made.token });
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0 }, one.token)).status).toBe(401);
    expect((await call('/api/v1/login', body('own', made.secret ?? ''))).status).not.toBe(200);
    await expire(deps);
    const { rows: leases } = await db.database.db.execute(
      sql`select state from lease where id = ${mine?.id}`,
    );
    expect(leases).toEqual([{ state: 'expired' }]);
    expect(await ask(two.token, 1), 'another token is another token').toHaveLength(1);
  });

  test('LED-4: each change of a pool is a row of every installation that it concerns, and the chains verify', async () => {
    const rowsOf = async (id: string) => {
      const found = await verifyInstallation(deps, { id, epoch: 1 }, { full: true });
      expect(found.verdict.kind).toBe('intact');
      return found.rows.flatMap((row) =>
        row.kind === 'pool.registered' && row.data.pool === 'rows' ? [row.data] : [],
      );
    };
    await add('rows', INSTALLATION, OTHER);
    const made = await changePool(deps, 'rows', { change: 'token' });
    await changePool(deps, 'rows', { change: 'remove' });
    const said = [
      { pool: 'rows', change: 'added', repositories: null, serves: ['review'] },
      { pool: 'rows', change: 'token', tokens: [made.token] },
      { pool: 'rows', change: 'removed', tokens: [made.token] },
    ];
    expect(await rowsOf(INSTALLATION)).toEqual(said);
    expect(await rowsOf(OTHER)).toEqual(said);
    expect((await call('/api/v1/login', body('rows', made.secret ?? ''))).status).not.toBe(200);
  });

  test('POOL-1: a pool is registered for installations and repositories that are known, and nothing else', async () => {
    await expect(add('own', '77')).rejects.toMatchObject({ code: 'not_found' });
    await expect(
      changePool(deps, 'own', { change: 'add', installations: [OTHER], repositories: [REPOSITORY] }),
    ).rejects.toMatchObject({ code: 'not_found' });
    await expect(changePool(deps, 'nowhere', { change: 'token' })).rejects.toMatchObject({
      code: 'not_found',
    });
    expect((await listPoolViews(deps)).map((one) => one.name)).not.toContain('nowhere');
  });
});

describe('LSE-1: what a resident runner leases', () => {
  test('LSE-1, AUT-4: tickets of its pool’s repositories, each with a token that reads that one and is written down nowhere', async () => {
    await waiting(1);
    await waiting(1, UNNAMED);
    await waiting(1, THEIRS, OTHER);
    const { token } = await logIn('own', await tokenOf('own'));
    const leases = await ask(token, 4);
    expect(repositoriesOf(leases), 'not where no policy names it, nor where it is not registered').toEqual([
      REPOSITORY,
    ]);
    expect(leases[0]?.read_token).toBe(`ghs_${REPOSITORY}`);
    const { rows } = await db.database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from lease where lease::text like '%ghs_%'`,
    );
    expect(rows).toEqual([{ n: 0 }]);
  });

  test('LSE-1: two installations share a pool evenly, whatever the one has waiting', async () => {
    await add('own', OTHER);
    await waiting(12);
    await waiting(12, REPOSITORY);
    await waiting(3, THEIRS, OTHER);
    const { token } = await logIn('own', await tokenOf('own'));
    const first = await ask(token, 4);
    const of = (leases: readonly Lease[], id: string) =>
      repositoriesOf(leases).filter((one) => one === id).length;
    expect([of(first, REPOSITORY), of(first, THEIRS)]).toEqual([2, 2]);
    // one at a time: the next goes to who was served longest ago
    const next = [];
    for (let i = 0; i < 2; i++) next.push(...(await ask(token, 1)));
    expect(new Set(repositoriesOf(next)).size).toBe(2);
    expect(repositoriesOf(await ask(token, 2)), 'one that has nothing left holds nobody up').toEqual([
      REPOSITORY,
      REPOSITORY,
    ]);
    await changePool(deps, 'own', { change: 'remove' });
    await add('own', INSTALLATION);
  });

  test('LSE-1, LSE-4: with its result it asks for the next, which may be of another installation', async () => {
    await add('own', OTHER);
    await waiting(3);
    await waiting(3, THEIRS, OTHER);
    const { token } = await logIn('own', await tokenOf('own'));
    const seen: string[] = [];
    let [lease] = await ask(token, 1);
    while (lease !== undefined) {
      seen.push(lease.ticket.repository.id);
      const done: Awaited<ReturnType<typeof call>> = await call(
        `/api/v1/leases/${lease.id}/submit`,
        {
          token: lease.token,
          grant: lease.grant,
          result: result(lease),
          lease_next: { max: 1, request: randomUUID() },
        },
        token,
      );
      expect(done.status, JSON.stringify(done.body)).toBe(200);
      lease = done.body.next.leases[0];
    }
    expect(seen).toHaveLength(6);
    const turns = seen.map((id) => (id === REPOSITORY ? 'a' : 'b')).join('');
    expect(turns, 'in turns').toMatch(/^(abab|baba)/);
    await changePool(deps, 'own', { change: 'remove' });
    await add('own', INSTALLATION);
  });

  test('LSE-1, ADM-1: with its result it asks for the next, of another repository where that one waited for the slot', async () => {
    await place(SECOND, INSTALLATION, ['own']);
    await waiting(12, REPOSITORY, INSTALLATION, 'L2');
    const { token } = await logIn('own', await tokenOf('own'));
    const held = await ask(token, 4);
    await waiting(4, SECOND, INSTALLATION, 'L2');
    expect(await ask(token, 1), 'every slot is taken').toEqual([]);
    const seen: string[] = [];
    for (let i = 0; i < 6; i++) {
      const lease = held.shift();
      if (lease === undefined) throw new Error('nothing is held');
      const proof = { token: lease.token, grant: lease.grant };
      const admission = { ...proof, reviewer: 'model', purpose: 'review', prompt_tokens: 10 };
      const admitted = await call(`/api/v1/leases/${lease.id}/admit`, admission, token);
      const of = { id: admitted.body.session, provider: 'openai', model: 'm-1' };
      const done = await call(
        `/api/v1/leases/${lease.id}/submit`,
        {
          ...proof,
          result: result(lease, { sessions: [{ ...result(lease).sessions[0]!, ...of }] }),
          lease_next: { max: 1, request: randomUUID() },
        },
        token,
      );
      expect(done.status, JSON.stringify(done.body)).toBe(200);
      held.push(...done.body.next.leases);
      seen.push(...repositoriesOf(done.body.next.leases).map((id: string) => (id === SECOND ? 'b' : 'a')));
    }
    expect(seen.join(''), 'the window of who was there first, then who waited longest').toBe('aabbbb');
    await place(SECOND, INSTALLATION, []);
  });

  test('LSE-1: a repository whose token GitHub does not give is passed over, and nothing of it is leased', async () => {
    await place(UNNAMED, INSTALLATION, ['own']);
    const run = await waiting(1, UNNAMED);
    await waiting(1);
    const { token } = await logIn('own', await tokenOf('own'));
    const given = told.readToken;
    const { Fault } = await import('../../app/errors.ts');
    told.readToken = async (repository) => {
      if (repository.id === UNNAMED) throw new Fault('github_unavailable', 'no', { retryable: true });
      return `ghs_${repository.id}`;
    };
    expect(repositoriesOf(await ask(token, 4))).toEqual([REPOSITORY]);
    const { rows } = await db.database.db.execute(sql`select state from ticket where run_id = ${run}`);
    expect(rows).toEqual([{ state: 'pending' }]);
    told.readToken = given;
    await place(UNNAMED, INSTALLATION, []);
  });

  test('LSE-5: an answer that was lost goes back by its name, also where nothing else is to be had', async () => {
    const run = await waiting(1, THEIRS, OTHER);
    await add('own', OTHER);
    const { token } = await logIn('own', await tokenOf('own'));
    const request = randomUUID();
    expect(await ask(token, 2, { request })).toHaveLength(1);
    const again = await ask(token, 2, { request, again: true });
    expect(again).toHaveLength(1);
    const { rows } = await db.database.db.execute(
      sql`select state, count(*)::int as n from lease where run_id = ${run} group by state order by state`,
    );
    expect(rows).toEqual([
      { state: 'live', n: 1 },
      { state: 'returned', n: 1 },
    ]);
    await changePool(deps, 'own', { change: 'remove' });
    await add('own', INSTALLATION);
  });

  test('LSE-3: a lease of one runner of the pool is of no use to another, and its result counts as the runner’s', async () => {
    await waiting(1);
    const secret = await tokenOf('own');
    const mine = await logIn('own', secret);
    const stranger = await logIn('own', secret);
    const [lease] = await ask(mine.token, 1);
    if (lease === undefined) throw new Error('no lease');
    expect((await submit(lease, stranger.token, result(lease))).body.error.code).toBe('owner_mismatch');
    expect((await submit(lease, mine.token, result(lease))).status).toBe(200);
  });

  test('LSE-1, case 72: who waits is woken when a repository of its pool has work', async () => {
    const queue = listenTo(db.database, QUEUE_CHANNEL, (repository) => wake(db.database, repository));
    const { token } = await logIn('own', await tokenOf('own'));
    const asked = call('/api/v1/leases', { max: 1, wait_ms: 20_000 }, token);
    await waiting(1);
    const answer = await asked;
    await queue.close();
    expect(answer.body.leases).toHaveLength(1);
  });

  test('LSE-8: it reads the runs of repositories that its pool serves, and no others', async () => {
    const { token } = await logIn('own', await tokenOf('own'));
    const [mine, theirs] = [await waiting(1), await waiting(1, THEIRS, OTHER)];
    expect((await call(`/api/v1/runs/${mine}/wait`, undefined, token)).status).toBe(200);
    expect((await call(`/api/v1/runs/${theirs}/wait`, undefined, token)).status).toBe(404);
  });

  test('LSE-6: a runner that goes is gone at once: no capacity, no login, and what it held goes on elsewhere', async () => {
    const run = await waiting(2);
    const secret = await tokenOf('own');
    const { token } = await logIn('own', secret);
    expect(await ask(token, 1)).toHaveLength(1);
    const alive = async () => (await listPoolViews(deps)).find((one) => one.name === 'own');
    expect(await alive()).toMatchObject({ runners: 1, capacity: 4, leased: 1 });
    expect((await call('/api/v1/logout', {}, token)).status).toBe(200);
    expect(await alive()).toMatchObject({ runners: 0, capacity: 0, leased: 0 });
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0 }, token)).status).toBe(401);
    const { rows } = await db.database.db.execute(
      sql`select state from lease where run_id = ${run} order by state`,
    );
    expect(rows).toEqual([{ state: 'expired' }]);
  });
});
