import nock from 'nock';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fault } from '../../app/errors.ts';
import { createGitHubApp } from '../../app/github/octokit.ts';
import type { GitHub, GitHubApp, RepositoryAddress } from '../../app/github/port.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, Installation } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { recordsAnswers } from '../helpers/recorded.ts';

const log = pino({ level: 'silent' });
let gh: SandboxGitHub;
let app: App;
let alice: ReturnType<SandboxGitHub['createUser']>;
let repo: Repository;
let installed: Installation;
let pull: Pull;
let port: GitHubApp;
let github: GitHub;
let address: RepositoryAddress;

const connect = (of: App = app, apiUrl = gh.apiUrl): GitHubApp =>
  createGitHubApp({
    appId: String(of.id),
    privateKey: of.privateKey,
    webhookSecret: of.webhookSecret,
    apiUrl,
    log,
  });

beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  app = gh.createApp();
  repo = await gh.createRepository({ owner: alice, files: { '.github/countersign.yml': 'version: 1\n' } });
  installed = await gh.installApp(app, repo);
  await repo.commit({ branch: 'topic', message: 'Change', files: { 'a.ts': 'export {};\n' } });
  pull = await repo.openPull({ head: 'topic', user: alice });
  port = connect();
  github = await port.installation(String(installed.id));
  address = { id: String(repo.id), owner: alice.login, name: repo.name };
});
afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

async function fault(promise: Promise<unknown>): Promise<Fault> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error('no fault');
}

