import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { hunkLines, hunkUpTo } from '../../sandbox/rest/hunks.ts';

let gh: SandboxGitHub;
let alice: User;
let bob: User;
let repo: Repository;
let pull: Pull;
let octokit: Octokit;
let asBob: Octokit;

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}\n`).join('');

beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  bob = gh.createUser('bob');
  const app = gh.createApp();
  repo = await gh.createRepository({
    owner: alice,
    files: { 'src/a.ts': lines(1, 60), 'src/other.ts': 'export {};\n' },
    collaborators: [[bob, 'maintain']],
  });
  const installation = await gh.installApp(app, repo);
  octokit = new Octokit({
    baseUrl: gh.apiUrl,
    authStrategy: createAppAuth,
    auth: { appId: app.id, privateKey: app.privateKey, installationId: installation.id },
    log: quiet,
  });
  asBob = new Octokit({ baseUrl: gh.apiUrl, auth: bob.token, log: quiet });
  const changed = `${lines(1, 9)}line ten\n${lines(11, 49)}line fifty\nand more\n${lines(51, 60)}`;
  await repo.commit({ branch: 'topic', files: { 'src/a.ts': changed }, author: alice });
  pull = await repo.openPull({ head: 'topic', user: alice });
});

afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

const at = () => ({ owner: 'alice', repo: 'sample', pull_number: pull.number });
const events = () =>
  gh.webhooks.events
    .filter(({ event }) => event.startsWith('pull_request_review'))
    .map(({ event, action }) => `${event} ${action}`);

describe('reviews', () => {
  it('facts §13: create answers 200, keeps its comments by their lines, and both events follow', async () => {
    const { status, data } = await octokit.rest.pulls.createReview({
      ...at(),
      commit_id: pull.head.sha,
      event: 'COMMENT',
      body: 'Two things',
      comments: [
        { path: 'src/a.ts', body: 'Here', line: 10, side: 'RIGHT' },
        { path: 'src/a.ts', body: 'Range', start_line: 50, line: 51, side: 'RIGHT', start_side: 'RIGHT' },
        { path: 'src/a.ts', body: 'Gone', line: 10, side: 'LEFT' },
      ],
    });
    expect(status).toBe(200);
    expect(data).toMatchObject({ state: 'COMMENTED', commit_id: pull.head.sha, user: { type: 'Bot' } });
    const { data: comments } = await octokit.rest.pulls.listCommentsForReview({
      ...at(),
      review_id: data.id,
    });
    expect(comments).toMatchObject([
      { path: 'src/a.ts', line: 10, side: 'RIGHT', start_line: null },
      { line: 51, start_line: 50, side: 'RIGHT' },
      { line: 10, side: 'LEFT' },
    ]);
    expect(comments[0]?.diff_hunk).toMatch(/^@@ -7,7 \+7,7 @@[\s\S]*\+line ten$/);
    expect((await octokit.rest.pulls.listReviewComments(at())).data).toHaveLength(3);
    expect(events()).toEqual([
      'pull_request_review submitted',
      ...Array.from({ length: 3 }, () => 'pull_request_review_comment created'),
    ]);
  });

  it('facts §13: one line outside the diff is a 422 for the whole review, which names no entry', async () => {
    const before = (await octokit.rest.pulls.listReviews(at())).data.length;
    const good = { path: 'src/a.ts', body: 'Here', line: 10, side: 'RIGHT' };
    const refused = (comment: object, message: string) =>
      expect(
        octokit.rest.pulls.createReview({
          ...at(),
          event: 'COMMENT',
          comments: [good, { path: 'src/a.ts', body: 'x', ...comment }],
        }),
      ).rejects.toMatchObject({ status: 422, response: { data: { errors: [message] } } });
    await refused({ line: 30, side: 'RIGHT' }, 'Line could not be resolved');
    await refused({ line: 51, side: 'LEFT', path: 'src/other.ts' }, 'Path could not be resolved');
    await refused({ line: 62, side: 'RIGHT' }, 'Line could not be resolved');
    await refused({}, 'Line could not be resolved');
    await refused({ start_line: 10, line: 10 }, 'Start line must precede the end line.');
    await refused({ start_line: 10, line: 50 }, 'Start line must be part of the same hunk as the line.');
    expect((await octokit.rest.pulls.listReviews(at())).data).toHaveLength(before);
  });

  it('the author cannot judge their own; words are needed where GitHub needs them', async () => {
    const asAlice = new Octokit({ baseUrl: gh.apiUrl, auth: alice.token, log: quiet });
    await expect(asAlice.rest.pulls.createReview({ ...at(), event: 'APPROVE' })).rejects.toMatchObject({
      status: 422,
    });
    await expect(asBob.rest.pulls.createReview({ ...at(), event: 'REQUEST_CHANGES' })).rejects.toMatchObject({
      status: 422,
    });
    await expect(
      asBob.rest.pulls.createReview({ ...at(), event: 'APPROVE', commit_id: 'a'.repeat(40) }),
    ).rejects.toMatchObject({ status: 422 });
  });

  it('a pending review is its author’s alone until it is submitted; a dismissed one says so', async () => {
    const { data: pending } = await asBob.rest.pulls.createReview(at());
    expect(pending.state).toBe('PENDING');
    const ids = async () => (await octokit.rest.pulls.listReviews(at())).data.map((one) => one.id);
    expect(await ids()).not.toContain(pending.id);
    const review_id = pending.id;
    await asBob.rest.pulls.submitReview({ ...at(), review_id, event: 'APPROVE' });
    expect(await ids()).toContain(review_id);
    await asBob.rest.pulls.updateReview({ ...at(), review_id, body: 'Fine' });
    await octokit.rest.pulls.dismissReview({ ...at(), review_id, message: 'Stale' });
    const { data } = await octokit.rest.pulls.getReview({ ...at(), review_id });
    expect(data).toMatchObject({ state: 'DISMISSED', body: 'Fine' });
    await expect(
      octokit.rest.pulls.dismissReview({ ...at(), review_id, message: 'Again' }),
    ).rejects.toMatchObject({ status: 422 });
    expect(events().slice(-3)).toEqual([
      'pull_request_review submitted',
      'pull_request_review edited',
      'pull_request_review dismissed',
    ]);
  });

  it('people review on the page: the head they saw goes along', async () => {
    const first = pull.head.sha;
    await pull.push({ files: { 'src/b.ts': 'export {};\n' }, author: alice });
    const review = await pull.review(bob, { commit: first });
    expect(review).toMatchObject({ state: 'APPROVED', commit: first });
    await pull.dismissReview(review, alice);
    expect(gh.reviews(pull).at(-1)).toMatchObject({ state: 'DISMISSED' });
  });

  it('facts §13: collaborators by permission, maintain and admin can push too', async () => {
    const logins = async (permission?: 'push' | 'admin') =>
      (
        await octokit.rest.repos.listCollaborators({
          owner: 'alice',
          repo: 'sample',
          ...(permission === undefined ? {} : { permission }),
        })
      ).data.map((one) => one.login);
    expect(await logins('push')).toEqual(['alice', 'bob']);
    expect(await logins('admin')).toEqual(['alice']);
  });
});

describe('hunks', () => {
  it('number the lines of each side; a missing newline is no line', () => {
    const patch = '@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n@@ -9 +9,2 @@ f\n x\n+y';
    expect(hunkLines(patch)).toEqual([
      { hunk: 0, position: 1, left: 1, right: 1, text: ' a' },
      { hunk: 0, position: 2, left: 2, right: null, text: '-b' },
      { hunk: 0, position: 3, left: null, right: 2, text: '+c' },
      { hunk: 1, position: 6, left: 9, right: 9, text: ' x' },
      { hunk: 1, position: 7, left: null, right: 10, text: '+y' },
    ]);
    expect(hunkUpTo(patch, 6)).toBe('@@ -9 +9,2 @@ f\n x');
  });
});
