import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WorkflowRun } from '../../sandbox/actions/run.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { User } from '../../sandbox/model.ts';
import type { Repository } from '../../sandbox/repository.ts';

let gh: SandboxGitHub;
let alice: User;
let repo: Repository;
let octokit: Octokit;

const at = { owner: 'alice', repo: 'sample' };
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

function workflow(steps: string, more = ''): string {
  return `name: Work
run-name: Work for \${{ inputs.nonce }}
on:
  workflow_dispatch:
    inputs:
      nonce: {required: true}
      color: {default: red}
${more}
jobs:
  work:
    runs-on: ubuntu-latest
    steps:
${steps.replace(/^/gm, '      ')}
`;
}

async function put(name: string, text: string): Promise<void> {
  await repo.commit({ files: { [`.github/workflows/${name}`]: text } });
}

async function dispatch(
  name: string,
  inputs: Record<string, string> = { nonce: 'n1' },
): Promise<WorkflowRun> {
  const answer = await octokit.rest.actions.createWorkflowDispatch({
    ...at,
    workflow_id: name,
    ref: 'main',
    inputs,
    return_run_details: true,
  } as never);
  const { workflow_run_id: id } = answer.data as unknown as { workflow_run_id: number };
  const run = gh.actions.runs.find((one) => one.id === id);
  if (run === undefined) throw new Error('no run');
  return run;
}

const until = async (what: () => boolean): Promise<void> => {
  for (let i = 0; i < 3000 && !what(); i++) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(what()).toBe(true);
};

beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  repo = await gh.createRepository({ owner: alice });
  const app = gh.createApp();
  const installation = await gh.installApp(app, repo);
  const auth = { appId: app.id, privateKey: app.privateKey, installationId: installation.id };
  octokit = new Octokit({ baseUrl: gh.apiUrl, authStrategy: createAppAuth, auth, log: quiet });
});

afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

