/** Merge queues: our query against GitHub's published schema, and the port against the sandbox's queue (facts/github.md §4). */
import { schema as published } from '@octokit/graphql-schema';
import { buildSchema, parse, validate } from 'graphql';
import nock from 'nock';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fault } from '../../../../app/errors.ts';
import { QUEUE_QUERY } from '../../../../app/github/octokit/installation/queue.ts';
import { createGitHubApp } from '../../../../app/github/octokit.ts';
import type { GitHub, RepositoryAddress } from '../../../../app/github/port.ts';
import { type SandboxGitHub, startGitHub } from '../../../../sandbox/github.ts';
import type { MergeQueue } from '../../../../sandbox/merge-queue.ts';
import type { App, CheckRun, User } from '../../../../sandbox/model.ts';
import type { Pull } from '../../../../sandbox/pull.ts';
import type { Repository, RepositoryOptions } from '../../../../sandbox/repository.ts';
import { createCheckRun } from '../../../../sandbox/rest/check-runs.ts';
import { recordsAnswers } from '../../../helpers/recorded.ts';

let gh: SandboxGitHub;
let app: App;
let alice: User;

recordsAnswers();
beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  app = gh.createApp();
});
afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

interface Place {
  readonly repository: Repository;
  readonly address: RepositoryAddress;
  readonly github: GitHub;
}
let places = 0;

async function place(files: RepositoryOptions['files'] = {}): Promise<Place> {
  const name = `queue-${places++}`;
  const repository = await gh.createRepository({ owner: alice, name, files });
  const installation = await gh.installApp(app, repository);
  repository.requireCheck('gate', app);
  const port = createGitHubApp({
    appId: String(app.id),
    privateKey: app.privateKey,
    webhookSecret: app.webhookSecret,
    apiUrl: gh.apiUrl,
    log: pino({ level: 'silent' }),
  });
  const address = { id: String(repository.id), owner: 'alice', name };
  return { repository, address, github: await port.installation(String(installation.id)) };
}

/** The App concludes its check on a commit, and the queue does what follows. */
async function conclude(repository: Repository, sha: string, conclusion: string): Promise<CheckRun> {
  const body = { name: 'gate', status: 'completed', conclusion };
  const run = await createCheckRun(gh.world, repository, app, sha, body);
  await gh.idle();
  return run;
}
async function ready(repository: Repository, branch: string, files: Record<string, string>): Promise<Pull> {
  await repository.commit({ branch, message: branch, author: alice, files });
  const pull = await repository.openPull({ head: branch, user: alice });
  await conclude(repository, pull.head.sha, 'success');
  return pull;
}
const groups = (queue: MergeQueue) => queue.entries.map((entry) => entry.group?.head ?? '');
const told = (repository: Repository, event: string) =>
  gh.webhooks.events
    .filter((one) => one.event === event)
    .filter(({ payload }) => (payload['repository'] as { id: number }).id === repository.id)
    .filter(({ action }) => event === 'merge_group' || action === 'dequeued' || action === 'enqueued')
    .map(({ action, payload }) => [action, payload['reason']].filter((word) => word !== undefined).join(' '));

describe('the merge queue as GitHub tells it', () => {
  it('GAT-5: our query is one that GitHub’s published schema allows', () => {
    const schema = buildSchema(published.idl, { assumeValid: true, assumeValidSDL: true });
    expect(validate(schema, parse(QUEUE_QUERY))).toEqual([]);
  });

  it('GAT-5: entries from the front with the head that was queued, the commit and what it was made on', async () => {
    const { repository, address, github } = await place({ 'a.ts': 'a\n' });
    expect(await github.getQueue(address, 'main'), 'no queue').toBeNull();
    expect(await github.getQueueTimeout(address, 'main')).toBeNull();
    const queue = repository.useQueue({ timeoutMinutes: 15 });
    expect(await github.getQueue(address, 'main')).toEqual({ entries: [], timeoutMs: 15 * 60_000 });
    expect(await github.getQueueTimeout(address, 'main')).toBe(15 * 60_000);
    const one = await ready(repository, 'one', { 'one.ts': '1\n' });
    const two = await ready(repository, 'two', { 'two.ts': '2\n' });
    for (const pull of [one, two]) await queue.enqueue(pull, alice);
    const [first, second] = groups(queue);
    const tip = await repository.tip();
    expect((await github.getQueue(address, 'main'))?.entries).toEqual([
      { position: 1, pull: String(one.number), head: one.head.sha, groupHead: first, base: tip },
      { position: 2, pull: String(two.number), head: two.head.sha, groupHead: second, base: first },
    ]);
    const refs = await repository.git.refs('refs/heads/gh-readonly-queue');
    expect([...refs.keys()].sort()).toEqual(
      [
        `refs/heads/gh-readonly-queue/main/pr-${one.number}-${tip}`,
        `refs/heads/gh-readonly-queue/main/pr-${two.number}-${first}`,
      ].sort(),
    );
  });

  it('GAT-5: a repository that is not there is no queue; a server that fails is tried again by the caller', async () => {
    const { address, github } = await place();
    const fault = gh.faults.add({ on: 'graphql', times: 1, status: 502 });
    await expect(github.getQueue(address, 'main')).rejects.toMatchObject({
      code: 'github_unavailable',
      retryable: true,
    });
    fault.remove();
    expect(gh.count('graphql')).toBeGreaterThan(0);
  });

  it.each([
    ['FORBIDDEN', 'permissions_missing', false],
    ['RATE_LIMITED', 'github_rate_limited', true],
    ['undefinedField', 'github_refused', false],
  ])('OPS-6: an answer with an error of type %s is %s', async (type, code, retryable) => {
    const { address, github } = await place();
    await github.getRepository(address);
    const scope = nock(gh.url, { allowUnmocked: true })
      .post('/api/graphql')
      .reply(200, { data: null, errors: [{ type, message: 'secret words' }] });
    const failed = await github.getQueue(address, 'main').then(
      () => null,
      (error: unknown) => error,
    );
    scope.persist(false);
    nock.cleanAll();
    expect(failed).toBeInstanceOf(Fault);
    expect(failed).toMatchObject({ code, retryable });
    expect(String(failed)).not.toContain('secret words');
  });
});

