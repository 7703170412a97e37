/** Jobs of workflows: the port against the sandbox, and what servers of other kinds answer (facts/github.md §8). */
import nock from 'nock';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fault } from '../../../../app/errors.ts';
import { createGitHubApp } from '../../../../app/github/octokit.ts';
import type { GitHub, RepositoryAddress } from '../../../../app/github/port.ts';
import { type SandboxGitHub, startGitHub } from '../../../../sandbox/github.ts';
import type { App } from '../../../../sandbox/model.ts';
import type { Pull } from '../../../../sandbox/pull.ts';
import { recordsAnswers } from '../../../helpers/recorded.ts';

const FILE = `on: pull_request
jobs:
  one:
    name: the tests
    runs-on: [self-hosted, linux]
    steps: [{run: 'echo "::notice title=a title::text"; exit 1'}]
  two: {runs-on: ubuntu-latest, steps: [{run: 'true'}]}
`;

let gh: SandboxGitHub;
let app: App;
let pull: Pull;
let github: GitHub;
let address: RepositoryAddress;

beforeAll(async () => {
  gh = await startGitHub();
  const alice = gh.createUser('alice');
  app = gh.createApp();
  const repository = await gh.createRepository({
    owner: alice,
    files: { '.github/workflows/ci.yml': FILE },
  });
  const installation = await gh.installApp(app, repository);
  await repository.commit({ branch: 'topic', author: alice, files: { 'a.ts': '1\n' } });
  pull = await repository.openPull({ head: 'topic', user: alice });
  await gh.idle();
  const port = createGitHubApp({
    appId: String(app.id),
    privateKey: app.privateKey,
    webhookSecret: app.webhookSecret,
    apiUrl: gh.apiUrl,
    log: pino({ level: 'silent' }),
  });
  github = await port.installation(String(installation.id));
  address = { id: String(repository.id), owner: 'alice', name: repository.name };
});
recordsAnswers();
afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

const runOf = () => {
  const [run] = gh.actions.runs;
  if (run === undefined) throw new Error('nothing ran');
  return run;
};

describe('VER-1: jobs on a head, as the Actions API tells them', () => {
  it('runs by their commit and file, jobs with labels and check run, annotations with their title; ids as strings', async () => {
    const run = runOf();
    expect(await github.listRunsOnHead(address, pull.head.sha)).toEqual([
      {
        id: String(run.id),
        attempt: 1,
        workflow: 'ci.yml',
        event: 'pull_request',
        status: 'completed',
        conclusion: 'failure',
      },
    ]);
    expect(await github.listRunsOnHead(address, 'f'.repeat(40))).toEqual([]);
    const jobs = await github.listJobs(address, String(run.id));
    const one = jobs.find(({ name }) => name === 'the tests');
    expect(one).toMatchObject({
      attempt: 1,
      status: 'completed',
      conclusion: 'failure',
      labels: ['self-hosted', 'linux'],
      runnerGroup: 'Default',
    });
    expect(one?.checkRun).toBe(one?.id);
    expect(await github.listAnnotations(address, one?.checkRun ?? '')).toEqual([
      { title: 'a title', level: 'notice', message: 'text' },
    ]);
    expect((await github.getPull(address, String(pull.number))).mergeable).not.toBe(false);
  });

  it('VER-3: a job, what failed, or a whole run is run again; a run under way is refused for good', async () => {
    const run = runOf();
    const job = run.jobs.find(({ name }) => name === 'the tests');
    await github.rerunJob(address, String(job?.id));
    const refused = await github.rerunWorkflowRun(address, String(run.id), 'all').catch((error) => error);
    expect(refused).toBeInstanceOf(Fault);
    expect(refused.retryable).toBe(false);
    await gh.idle();
    await github.rerunWorkflowRun(address, String(run.id), 'failed');
    await gh.idle();
    await github.rerunWorkflowRun(address, String(run.id), 'all');
    await gh.idle();
    const jobs = await github.listJobs(address, String(run.id));
    expect(jobs.map(({ attempt }) => attempt)).toEqual([4, 4]);
  });

  it('RUN-2: a path with a ref, ids past 2^53, fields that a server leaves out, and runs of another commit', async () => {
    const { origin, pathname } = new URL(gh.apiUrl);
    const at = `${pathname}/repos/alice/${address.name}`;
    nock(origin)
      .get(`${at}/actions/runs`)
      .query(true)
      .reply(
        200,
        `{"total_count": 2, "workflow_runs": [
          {"id": 9007199254740993, "path": ".github/workflows/ci.yml@refs/pull/1/merge", "event": "push", "status": null, "conclusion": null, "head_sha": "${'a'.repeat(40)}"},
          {"id": 5, "path": ".github/workflows/ci.yml", "event": "push", "status": "queued", "conclusion": null, "head_sha": "${'b'.repeat(40)}"}]}`,
        { 'content-type': 'application/json' },
      );
    expect(await github.listRunsOnHead(address, 'a'.repeat(40))).toEqual([
      { id: '9007199254740993', attempt: 1, workflow: 'ci.yml', event: 'push', status: '', conclusion: null },
    ]);
    nock(origin)
      .get(`${at}/actions/runs`)
      .query(true)
      .reply(200, { total_count: 1, workflow_runs: [{}] });
    const fault = await github.listRunsOnHead(address, 'a'.repeat(40)).catch((error) => error);
    expect(fault).toMatchObject({ code: 'github_unavailable', retryable: true });
  });
});
