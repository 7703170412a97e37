/** A run for programs (LSE-8): status, and waiting until a block settles, over real HTTP. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secretHash } from '../../app/flow/login.ts';
import { runResponse, waitResponse } from '../../app/protocol/run.ts';
import { notifyRun, watchRun } from '../../db/store/notice.ts';
import { addLogin, addRunner } from '../../db/store/runner.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { asOwner } from '../helpers/database.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';
import { Visitor } from '../helpers/visitor.ts';

let stage: TestStage;
let repository: Repository;
let pull: Pull;
let run: string;
let alice: Visitor;
let held: ReturnType<TestStage['hold']>;
beforeAll(async () => {
  stage = await testStage();
  held = stage.hold();
  ({ repository } = await stage.repository({ name: 'waits', private: true }));
  await repository.commit({
    branch: 'topic',
    author: stage.author,
    message: 'One\n\nBlock: one',
    files: { 'slow.ts': held.line },
  });
  pull = await repository.openPull({ head: 'topic', user: stage.author });
  alice = new Visitor(stage.server.url);
  await alice.enter(stage.gh, stage.author);
  await stage.verdict(pull, { until: () => true });
  run = (await stage.run(pull))?.id ?? '';
});
afterAll(() => stage.close());

const get = async (path: string, token?: string) => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(`${stage.server.url}/api/v1/runs/${path}`, { headers });
  return { status: answer.status, body: (await answer.json()) as { error?: { code: string } } };
};
/** How many connections listen for runs here, as the owner sees them; optionally ended. */
const listeners = (act: 'select' | 'pg_terminate_backend') =>
  asOwner(stage.database.url, async (client) => {
    const what = act === 'select' ? 'pid' : 'pg_terminate_backend(pid)';
    const found = await client.query(
      `select ${what} from pg_stat_activity where datname = current_database() and query ilike 'listen countersign_run'`,
    );
    return found.rowCount;
  });
const login = async (repositoryId: string, token: string) => {
  await stage.database.database.transaction(async (tx) => {
    const id = `runner-${token.slice(0, 8)}`;
    await addRunner(tx, {
      id,
      installationId: '1',
      repositoryId,
      pool: 'pool',
      version: '1',
      capacity: 1,
    });
    await addLogin(
      tx,
      {
        id: `login-${token.slice(0, 8)}`,
        runnerId: id,
        tokenHash: secretHash(token),
        claims: 'x',
        identity: {
          role: 'worker',
          installation: '1',
          repository: repositoryId,
          run: null,
          workflowRun: null,
          attempt: null,
          job: null,
          pool: 'pool',
        },
      },
      3_600_000,
    );
  });
  return token;
};

