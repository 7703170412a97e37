import { connect } from 'node:net';
import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, Installation, User } from '../../sandbox/model.ts';
import type { Repository } from '../../sandbox/repository.ts';

let gh: SandboxGitHub;
let alice: User;
let bob: User;
let app: App;
let repo: Repository;
let installation: Installation;
let octokit: Octokit;
let asApp: Octokit;

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  bob = gh.createUser('bob');
  app = gh.createApp();
  repo = await gh.createRepository({
    owner: alice,
    files: { 'src/a.ts': 'export const a = 1;\n', 'old.txt': 'one\ntwo\nthree\n' },
    collaborators: [[bob, 'maintain']],
  });
  installation = await gh.installApp(app, repo);
  const auth = { appId: app.id, privateKey: app.privateKey };
  asApp = new Octokit({ baseUrl: gh.apiUrl, authStrategy: createAppAuth, auth, log: quiet });
  octokit = new Octokit({
    baseUrl: gh.apiUrl,
    authStrategy: createAppAuth,
    auth: { ...auth, installationId: installation.id },
    log: quiet,
  });
});

afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

const at = () => ({ owner: 'alice', repo: 'sample' });

describe('app authentication', () => {
  it('facts §20: a JWT with a numeric issuer names the app; installation tokens are long', async () => {
    const { data } = await asApp.rest.apps.getAuthenticated();
    expect(data).toMatchObject({ id: app.id, slug: 'countersign' });
    const { data: token } = await asApp.rest.apps.createInstallationAccessToken({
      installation_id: installation.id,
      repository_ids: [repo.id],
      permissions: { checks: 'write' },
    });
    expect(token.token.length).toBeGreaterThan(300);
    expect(token.permissions).toEqual({ checks: 'write', metadata: 'read' });
    const narrow = new Octokit({ baseUrl: gh.apiUrl, auth: token.token, log: quiet });
    await expect(narrow.rest.pulls.list(at())).rejects.toMatchObject({
      status: 403,
      message: expect.stringContaining('Resource not accessible by integration'),
    });
  });

  it('a JWT by another key, and a token from elsewhere, are refused', async () => {
    const other = gh.createApp({ slug: 'other' });
    const forged = new Octokit({
      baseUrl: gh.apiUrl,
      authStrategy: createAppAuth,
      auth: { appId: app.id, privateKey: other.privateKey },
      log: quiet,
    });
    await expect(forged.rest.apps.getAuthenticated()).rejects.toMatchObject({ status: 401 });
    const wrong = new Octokit({ baseUrl: gh.apiUrl, auth: 'ghs_nothing', log: quiet });
    await expect(wrong.rest.repos.get(at())).rejects.toMatchObject({ status: 401 });
  });

  it('a suspended installation gets 403', async () => {
    const carol = gh.createUser('carol');
    const hers = await gh.createRepository({ owner: carol });
    const suspended = await gh.installApp(app, hers);
    await gh.suspend(suspended);
    await expect(
      asApp.rest.apps.createInstallationAccessToken({ installation_id: suspended.id }),
    ).rejects.toMatchObject({ status: 403 });
  });

  it('lists repositories, installations and roles as GitHub maps them (facts §13)', async () => {
    expect((await asApp.rest.apps.getRepoInstallation(at())).data.id).toBe(installation.id);
    expect(await asApp.paginate(asApp.rest.apps.listInstallations)).not.toHaveLength(0);
    const { data } = await octokit.rest.apps.listReposAccessibleToInstallation();
    expect(data.repositories.map((one) => one.id)).toEqual([repo.id]);
    const level = await octokit.rest.repos.getCollaboratorPermissionLevel({ ...at(), username: 'bob' });
    expect(level.data).toMatchObject({ permission: 'write', role_name: 'maintain' });
    await expect(
      octokit.rest.repos.getCollaboratorPermissionLevel({ ...at(), username: 'nobody-here' }),
    ).rejects.toMatchObject({ status: 404 });
  });
});

