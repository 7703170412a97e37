import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGitHubApp } from '../../../app/github/octokit.ts';
import type { GitHub, RepositoryAddress } from '../../../app/github/port.ts';
import { type SandboxGitHub, startGitHub } from '../../../sandbox/github.ts';
import type { User } from '../../../sandbox/model.ts';
import type { Repository } from '../../../sandbox/repository.ts';

let gh: SandboxGitHub;
let alice: User;
let bob: User;
let repo: Repository;
let github: GitHub;
let address: RepositoryAddress;

beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  bob = gh.createUser('bob');
  const app = gh.createApp();
  repo = await gh.createRepository({ owner: alice, files: { 'a.ts': 'a\n' } });
  const installed = await gh.installApp(app, repo);
  const port = createGitHubApp({
    appId: String(app.id),
    privateKey: app.privateKey,
    webhookSecret: app.webhookSecret,
    apiUrl: gh.apiUrl,
    log: pino({ level: 'silent' }),
  });
  github = await port.installation(String(installed.id));
  address = { id: String(repo.id), owner: alice.login, name: repo.name };
});
afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

describe('people', () => {
  it('GAT-6: accounts of commits; where the list lacks one, GitHub’s compare has it', async () => {
    const first = await repo.commit({
      branch: 'topic',
      author: bob,
      committer: alice,
      files: { 'b.ts': 'b\n' },
    });
    const pull = await repo.openPull({ head: 'topic', user: alice });
    const base = await repo.tip();
    const nobody = { name: 'N', email: 'n@example.test' };
    const apart = await repo.commit({
      branch: 'apart',
      author: nobody,
      pusher: bob,
      files: { 'c.ts': 'c\n' },
    });
    const of = { pull: String(pull.number), base };
    const listed = await github.listCommitAccounts(address, { ...of, head: first, commits: [first] });
    expect([...listed]).toEqual([[first, { author: String(bob.id), committer: String(alice.id) }]]);
    const both = await github.listCommitAccounts(address, { ...of, head: apart, commits: [apart] });
    expect(both.get(apart)).toEqual({ author: null, committer: null });
    const foreign = { ...of, head: 'f'.repeat(40), commits: ['f'.repeat(40)] };
    expect((await github.listCommitAccounts(address, foreign)).has('f'.repeat(40))).toBe(false);
  });

  it('GAT-6: reviews with their state now; one that is gone is null', async () => {
    const [pull] = repo.pulls;
    if (pull === undefined) throw new Error('no pull request');
    const given = await pull.review(bob);
    const at = String(pull.number);
    expect(await github.listReviews(address, at)).toEqual([
      {
        id: String(given.id),
        author: { id: String(bob.id), login: 'bob', bot: false },
        state: 'approved',
        commit: pull.head.sha,
        submittedAt: given.submittedAt,
      },
    ]);
    await pull.dismissReview(given, alice);
    expect(await github.getReview(address, at, String(given.id))).toMatchObject({ state: 'dismissed' });
    expect(await github.getReview(address, at, '1')).toBeNull();
  });

  it('GAT-6: at most two who may write, which is enough to know whether somebody is alone', async () => {
    expect(await github.listWriters(address)).toEqual([String(alice.id)]);
    for (const login of ['carol', 'dave', 'erin']) repo.setCollaborator(gh.createUser(login), 'write');
    repo.setCollaborator(bob, 'triage');
    expect(await github.listWriters(address)).toHaveLength(2);
  });
});