describe('LSE-8: waiting until a block settles', () => {
  it('answers at once without max_ms, and when the block settles with it, long before the time is up', async () => {
    const now = await alice.get(`/api/v1/runs/${run}/wait?block=one`);
    expect(now.status).toBe(200);
    expect(waitResponse.parse(JSON.parse(now.text))).toMatchObject({ block: 'one', done: false });
    const started = performance.now();
    const waiting = alice.get(`/api/v1/runs/${run}/wait?block=one&max_ms=55000`);
    // meanwhile the page of the queue shows the ticket: waiting, then with a runner (OPS-8)
    await expect
      .poll(async () => (await alice.get('/queue')).text, { timeout: 60_000 })
      .toMatch(/Live leases[\s\S]*<code>slow\.ts<\/code>/);
    await held.release();
    const waited = waitResponse.parse(JSON.parse((await waiting).text));
    expect(waited).toEqual({ block: 'one', files: [{ file: 'slow.ts', status: 'counted' }], done: true });
    expect(performance.now() - started).toBeLessThan(50_000);
  });

  it('without a block it is the whole run, and an answer that is over is given at once', async () => {
    const all = JSON.parse((await alice.get(`/api/v1/runs/${run}/wait?max_ms=50000`)).text);
    expect(all).toEqual({ block: null, files: [{ file: 'slow.ts', status: 'counted' }], done: true });
  });

  it.each([
    ['block=nobody', 404, 'not_found'],
    ['max_ms=55001', 400, 'bad_request'],
    ['max_ms=-1', 400, 'bad_request'],
    ['blocks=one', 400, 'bad_request'],
  ])('%s is refused with %i', async (query, status, code) => {
    const seen = await alice.get(`/api/v1/runs/${run}/wait?${query}`);
    expect([seen.status, JSON.parse(seen.text).error.code]).toEqual([status, code]);
  });

  it('a notice wakes whoever watches that run and nobody else, and nothing stays behind', async () => {
    const { database } = stage.database;
    const [mine, other] = [watchRun(database, 'run-a'), watchRun(database, 'run-b')];
    const over = new AbortController();
    const { signal } = over;
    try {
      await expect.poll(() => mine.heard()).toBe(true);
      await database.transaction((tx) => notifyRun(tx, 'run-a'));
      const first = await Promise.race([
        mine.next(120_000, signal).then(() => 'mine'),
        other.next(110_000, signal).then(() => 'other'),
      ]);
      expect(first).toBe('mine');
      // what came between two waits is not lost
      await database.transaction((tx) => notifyRun(tx, 'run-a'));
      await expect
        .poll(async () => {
          const started = performance.now();
          await mine.next(60_000, signal);
          return performance.now() - started < 50_000;
        })
        .toBe(true);
    } finally {
      over.abort();
      await mine.close();
      await other.close();
    }
    const listens = await stage.query(
      "select 1 from pg_stat_activity where query ilike 'listen countersign_run'",
    );
    expect(listens).toEqual([]);
  });

  it('a connection that is lost takes notices with it, not the waiting', async () => {
    const { database } = stage.database;
    const watch = watchRun(database, 'run-a');
    const signal = new AbortController().signal;
    try {
      await expect.poll(() => watch.heard()).toBe(true);
      expect(await listeners('pg_terminate_backend')).toBe(1);
      await expect.poll(() => watch.heard()).toBe(false);
      const started = performance.now();
      await watch.next(50, signal);
      expect(performance.now() - started).toBeGreaterThanOrEqual(40);
      await expect.poll(() => watch.heard(), { message: 'it listens again', timeout: 60_000 }).toBe(true);
      await database.transaction((tx) => notifyRun(tx, 'run-a'));
      const again = performance.now();
      await watch.next(60_000, signal);
      expect(performance.now() - again).toBeLessThan(50_000);
    } finally {
      await watch.close();
    }
  });
});

describe('LSE-8: the status of a run', () => {
  it('says what the gate says, in the form of its description', async () => {
    await stage.verdict(pull, { until: (check) => check.conclusion === 'success' });
    const seen = await alice.get(`/api/v1/runs/${run}`);
    expect(seen.headers.get('cache-control')).toBe('no-store');
    expect(runResponse.parse(JSON.parse(seen.text))).toMatchObject({
      run,
      repository: 'acme/waits',
      pull: String(pull.number),
      conclusion: 'success',
      files: 1,
      counted: 1,
      reasons: [],
      blocks: [{ block: 'one', verdict: 'passed', files: 1, counted: 1 }],
    });
    const described = (await (await fetch(`${stage.server.url}/api/v1/openapi.json`)).json()) as {
      paths: Record<string, { get: { security: unknown } }>;
    };
    expect(Object.keys(described.paths)).toEqual(
      expect.arrayContaining(['/api/v1/runs/{id}', '/api/v1/runs/{id}/wait']),
    );
    expect(described.paths['/api/v1/runs/{id}/wait']?.get.security).toEqual([{ login: [] }, { visit: [] }]);
  });

  it('a login of that repository may ask, one of another and nobody may not; a run that is not there answers the same', async () => {
    const own = await login(String(repository.id), 'o'.repeat(43));
    const foreign = await login('1', 'f'.repeat(43));
    for (const path of [run, `${run}/wait`]) {
      expect((await get(path, own)).status).toBe(200);
      expect((await get(path)).status).toBe(401);
      expect((await get(path, 'n'.repeat(43))).status).toBe(401);
      const hidden = await get(path, foreign);
      expect(hidden.status).toBe(404);
      expect(hidden.body).toEqual((await get(path.replace(run, 'no-such-run'), foreign)).body);
    }
    const mallory = new Visitor(stage.server.url);
    await mallory.enter(stage.gh, stage.gh.createUser('mallory'));
    const [hidden, none] = [
      await mallory.get(`/api/v1/runs/${run}`),
      await mallory.get('/api/v1/runs/no-such-run'),
    ];
    expect([hidden.status, none.status]).toEqual([404, 404]);
    expect(hidden.text).toBe(none.text);
  });
});
