import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, Installation, User } from '../../sandbox/model.ts';
import type { Repository } from '../../sandbox/repository.ts';

let gh: SandboxGitHub;
let alice: User;
let app: App;
let repo: Repository;
let installation: Installation;
let folder: string;

const run = promisify(execFile);

function git(cwd: string, ...args: string[]): Promise<{ stdout: Buffer; stderr: Buffer }> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_NAME: 'Alice',
    GIT_AUTHOR_EMAIL: alice.email,
    GIT_COMMITTER_NAME: 'Alice',
    GIT_COMMITTER_EMAIL: alice.email,
  };
  return run('git', args, { cwd, env, encoding: 'buffer' });
}

function remote(token: string, repository = repo): string {
  return repository.cloneUrl.replace('http://', `http://x-access-token:${token}@`);
}

async function installationToken(permissions: Record<string, 'read' | 'write'> = {}): Promise<string> {
  const auth = { appId: app.id, privateKey: app.privateKey };
  const client = new Octokit({ baseUrl: gh.apiUrl, authStrategy: createAppAuth, auth });
  const narrowed = Object.keys(permissions).length === 0 ? {} : { permissions };
  const { data } = await client.rest.apps.createInstallationAccessToken({
    installation_id: installation.id,
    ...narrowed,
  });
  return data.token;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbox-git-'));
  gh = await startGitHub();
  alice = gh.createUser('alice');
  app = gh.createApp();
  repo = await gh.createRepository({
    owner: alice,
    private: true,
    files: [
      ['plain.txt', 'text\n'],
      [Buffer.from('latin-\xe9.txt', 'latin1'), Buffer.from([0, 255, 10])],
      ['run.sh', { content: '#!/bin/sh\n', mode: '100755' }],
      ['link', { content: 'plain.txt', mode: '120000' }],
    ],
  });
  installation = await gh.installApp(app, repo);
});

afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
  await rm(folder, { recursive: true, force: true });
});

describe('smart HTTP', () => {
  it('gives an installation exact bytes of paths, contents and modes', async () => {
    const token = await installationToken();
    await git(folder, 'clone', '-q', remote(token), 'clone');
    const { stdout } = await git(join(folder, 'clone'), 'ls-tree', '-z', '-r', 'HEAD');
    const paths = stdout.toString('latin1').split('\0').filter(Boolean);
    expect(paths.map((line) => line.replace(/ blob \w+\t/, ' '))).toEqual([
      '100644 latin-\xe9.txt',
      '120000 link',
      '100644 plain.txt',
      '100755 run.sh',
    ]);
    expect(
      await readFile(
        Buffer.concat([Buffer.from(`${folder}/clone/latin-`), Buffer.from([0xe9]), Buffer.from('.txt')]),
      ),
    ).toEqual(Buffer.from([0, 255, 10]));
  });

  it('GIT-1: a partial clone by commit id fetches blobs on demand', async () => {
    const pull = await (async () => {
      await repo.commit({ branch: 'topic', files: { 'big.txt': 'x'.repeat(5000) } });
      return repo.openPull({ head: 'topic' });
    })();
    const bare = join(folder, 'partial.git');
    await git(folder, 'init', '-q', '--bare', bare);
    await git(bare, 'remote', 'add', 'origin', remote(await installationToken()));
    await git(bare, 'config', 'remote.origin.promisor', 'true');
    await git(bare, 'config', 'remote.origin.partialclonefilter', 'blob:none');
    await git(
      bare,
      'fetch',
      '-q',
      '--filter=blob:none',
      '--depth=2',
      'origin',
      `refs/pull/${pull.number}/head`,
      await repo.tip(),
    );
    expect((await git(bare, 'rev-parse', 'FETCH_HEAD')).stdout.toString().trim()).toBe(pull.head.sha);
    const missing = await git(bare, 'rev-list', '--objects', '--missing=print', pull.head.sha);
    expect(missing.stdout.toString()).toContain('?');
    const blob = await git(bare, 'cat-file', 'blob', `${pull.head.sha}:big.txt`);
    expect(blob.stdout.length).toBe(5000);
  });

  it('refuses nobody, strangers, expired tokens and readers who push', async () => {
    const bob = gh.createUser('bob');
    const fails = (url: string, text: string) =>
      expect(git(folder, 'ls-remote', url)).rejects.toMatchObject({
        stderr: expect.objectContaining({}),
        message: expect.stringContaining(text),
      });
    await fails(repo.cloneUrl, 'terminal prompts disabled');
    await fails(remote(bob.token), 'not found');
    await fails(remote('ghs_wrong'), 'Authentication failed');
    const without = await installationToken({ checks: 'write' });
    await fails(remote(without), '403');
    repo.setCollaborator(bob, 'read');
    await git(folder, 'ls-remote', remote(bob.token));
    const token = await installationToken();
    await git(folder, 'clone', '-q', remote(token), 'reader');
    await expect(
      git(join(folder, 'reader'), 'push', '-q', remote(bob.token), 'HEAD:refs/heads/new'),
    ).rejects.toMatchObject({ message: expect.stringContaining('403') });
    gh.expireTokens();
    await fails(remote(token), 'Authentication failed');
  });

  it('a push moves the pull request, a deleted branch closes it', async () => {
    const work = join(folder, 'work');
    await git(folder, 'clone', '-q', remote(alice.token), 'work');
    await git(work, 'checkout', '-q', '-b', 'mine');
    await writeFile(join(work, 'one.txt'), '1\n');
    await git(work, 'add', '.');
    await git(work, 'commit', '-q', '-m', 'One');
    await git(work, 'push', '-q', 'origin', 'mine');
    await gh.idle();
    const pull = await repo.openPull({ head: 'mine', user: alice });
    await writeFile(join(work, 'one.txt'), '2\n');
    await git(work, 'commit', '-q', '-a', '--amend', '-m', 'Two');
    await git(work, 'push', '-q', '--force', 'origin', 'mine');
    await gh.idle();
    expect(pull.head.sha).toBe((await git(work, 'rev-parse', 'HEAD')).stdout.toString().trim());
    expect(await repo.git.commitId(`refs/pull/${pull.number}/head`)).toBe(pull.head.sha);
    const push = gh.webhooks.events.filter(({ event }) => event === 'push').at(-1);
    expect(push?.payload).toMatchObject({ forced: true, ref: 'refs/heads/mine', pusher: { name: 'alice' } });
    await expect(git(work, 'push', '-q', 'origin', `HEAD:refs/pull/${pull.number}/head`)).rejects.toThrow();
    await git(work, 'push', '-q', 'origin', '--delete', 'mine');
    await gh.idle();
    expect(pull.state).toBe('closed');
  });

  it('faults strike git too', async () => {
    const fault = gh.faults.add({ on: 'git', status: 503, times: 1 });
    await expect(git(folder, 'ls-remote', remote(alice.token))).rejects.toMatchObject({
      message: expect.stringContaining('503'),
    });
    expect(fault.hits).toBe(1);
    await git(folder, 'ls-remote', remote(alice.token));
  });
});