describe('pull requests', () => {
  it('gives commits, files, comparison and contents from git', async () => {
    await repo.commit({
      branch: 'topic',
      message: 'Add b',
      trailers: { Block: 'one' },
      files: { 'src/b.ts': 'export const b = 2;\n' },
      author: alice,
    });
    await repo.commit({ branch: 'topic', message: 'Move', renames: { 'old.txt': 'new.txt' }, author: bob });
    const pull = await repo.openPull({ head: 'topic', user: alice, title: 'Topic' });
    const number = { ...at(), pull_number: pull.number };

    const first = await octokit.rest.pulls.get(number);
    expect(first.data).toMatchObject({ commits: 2, changed_files: 2, additions: 1, state: 'open' });
    expect((await octokit.rest.pulls.get(number)).data.mergeable).toBe(true);
    const commits = await octokit.paginate(octokit.rest.pulls.listCommits, { ...number, per_page: 1 });
    expect(commits.map((one) => one.commit.message)).toEqual(['Add b\n\nBlock: one', 'Move']);
    expect(commits[1]?.author?.login).toBe('bob');
    const { data: files } = await octokit.rest.pulls.listFiles(number);
    expect(files).toMatchObject([
      { filename: 'new.txt', previous_filename: 'old.txt', status: 'renamed', changes: 0 },
      { filename: 'src/b.ts', status: 'added', patch: '@@ -0,0 +1 @@\n+export const b = 2;' },
    ]);
    const { data: compared } = await octokit.rest.repos.compareCommitsWithBasehead({
      ...at(),
      basehead: 'main...topic',
    });
    expect(compared).toMatchObject({ status: 'ahead', ahead_by: 2, total_commits: 2 });
    const { data: file } = await octokit.rest.repos.getContent({ ...at(), path: 'src/b.ts', ref: 'topic' });
    expect(Buffer.from((file as { content: string }).content, 'base64').toString()).toBe(
      'export const b = 2;\n',
    );
    const { data: listing } = await octokit.rest.repos.getContent({ ...at(), path: '' });
    expect(listing).toMatchObject([{ name: 'old.txt' }, { name: 'src', type: 'dir' }]);
    const { data: commit } = await octokit.rest.repos.getCommit({ ...at(), ref: pull.head.sha });
    expect(commit.files).toMatchObject([{ filename: 'new.txt' }]);
    expect((await octokit.rest.repos.getBranch({ ...at(), branch: 'topic' })).data.commit.sha).toBe(
      pull.head.sha,
    );
    const { data: ref } = await octokit.rest.git.getRef({ ...at(), ref: `pull/${pull.number}/head` });
    expect(ref.object.sha).toBe(pull.head.sha);
    expect((await octokit.rest.pulls.list({ ...at(), state: 'all' })).data).toHaveLength(1);
  });

  it('case 9: the fork is deleted, head.repo is null and the pull ref stays', async () => {
    const mallory = gh.createUser('mallory');
    const fork = await repo.fork(mallory);
    await fork.commit({ branch: 'patch', files: { 'c.txt': 'c\n' }, author: mallory });
    const pull = await repo.openPull({ head: 'patch', fork, user: mallory });
    await fork.delete();
    pull.becomeGhost();
    await pull.edit(alice, { title: 'Orphan' });
    const { data } = await octokit.rest.pulls.get({ ...at(), pull_number: pull.number });
    expect(data.head.repo).toBeNull();
    expect(data).toMatchObject({ title: 'Orphan', user: { login: 'ghost' }, commits: 1 });
  });

  it('case 7: a fork push is announced before its commit is here', async () => {
    const dave = gh.createUser('dave');
    const fork = await repo.fork(dave);
    await fork.commit({ branch: 'patch', files: { 'd.txt': 'd\n' }, author: dave });
    const pull = await repo.openPull({ head: 'patch', fork, user: dave });
    repo.propagation = 'manual';
    const head = await pull.push({ files: { 'e.txt': 'e\n' } });
    const number = { ...at(), pull_number: pull.number };
    expect((await octokit.rest.pulls.get(number)).data.head.sha).toBe(head);
    expect((await octokit.rest.pulls.listCommits(number)).data).toHaveLength(1);
    await expect(
      octokit.rest.checks.create({ ...at(), name: 'countersign', head_sha: head }),
    ).rejects.toMatchObject({ status: 422, message: expect.stringContaining('No commit found for SHA') });
    await pull.propagate();
    repo.propagation = 0;
    expect((await octokit.rest.pulls.listCommits(number)).data).toHaveLength(2);
    const { data: run } = await octokit.rest.checks.create({ ...at(), name: 'countersign', head_sha: head });
    expect(run.pull_requests).toEqual([]);
  });

  it('facts §3: active rules name the check and the app it is pinned to', async () => {
    repo.requireCheck('countersign', app);
    const { data } = await octokit.rest.repos.getBranchRules({ ...at(), branch: 'main' });
    expect(data).toMatchObject([
      {
        type: 'required_status_checks',
        parameters: { required_status_checks: [{ context: 'countersign', integration_id: app.id }] },
      },
    ]);
    expect((await octokit.rest.repos.getBranch({ ...at(), branch: 'main' })).data.protected).toBe(true);
  });

  it('facts §5: mergeable is unknown at first, then the test merge or a conflict', async () => {
    await repo.commit({ branch: 'clash', files: { 'src/a.ts': 'export const a = 7;\n' } });
    const pull = await repo.openPull({ head: 'clash', user: alice });
    const get = async () => (await octokit.rest.pulls.get({ ...at(), pull_number: pull.number })).data;
    await get();
    const merged = await get();
    expect(merged.mergeable).toBe(true);
    expect(await repo.git.objectId(`refs/pull/${pull.number}/merge`)).toBe(merged.merge_commit_sha);
    await repo.commit({ files: { 'src/a.ts': 'export const a = 8;\n' } });
    expect((await get()).mergeable).toBeNull();
    expect(await get()).toMatchObject({ mergeable: false, mergeable_state: 'dirty', merge_commit_sha: null });
    const newer = await octokit.request('GET /repos/{owner}/{repo}/pulls/{pull_number}', {
      ...at(),
      pull_number: pull.number,
      headers: { 'x-github-api-version': '2026-03-10' },
    });
    expect(newer.data).not.toHaveProperty('merge_commit_sha');
  });

  it('comments and reactions: 201 once, then 200', async () => {
    const pull = repo.pulls[0];
    if (pull === undefined) throw new Error('no pull request');
    const { data } = await octokit.rest.issues.createComment({
      ...at(),
      issue_number: pull.number,
      body: 'hello',
    });
    expect(data.id).toBeGreaterThan(2 ** 32);
    expect(data).toMatchObject({ user: { login: 'countersign[bot]', type: 'Bot' } });
    await octokit.rest.issues.updateComment({ ...at(), comment_id: data.id, body: 'hello again' });
    expect((await octokit.rest.issues.getComment({ ...at(), comment_id: data.id })).data.body).toBe(
      'hello again',
    );
    const eyes = { ...at(), comment_id: data.id, content: 'eyes' } as const;
    expect((await octokit.rest.reactions.createForIssueComment(eyes)).status).toBe(201);
    expect((await octokit.rest.reactions.createForIssueComment(eyes)).status).toBe(200);
    const list = await octokit.rest.reactions.listForIssueComment({ ...at(), comment_id: data.id });
    expect(list.data).toHaveLength(1);
    expect(
      (await octokit.rest.issues.listComments({ ...at(), issue_number: pull.number })).data,
    ).toHaveLength(1);
    expect((await octokit.rest.issues.listCommentsForRepo(at())).data).toHaveLength(1);
    const theirs = await pull.comment(alice, '/status');
    await expect(
      octokit.rest.issues.updateComment({ ...at(), comment_id: theirs.id, body: 'x' }),
    ).rejects.toMatchObject({ status: 403 });
  });
});