describe('dispatch (facts §7)', () => {
  it('runs the steps for real, in an environment made from nothing', async () => {
    process.env['SECRET_OF_THE_TEST'] = 'must not be seen';
    repo.secrets['KEY'] = 'hush-hush';
    repo.variables['REGION'] = 'eu';
    await put(
      'real.yml',
      workflow(`
- id: one
  run: |
    echo "color=\${{ inputs.color }}" >> "$GITHUB_OUTPUT"
    echo "FROM_ONE=\${{ vars.REGION }}" >> "$GITHUB_ENV"
    echo "# Done" >> "$GITHUB_STEP_SUMMARY"
- run: |
    echo "color is $COLOR, region $FROM_ONE, key $KEY, run $GITHUB_RUN_ID, sha $GITHUB_SHA"
    echo "::warning::look at $KEY"
    echo "::add-mask::hidden"; echo "this is hidden"
    env | sort
  env:
    COLOR: \${{ steps.one.outputs.color }}
    KEY: \${{ secrets.KEY }}
- run: git clone -q "http://x-access-token:$TOKEN@\${GITHUB_SERVER_URL#http://}/$GITHUB_REPOSITORY" there && ls there
  env:
    TOKEN: \${{ github.token }}
- if: failure()
  run: exit 1
`),
    );
    const run = await dispatch('real.yml');
    await gh.idle();
    delete process.env['SECRET_OF_THE_TEST'];
    const [job] = run.jobs;
    expect({ conclusion: run.conclusion, log: job?.log }).toMatchObject({ conclusion: 'success' });
    expect(job?.log).toContain(`color is red, region eu, key ***, run ${run.id}, sha ${run.headSha}`);
    expect(job?.log).toContain('this is ***');
    expect(job?.log).toContain('README.md');
    expect(job?.log).not.toContain('must not be seen');
    expect(job?.log).not.toContain('ACTIONS_ID_TOKEN');
    expect(job?.annotations).toEqual([
      { level: 'warning', title: null, path: '.github', line: 1, message: 'look at ***' },
    ]);
    expect(job?.summary).toBe('# Done\n');
    expect(job?.steps.map((step) => step.conclusion)).toEqual(['success', 'success', 'success', 'skipped']);
    const { data } = await octokit.rest.actions.getWorkflowRun({ ...at, run_id: run.id });
    expect(data).toMatchObject({ display_title: 'Work for n1', status: 'completed', conclusion: 'success' });
    expect(data.id).toBeGreaterThan(2 ** 31);
    const jobs = await octokit.rest.actions.listJobsForWorkflowRun({ ...at, run_id: run.id });
    expect(jobs.data.jobs[0]).toMatchObject({ name: 'work', conclusion: 'success', run_attempt: 1 });
    const events = gh.webhooks.events.filter(({ event }) => /^workflow_(run|job)/.test(event));
    expect(events.map(({ event, action }) => `${event}.${action}`)).toEqual([
      'workflow_run.requested',
      'workflow_job.queued',
      'workflow_job.in_progress',
      'workflow_run.in_progress',
      'workflow_job.completed',
      'workflow_run.completed',
    ]);
    const [check] = gh.checkRuns(repo, run.headSha);
    expect(check).toMatchObject({ id: job?.id, name: 'work', conclusion: 'success', app: { id: 15368 } });
  });

  it('refuses as GitHub does', async () => {
    await put('plain.yml', workflow('- run: "true"'));
    await put('push.yml', 'on: push\njobs: {a: {runs-on: x, steps: [{run: "true"}]}}\n');
    await repo.commit({ branch: 'side', files: { '.github/workflows/side.yml': workflow('- run: "true"') } });
    const call = (workflow_id: string, ref: string, inputs: Record<string, string>) =>
      octokit.rest.actions.createWorkflowDispatch({ ...at, workflow_id, ref, inputs });
    const nonce = 'x';
    await expect(call('side.yml', 'side', { nonce })).rejects.toMatchObject({ status: 404 });
    await expect(call('plain.yml', 'nowhere', { nonce })).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining('No ref found for: nowhere'),
    });
    await expect(call('plain.yml', 'main', { nonce, shape: 'round' })).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining('Unexpected inputs provided: ["shape"]'),
    });
    await expect(call('push.yml', 'main', {})).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining("Workflow does not have 'workflow_dispatch' trigger"),
    });
    expect((await call('plain.yml', 'main', { nonce })).status).toBe(204);
    await gh.idle();
  });

  it('a mistake in the file is a run with no job: startup_failure', async () => {
    await put('bad.yml', workflow('- run: "true"\n  colour: red'));
    const run = await dispatch('bad.yml');
    await gh.idle();
    expect(run).toMatchObject({ status: 'completed', conclusion: 'startup_failure', jobs: [] });
  });

  it('an action from elsewhere cannot be resolved, later steps are skipped', async () => {
    await put(
      'foreign.yml',
      workflow('- uses: actions/setup-elsewhere@v7\n- run: "true"\n- if: always()\n  run: echo still'),
    );
    const run = await dispatch('foreign.yml');
    await gh.idle();
    expect(run.conclusion).toBe('failure');
    expect(run.jobs[0]?.steps.map((step) => step.conclusion)).toEqual(['failure', 'skipped', 'success']);
  });
});

describe('OIDC (facts §9)', () => {
  it('a job with id-token: write gets a token that jose verifies', async () => {
    await put(
      'identity.yml',
      workflow(
        `
- run: |
    curl -sf -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" "$ACTIONS_ID_TOKEN_REQUEST_URL&audience=https://cs.example" > "$RUNNER_TEMP/token"
    node -e 'process.stdout.write(JSON.parse(require("fs").readFileSync(process.env.RUNNER_TEMP + "/token")).value)' | sed 's/^/token=/' >> "$GITHUB_OUTPUT"
  id: identity`,
        'permissions: {id-token: write, contents: read}',
      ),
    );
    const run = await dispatch('identity.yml');
    await gh.idle();
    const [job] = run.jobs;
    expect({ conclusion: run.conclusion, log: job?.log }).toMatchObject({ conclusion: 'success' });
    const discovery = await fetch(`${gh.oidc.issuer}/.well-known/openid-configuration`);
    const { jwks_uri, issuer } = (await discovery.json()) as { jwks_uri: string; issuer: string };
    const keys = createRemoteJWKSet(new URL(jwks_uri));
    const token = job?.outputs['identity']?.['token'] ?? '';
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: 'https://cs.example',
      algorithms: ['RS256'],
    });
    expect(payload).toMatchObject({
      repository_id: String(repo.id),
      repository_owner_id: String(alice.id),
      run_id: String(run.id),
      run_attempt: '1',
      check_run_id: String(job?.id),
      event_name: 'workflow_dispatch',
      ref: 'refs/heads/main',
      workflow_ref: 'alice/sample/.github/workflows/identity.yml@refs/heads/main',
      sub: `repo:alice@${alice.id}/sample@${repo.id}:ref:refs/heads/main`,
      runner_environment: 'github-hosted',
    });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300);
    const other = gh.oidc.claimsFor(repo, 'https://cs.example', { event: 'pull_request', run: 5 });
    const { payload: pull } = await jwtVerify(await gh.oidc.mint(other), keys, { issuer });
    expect(pull).toMatchObject({ event_name: 'pull_request', run_id: '5', repository_id: String(repo.id) });
    const foreign = await gh.oidc.mint({ aud: 'other', run_id: '1' });
    await expect(jwtVerify(foreign, keys, { issuer, audience: 'https://cs.example' })).rejects.toThrow();
  });
});

