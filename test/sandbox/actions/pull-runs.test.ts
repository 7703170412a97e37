import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pullTrigger } from '../../../sandbox/actions/pull-runs.ts';
import type { WorkflowRun } from '../../../sandbox/actions/run.ts';
import { type SandboxGitHub, startGitHub } from '../../../sandbox/github.ts';
import type { App, User } from '../../../sandbox/model.ts';
import type { Repository } from '../../../sandbox/repository.ts';

let gh: SandboxGitHub;
let alice: User;
let app: App;
let octokit: Octokit;

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const CI = `name: CI
on: pull_request
jobs:
  unit:
    name: unit tests
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - run: |
          echo "::notice title=a title%2C with,file=src/a.txt,line=3::read it"
          echo "::notice title=receipt::{}"
          echo "sha=$GITHUB_SHA ref=$GITHUB_REF base=$GITHUB_BASE_REF head=$GITHUB_HEAD_REF secret=\${{ secrets.KEY }}"
          test ! -e broken
  lint:
    runs-on: ubuntu-latest
    steps: [{run: echo lint}]
`;

beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  app = gh.createApp({ slug: 'probe' });
});
afterAll(async () => {
  await gh.idle();
  expect(gh.violations).toEqual([]);
  await gh.close();
});

async function make(name: string, files: Record<string, string> = {}): Promise<Repository> {
  const repository = await gh.createRepository({
    owner: alice,
    name,
    files: { 'README.md': '# x\n', '.github/workflows/ci.yml': CI, ...files },
  });
  repository.secrets['KEY'] = 'sesame-sesame';
  const installation = await gh.installApp(app, repository);
  octokit = new Octokit({
    baseUrl: gh.apiUrl,
    log: quiet,
    authStrategy: createAppAuth,
    auth: { appId: app.id, privateKey: app.privateKey, installationId: installation.id },
  });
  return repository;
}

const runsOf = (repository: Repository): WorkflowRun[] =>
  gh.actions.runs.filter((run) => run.repository === repository);

async function branch(repository: Repository, name: string, files: Record<string, string>): Promise<void> {
  await repository.commit({ branch: name, author: alice, files });
}

describe('workflows of pull requests (facts §3, §8, §15)', () => {
  it('run the merge of base and head, and belong to the head; every push starts one', async () => {
    const repository = await make('plain');
    await branch(repository, 'topic', { 'src/a.txt': 'a\n' });
    const pull = await repository.openPull({ head: 'topic', user: alice });
    await gh.idle();
    const [run] = runsOf(repository);
    expect(run).toMatchObject({
      event: 'pull_request',
      ref: `refs/pull/${pull.number}/merge`,
      headSha: pull.head.sha,
      headBranch: 'topic',
      conclusion: 'success',
    });
    expect(run?.commit).not.toBe(pull.head.sha);
    expect(run?.jobs[0]?.log).toContain(
      `sha=${run?.commit} ref=refs/pull/${pull.number}/merge base=main head=topic secret=***`,
    );
    const listed = await octokit.rest.actions.listWorkflowRunsForRepo({
      owner: 'alice',
      repo: 'plain',
      head_sha: pull.head.sha,
    });
    expect(listed.data.workflow_runs.map(({ path, event }) => [path, event])).toEqual([
      ['.github/workflows/ci.yml', 'pull_request'],
    ]);
    await pull.push({ files: { broken: 'x\n' } });
    await gh.idle();
    expect(runsOf(repository).map(({ conclusion }) => conclusion)).toEqual(['success', 'failure']);
    expect(runsOf(repository)[1]?.headSha).toBe(pull.head.sha);
  });

  it('annotations that a step prints are on the check run of its job, with title, file and line', async () => {
    const repository = await make('notes');
    await branch(repository, 'topic', { 'src/a.txt': 'a\n' });
    await repository.openPull({ head: 'topic', user: alice });
    await gh.idle();
    const job = runsOf(repository)[0]?.jobs[0];
    const { data } = await octokit.rest.checks.listAnnotations({
      owner: 'alice',
      repo: 'notes',
      check_run_id: job?.checkRun.id ?? 0,
    });
    expect(
      data.map((one) => [one.annotation_level, one.title, one.path, one.start_line, one.message]),
    ).toEqual([
      ['notice', 'a title, with', 'src/a.txt', 3, 'read it'],
      ['notice', 'receipt', '.github', 1, '{}'],
    ]);
  });

  it('start nothing while the two conflict, and go on once that is resolved', async () => {
    const repository = await make('conflict', { 'a.txt': 'one\n' });
    await branch(repository, 'topic', { 'a.txt': 'two\n' });
    await repository.commit({ author: alice, files: { 'a.txt': 'three\n' } });
    const pull = await repository.openPull({ head: 'topic', user: alice });
    await gh.idle();
    expect(runsOf(repository)).toEqual([]);
    await pull.push({ files: { 'a.txt': 'three\n' } });
    await gh.idle();
    expect(runsOf(repository)).toHaveLength(1);
  });

  it('of a fork have no secrets and a read-only token', async () => {
    const repository = await make('forked');
    const bob = gh.createUser('bob');
    const fork = await repository.fork(bob);
    await fork.commit({ branch: 'topic', author: bob, files: { 'src/b.txt': 'b\n' } });
    await repository.openPull({ head: 'topic', user: bob, fork });
    await gh.idle();
    expect(runsOf(repository)[0]?.jobs[0]?.log).toContain('secret=\n');
  });

  it('a re-run of one job is the next attempt, and leaves the other job in its own', async () => {
    const repository = await make('again');
    await branch(repository, 'topic', { broken: 'x\n' });
    await repository.openPull({ head: 'topic', user: alice });
    await gh.idle();
    const [run] = runsOf(repository);
    const [unit, lint] = run?.jobs ?? [];
    const at = { owner: 'alice', repo: 'again' };
    await octokit.rest.actions.reRunJobForWorkflowRun({ ...at, job_id: unit?.id ?? 0 });
    await gh.idle();
    const jobs = await octokit.rest.actions.listJobsForWorkflowRun({ ...at, run_id: run?.id ?? 0 });
    expect(
      jobs.data.jobs.map(({ name, run_attempt, conclusion }) => [name, run_attempt, conclusion]).sort(),
    ).toEqual([
      ['lint', 1, 'success'],
      ['unit tests', 2, 'failure'],
    ]);
    expect(jobs.data.jobs.find(({ name }) => name === 'lint')?.id).toBe(lint?.id);
    await octokit.rest.actions.reRunWorkflowFailedJobs({ ...at, run_id: run?.id ?? 0 });
    await gh.idle();
    await octokit.rest.actions.reRunWorkflow({ ...at, run_id: run?.id ?? 0 });
    await gh.idle();
    expect(run?.jobs.map(({ attempt }) => attempt)).toEqual([4, 4]);
  });

  it.each([
    ['on: pull_request', { types: ['opened', 'synchronize', 'reopened'], branches: null }],
    ['on: [push, pull_request]', { types: ['opened', 'synchronize', 'reopened'], branches: null }],
    ['on: {pull_request: {types: [labeled], branches: [main]}}', { types: ['labeled'], branches: ['main'] }],
    ['on: push', null],
  ])('%s', (text, trigger) => {
    expect(pullTrigger(text)).toEqual(trigger);
  });
});