describe('names and ids', () => {
  it('GIT-5: a repository may have object ids of 64 digits', async () => {
    const long = await gh.createRepository({ owner: alice, name: 'long', hash: 'sha256' });
    await gh.changeRepositories(installation, 'added', long);
    await long.commit({ branch: 'topic', files: { 'x.txt': 'x\n' } });
    const pull = await long.openPull({ head: 'topic' });
    const at = { owner: 'alice', repo: 'long' };
    const { data } = await octokit.rest.pulls.get({ ...at, pull_number: pull.number });
    expect(data.head.sha).toMatch(/^[0-9a-f]{64}$/);
    const { data: run } = await octokit.rest.checks.create({ ...at, name: 'x', head_sha: data.head.sha });
    expect(run.head_sha).toBe(data.head.sha);
    expect(
      (await octokit.rest.pulls.listFiles({ ...at, pull_number: pull.number })).data[0]?.sha,
    ).toHaveLength(64);
  });

  it('RUN-1: a renamed repository keeps its id, its old name leads there until someone takes it', async () => {
    const before = await gh.createRepository({ owner: alice, name: 'before' });
    await gh.changeRepositories(installation, 'added', before);
    await before.rename('after');
    const old = { owner: 'alice', repo: 'before' };
    const { data } = await octokit.rest.repos.get(old);
    expect(data).toMatchObject({ id: before.id, full_name: 'alice/after' });
    const head_sha = await before.tip();
    const { data: run } = await octokit.rest.checks.create({ ...old, name: 'moved', head_sha });
    expect(gh.checkRuns(before, head_sha).map(({ id }) => id)).toEqual([run.id]);
    const taken = await gh.createRepository({ owner: alice, name: 'before' });
    await gh.changeRepositories(installation, 'added', taken);
    expect((await octokit.rest.repos.get(old)).data.id).toBe(taken.id);
  });

  it('a transferred repository leaves the installation', async () => {
    const erin = gh.createUser('erin');
    const going = await gh.createRepository({ owner: alice, name: 'going', private: true });
    await gh.changeRepositories(installation, 'added', going);
    expect((await octokit.rest.repos.get({ owner: 'alice', repo: 'going' })).status).toBe(200);
    await going.transfer(erin);
    await expect(octokit.rest.repos.get({ owner: 'erin', repo: 'going' })).rejects.toMatchObject({
      status: 404,
    });
    const names = gh.webhooks.events.slice(-2).map(({ event, action }) => `${event}.${action}`);
    expect(names).toEqual(['installation_repositories.removed', 'repository.transferred']);
  });
});