describe('runs that go wrong (facts §8)', () => {
  it('cancel interrupts the step, always() still runs, a forced cancel passes over it', async () => {
    await put(
      'long.yml',
      workflow(
        // `wait` ends at a signal; in a loop of commands bash loses one in forty of those that come between two.
        "- run: trap 'echo got it; exit 3' INT; sleep 30 & echo begun; wait\n- if: always()\n  run: echo cleaned",
      ),
    );
    const run = await dispatch('long.yml');
    await until(() => run.jobs[0]?.log.includes('begun') === true);
    const answer = await octokit.rest.actions.cancelWorkflowRun({ ...at, run_id: run.id });
    expect(answer.status).toBe(202);
    await gh.idle();
    expect({ conclusion: run.conclusion, log: run.jobs[0]?.log }).toEqual({
      conclusion: 'cancelled',
      log: 'begun\ngot it\ncleaned\n',
    });
    await expect(octokit.rest.actions.cancelWorkflowRun({ ...at, run_id: run.id })).rejects.toMatchObject({
      status: 409,
    });
    const forced = await dispatch('long.yml');
    await until(() => forced.jobs[0]?.log.includes('begun') === true);
    await octokit.rest.actions.forceCancelWorkflowRun({ ...at, run_id: forced.id });
    await gh.idle();
    expect(forced.jobs[0]?.log).not.toContain('cleaned');
  });

  it('a lost runner is silent until GitHub notices; a rerun is the next attempt of the same id', async () => {
    await put('lost.yml', workflow('- run: echo begun; if [ "$GITHUB_RUN_ATTEMPT" = 1 ]; then sleep 60; fi'));
    const run = await dispatch('lost.yml');
    await until(() => run.jobs[0]?.log.includes('begun') === true);
    gh.actions.lose(run);
    await gh.idle();
    expect(run).toMatchObject({ status: 'in_progress', conclusion: null });
    await gh.actions.reportLost(run);
    expect(run).toMatchObject({ status: 'completed', conclusion: 'failure' });
    await gh.actions.rerun(run);
    await gh.idle();
    expect(run).toMatchObject({ attempt: 2, conclusion: 'success' });
  });

  it('a job that never starts, a start-up failure and a blocked actor', async () => {
    await put('quick.yml', workflow('- run: "true"'));
    gh.actions.disturb({ kind: 'never' });
    const never = await dispatch('quick.yml');
    await gh.idle();
    expect(never).toMatchObject({ status: 'queued', jobs: [{ status: 'queued' }] });
    gh.actions.disturb({ kind: 'startup_failure' });
    gh.actions.disturb({ kind: 'blocked' });
    expect([await dispatch('quick.yml'), await dispatch('quick.yml')]).toHaveLength(2);
    await gh.idle();
    expect(gh.actions.runs.slice(-2).map((run) => run.conclusion)).toEqual(['startup_failure', 'failure']);
    await octokit.rest.actions.cancelWorkflowRun({ ...at, run_id: never.id });
    expect(never.conclusion).toBe('cancelled');
  });

  it('a newer pending run of a group cancels the older pending one', async () => {
    await put('group.yml', workflow('- run: echo begun; sleep 1', 'concurrency: Shared'));
    const first = await dispatch('group.yml');
    await until(() => first.status === 'in_progress');
    const second = await dispatch('group.yml');
    await until(() => second.status === 'pending');
    const third = await dispatch('group.yml');
    await gh.idle();
    expect([first, second, third].map((run) => run.conclusion)).toEqual(['success', 'cancelled', 'success']);
  });
});