describe('the App', () => {
  it('tells its slug, its installations and their repositories, ids as strings', async () => {
    expect(await port.slug()).toBe('countersign');
    expect(await port.listInstallations()).toEqual([
      expect.objectContaining({ id: String(installed.id), accountLogin: 'alice', suspended: false }),
    ]);
    const [found] = await port.listRepositories(String(installed.id));
    expect(found).toMatchObject({ ...address, defaultBranch: 'main', private: false });
  });

  it('OPS-2: lists deliveries with their guid and whether they arrived', async () => {
    const { deliveries, cursor } = await port.listDeliveries(null);
    expect(cursor).toBeNull();
    for (const one of deliveries) expect(one.guid).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('reads', () => {
  it('answer a pull request, its base, a file and a branch', async () => {
    const read = await github.getPull(address, String(pull.number));
    expect(read).toMatchObject({
      number: String(pull.number),
      state: 'open',
      baseRef: 'main',
      commits: 1,
      changedFiles: 1,
    });
    expect(read.author).toEqual({ id: String(alice.id), login: 'alice' });
    expect((await github.listOpenPulls(address)).map((p) => p.head)).toEqual([read.head]);
    expect(await github.getMergeBase(address, read.base, read.head)).toBe(read.base);
    expect((await github.getContent(address, '.github/countersign.yml', 'main'))?.toString()).toBe(
      'version: 1\n',
    );
    expect(await github.getContent(address, 'absent.yml', 'main')).toBeNull();
    expect(await github.getBranchHead(address, 'main')).toBe(read.base);
    expect(await github.getBranchHead(address, 'absent')).toBeNull();
  });

  it('CMD-3: answer the permission of a person, none for a stranger', async () => {
    const bob = gh.createUser('bob');
    repo.setCollaborator(bob, 'maintain');
    expect(await github.getPermission(address, 'bob')).toEqual({
      permission: 'maintain',
      userId: String(bob.id),
    });
    expect((await github.getPermission(address, 'nobody-at-all')).permission).toBe('none');
    expect((await github.getPermission(address, 'alice')).permission).toBe('admin');
  });

  it('are tried again when GitHub fails, creates are not', async () => {
    gh.faults.add({ on: 'pulls/get', times: 2, when: 'before', status: 502 });
    await expect(github.getPull(address, String(pull.number))).resolves.toMatchObject({ state: 'open' });
    const before = gh.count('issues/create-comment');
    gh.faults.add({ on: 'issues/create-comment', times: 1, when: 'after', status: 502 });
    const failed = await fault(github.createComment(address, String(pull.number), 'hello'));
    expect(failed).toMatchObject({ code: 'github_unavailable', retryable: true });
    expect(gh.count('issues/create-comment')).toBe(before + 1);
  });
});

describe('writes', () => {
  it('PUB-2: make a check run, update it, and list it by our app, newest first', async () => {
    const content = { status: 'queued', title: 'Waiting', summary: 'Nothing yet' } as const;
    const first = await github.createCheckRun(address, {
      ...content,
      name: 'countersign',
      headSha: pull.head.sha,
      externalId: 'cs:1',
    });
    const second = await github.createCheckRun(address, {
      ...content,
      name: 'countersign',
      headSha: pull.head.sha,
      externalId: 'cs:2',
    });
    await github.updateCheckRun(address, second.id, {
      status: 'completed',
      conclusion: 'failure',
      title: 'No',
      summary: 'Because',
      annotations: [{ path: 'a.ts', start_line: 1, end_line: 1, annotation_level: 'failure', message: 'x' }],
    });
    const listed = await github.listCheckRuns(address, pull.head.sha, 'countersign');
    expect(listed.map((run) => run.id)).toEqual([second.id, first.id]);
    expect(listed[0]).toMatchObject({
      externalId: 'cs:2',
      conclusion: 'failure',
      annotations: 1,
      appId: String(app.id),
    });
    expect(await github.getCheckRun(address, first.id)).toMatchObject({ status: 'queued', conclusion: null });
    expect(await github.getCheckRun(address, '999999999999')).toBeNull();
  });

  it('make, change and react to comments', async () => {
    const { id } = await github.createComment(address, String(pull.number), 'first');
    await github.updateComment(address, id, 'second');
    await github.addReaction(address, id, 'eyes');
    const all = await github.listComments(address, String(pull.number));
    expect(all.at(-1)).toMatchObject({ id, body: 'second', bot: true, appId: String(app.id) });
  });

  it('go out at once and in a burst, not one a second', async () => {
    const started = performance.now();
    for (let n = 0; n < 10; n++) await github.addReaction(address, await commentId(), 'rocket');
    expect(performance.now() - started).toBeLessThan(9_000);
  });
  const commentId = async () => (await github.listComments(address, String(pull.number))).at(-1)?.id ?? '0';

  it('mint a token that reads this one repository', async () => {
    const token = await github.readToken(address);
    expect(token.length).toBeGreaterThan(20);
    const own = await fetch(`${gh.apiUrl}/repos/${alice.login}/${repo.name}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(own.status).toBe(200);
    const write = await fetch(
      `${gh.apiUrl}/repos/${alice.login}/${repo.name}/issues/${pull.number}/comments`,
      {
        method: 'POST',
        body: JSON.stringify({ body: 'no' }),
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      },
    );
    expect(write.status).toBe(403);
  });
});

describe('case 73, case 74: what an installation may not', () => {
  it('a missing permission is permissions_missing with its name, not retried', async () => {
    const weak = gh.createApp({ slug: 'weak', permissions: { metadata: 'read', contents: 'read' } });
    const its = await gh.installApp(weak, repo);
    const failed = await fault(
      (await connect(weak).installation(String(its.id))).createComment(address, String(pull.number), 'x'),
    );
    expect(failed).toMatchObject({ code: 'permissions_missing', retryable: false });
    expect(failed.message).toMatch(/issues=write|pull_requests=write/);
  });

  it('a suspended or deleted installation is installation_gone, and others go on', async () => {
    const carol = gh.createUser('carol');
    const other = await gh.createRepository({ owner: carol });
    const its = await gh.installApp(app, other);
    await gh.suspend(its);
    const at = { id: String(other.id), owner: 'carol', name: other.name };
    expect((await fault((await port.installation(String(its.id))).getRepository(at))).code).toBe(
      'installation_gone',
    );
    expect((await fault((await port.installation('123456')).getRepository(at))).code).toBe(
      'installation_gone',
    );
    await expect(github.getRepository(address)).resolves.toMatchObject(address);
  });
});

describe('case 75: a repository that was renamed', () => {
  it('is followed by its id, and nothing is written to the one that took its name', async () => {
    const dave = gh.createUser('dave');
    const old = await gh.createRepository({ owner: dave, name: 'a' });
    const its = await gh.installApp(app, dave);
    await old.commit({ branch: 'topic', message: 'Change', files: { 'x.ts': '1\n' } });
    const open = await old.openPull({ head: 'topic', user: dave });
    const at = { id: String(old.id), owner: 'dave', name: 'a' };
    const client = await connect().installation(String(its.id));
    await client.createComment(at, String(open.number), 'before');
    await old.rename('b');
    const fresh = await gh.createRepository({ owner: dave, name: 'a' });
    await fresh.commit({ branch: 'topic', message: 'Change', files: { 'x.ts': '1\n' } });
    const trap = await fresh.openPull({ head: 'topic', user: dave });
    const another = await connect().installation(String(its.id));
    await another.createComment(at, String(open.number), 'after');
    expect(gh.comments(open).map((comment) => comment.body)).toEqual(['before', 'after']);
    expect(gh.comments(trap)).toEqual([]);
    expect(await another.getRepository(at)).toMatchObject({ id: at.id, name: 'b' });
  });
});

describe('case 78: a clock that is wrong', () => {
  it.each([90_000, -90_000, 2_000])(
    'GitHub %i ms ahead of us: the App authenticates all the same',
    async (ahead) => {
      const other = await startGitHub();
      other.advance(ahead);
      const its = other.createApp();
      const carol = other.createUser('carol');
      const on = await other.createRepository({ owner: carol });
      const there = await other.installApp(its, on);
      const app = connect(its, other.apiUrl);
      expect(await app.slug()).toBe(its.slug);
      const client = await app.installation(String(there.id));
      expect(
        await client.getBranchHead({ id: String(on.id), owner: 'carol', name: on.name }, 'main'),
      ).toMatch(/^[0-9a-f]{40}$/);
      await other.close();
    },
  );
});

describe('against recorded answers', () => {
  const API = 'https://github.test';
  let recorded: GitHub;
  const at = { id: '9007199254740993', owner: 'o', name: 'r' };
  beforeAll(async () => {
    recorded = await connect(app, API).installation('7');
  });
  recordsAnswers();
  const token = () =>
    nock(API)
      .post('/app/installations/7/access_tokens')
      .optionally()
      .reply(201, { token: 'ghs_x', expires_at: '2999-01-01T00:00:00Z', permissions: {} });

  it('case 70: ids above 2^31 and above 2^53 come through unrounded', async () => {
    token();
    nock(API)
      .get('/repos/o/r')
      .reply(
        200,
        '{"id":9007199254740993,"name":"r","owner":{"id":4900000001,"login":"o"},"default_branch":"main","private":false}',
        {
          'content-type': 'application/json',
        },
      );
    expect(await recorded.getRepository(at)).toMatchObject({ id: '9007199254740993', ownerId: '4900000001' });
  });

  it.each([
    [
      'a primary limit',
      403,
      {
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': '1000000090',
        date: new Date(1_000_000_000_000).toUTCString(),
      },
      90_000,
    ],
    [
      'a secondary limit with retry-after',
      403,
      { 'retry-after': '7', 'x-ratelimit-remaining': '4000' },
      7_000,
    ],
    ['429', 429, {}, 60_000],
  ])(
    'OPS-6: %s is github_rate_limited with the wait it told, and holds what follows',
    async (_, status, headers, wait) => {
      const client = await connect(app, API).installation('7');
      token();
      nock(API).get('/repos/o/r/pulls/1').reply(status, { message: 'slow down' }, headers);
      expect(await fault(client.getPull(at, '1'))).toMatchObject({
        code: 'github_rate_limited',
        retryable: true,
        retryAfterMs: wait,
      });
      // nothing is recorded for a second request: it must not be made
      const held = await fault(client.getPull(at, '1'));
      expect(held.code).toBe('github_rate_limited');
      expect(held.retryAfterMs).toBeGreaterThan(wait - 5_000);
    },
  );

  it('OPS-6: a 403 with quota left that names no limit is a refusal, not a wait', async () => {
    token();
    nock(API)
      .get('/repos/o/r/pulls/2')
      .reply(403, { message: 'Repository access blocked' }, { 'x-ratelimit-remaining': '4999' });
    expect(await fault(recorded.getPull(at, '2'))).toMatchObject({
      code: 'github_refused',
      retryable: false,
    });
  });

  it('never quotes what GitHub said: it may be foreign text', async () => {
    token();
    nock(API)
      .get('/repos/o/r/pulls/3')
      .reply(422, { message: 'SECRET-ish text', errors: [{ message: 'more' }] });
    const failed = await fault(recorded.getPull(at, '3'));
    expect(`${failed.message} ${String(failed.cause ?? '')}`).not.toContain('SECRET');
  });

  it('an answer of another form is github_unavailable, never a wrong value', async () => {
    token();
    nock(API).get('/repos/o/r/pulls/4').times(1).reply(200, { number: 4 });
    expect((await fault(recorded.getPull(at, '4'))).code).toBe('github_unavailable');
  });
});