describe('limits and faults', () => {
  it('facts §12: answers carry x-ratelimit headers, and the content limit refuses with retry-after', async () => {
    const { headers, data } = await octokit.rest.rateLimit.get();
    expect(Number(headers['x-ratelimit-limit'])).toBe(5000);
    expect(data.rate.remaining).toBeLessThan(5000);
    gh.limits.settings.enforce.content = true;
    gh.limits.settings.contentPerMinute = 0;
    const head_sha = await repo.tip();
    await expect(octokit.rest.checks.create({ ...at(), name: 'x', head_sha })).rejects.toMatchObject({
      status: 403,
      message: expect.stringContaining('secondary rate limit'),
      response: { headers: { 'retry-after': '60' } },
    });
    gh.limits.settings.enforce.content = false;
  });

  it('case 3: delays add to what else goes wrong; a cut connection is no answer', async () => {
    const slow = gh.faults.add({ on: ['repos/get'], delay: 60 });
    gh.faults.add({ on: 'repos/get', times: 1, hangUp: true });
    const started = performance.now();
    await expect(octokit.rest.repos.get(at())).rejects.toMatchObject({ status: 500 });
    expect(performance.now() - started).toBeGreaterThan(55);
    expect((await octokit.rest.repos.get(at())).status).toBe(200);
    expect(slow.hits).toBe(2);
    slow.remove();
  });

  it('a caller that dies in the middle of a request leaves no trace', async () => {
    const { port, hostname } = new URL(gh.apiUrl);
    const before = gh.requests.length;
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(
          'POST /api/v3/repos/alice/sample/check-runs HTTP/1.1\r\nhost: x\r\ncontent-length: 90\r\n\r\n{"na',
        );
        setTimeout(() => socket.destroy(), 20);
      });
      socket.on('close', () => resolve());
    });
    await octokit.rest.repos.get(at());
    expect(gh.requests.length).toBe(before + 1);
  });

  it('case 36: a lost answer leaves the work done', async () => {
    const head_sha = await repo.tip();
    const fault = gh.faults.add({ on: 'checks/create', times: 1, when: 'after', status: 502 });
    const create = () => octokit.rest.checks.create({ ...at(), name: 'lost', head_sha });
    await expect(create()).rejects.toMatchObject({ status: 502 });
    expect(fault.hits).toBe(1);
    await create();
    expect(gh.checkRuns(repo, head_sha)).toHaveLength(2);
    expect(gh.count('checks/create')).toBeGreaterThan(2);
  });
});