describe('the sandbox’s merge queue (facts/github.md §4)', () => {
  it.each(['MERGE', 'SQUASH', 'REBASE'] as const)(
    '%s: the branch moves to the very commit that was checked',
    async (method) => {
      const { repository } = await place({ 'a.ts': 'a\n' });
      const queue = repository.useQueue({ method });
      const pull = await ready(repository, 'topic', { 'b.ts': 'b\n' });
      await repository.commit({ message: 'meanwhile', files: { 'c.ts': 'c\n' } });
      const tip = await repository.tip();
      await queue.enqueue(pull, alice);
      const [head = ''] = groups(queue);
      const parents = (await repository.git.text(['log', '-1', '--format=%P', head])).split(' ');
      expect(parents).toEqual(method === 'MERGE' ? [tip, pull.head.sha] : [tip]);
      await conclude(repository, head, 'success');
      expect(await repository.tip()).toBe(head);
      expect(pull).toMatchObject({ state: 'closed', merged: true, mergeCommit: head });
      expect(told(repository, 'merge_group')).toEqual(['checks_requested', 'destroyed merged']);
      expect(told(repository, 'pull_request')).toEqual(['enqueued', 'dequeued MERGE']);
    },
  );

  it('ALLGREEN: one that fails is taken out, and what stood behind it is made anew without it', async () => {
    const { repository } = await place({ 'a.ts': 'a\n' });
    const queue = repository.useQueue();
    const pulls = [];
    for (const name of ['one', 'two', 'three'])
      pulls.push(await ready(repository, name, { [`${name}.ts`]: name }));
    for (const pull of pulls) await queue.enqueue(pull, alice);
    const [first = '', second = '', third = ''] = groups(queue);
    await conclude(repository, third, 'success');
    expect(await repository.tip(), 'the ones ahead are not done').not.toBe(third);
    await conclude(repository, second, 'action_required');
    const [, anew = ''] = groups(queue);
    expect(groups(queue)).toEqual([first, anew]);
    expect(anew).not.toBe(third);
    expect(told(repository, 'merge_group').slice(3)).toEqual([
      'destroyed dequeued',
      'destroyed invalidated',
      'checks_requested',
    ]);
    expect(told(repository, 'pull_request')).toContain('dequeued CI_FAILURE');
    await conclude(repository, first, 'success');
    await conclude(repository, anew, 'success');
    expect(pulls.map((pull) => pull.merged)).toEqual([true, false, true]);
  });

  it('HEADGREEN: only the commit of the last must pass', async () => {
    const { repository } = await place({ 'a.ts': 'a\n' });
    const queue = repository.useQueue({ grouping: 'HEADGREEN' });
    const one = await ready(repository, 'one', { 'one.ts': '1\n' });
    const two = await ready(repository, 'two', { 'two.ts': '2\n' });
    for (const pull of [one, two]) await queue.enqueue(pull, alice);
    const [first = '', second = ''] = groups(queue);
    await conclude(repository, first, 'failure');
    await conclude(repository, second, 'success');
    expect([one.merged, two.merged]).toEqual([true, true]);
    expect(await repository.tip()).toBe(second);
  });

  it('a conflict, a check that does not answer, and a person take it out, each with its reason', async () => {
    const { repository } = await place({ 'a.ts': 'a\n' });
    const queue = repository.useQueue({ timeoutMinutes: 10 });
    const one = await ready(repository, 'one', { 'a.ts': 'one\n' });
    const two = await ready(repository, 'two', { 'a.ts': 'two\n' });
    await queue.enqueue(one, alice);
    await queue.enqueue(two, alice);
    expect(told(repository, 'pull_request').at(-1)).toBe('dequeued MERGE_CONFLICT');
    gh.advance(10 * 60_000 + 1);
    await gh.idle();
    expect(told(repository, 'pull_request').at(-1)).toBe('dequeued CI_TIMEOUT');
    await queue.enqueue(one, alice);
    await queue.dequeue(one);
    expect(told(repository, 'pull_request').at(-1)).toBe('dequeued MANUAL');
    expect(queue.entries).toEqual([]);
    const open = await repository.openPull({ head: 'one', user: alice });
    await repository.commit({ branch: 'one', author: alice, files: { 'x.ts': 'x\n' } });
    await expect(queue.enqueue(open, alice), 'its own check is not there').rejects.toThrow('not ready');
  });
});
