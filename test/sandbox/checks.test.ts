import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, User } from '../../sandbox/model.ts';
import type { Repository } from '../../sandbox/repository.ts';

let gh: SandboxGitHub;
let alice: User;
let app: App;
let repo: Repository;
let octokit: Octokit;
let sha: string;

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const at = { owner: 'alice', repo: 'sample' };

async function clientOf(one: App): Promise<Octokit> {
  const installation = await gh.installApp(one, repo);
  const auth = { appId: one.id, privateKey: one.privateKey, installationId: installation.id };
  return new Octokit({ baseUrl: gh.apiUrl, authStrategy: createAppAuth, auth, log: quiet });
}

beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  app = gh.createApp();
  repo = await gh.createRepository({ owner: alice });
  octokit = await clientOf(app);
  sha = await repo.commit({ branch: 'topic', files: { 'a.txt': 'a\n' } });
});

afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});

const annotation = (more: object = {}) => ({
  path: 'a.txt',
  start_line: 1,
  end_line: 1,
  annotation_level: 'warning' as const,
  message: 'look',
  ...more,
});

function annotate(annotations: ReturnType<typeof annotation>[]) {
  const output = { title: 't', summary: 's', annotations };
  return octokit.rest.checks.create({ ...at, name: 'notes', head_sha: sha, output });
}

describe('check runs (facts §1)', () => {
  it('create is not idempotent: equal requests give new ids, external_id is only metadata', async () => {
    const make = () => octokit.rest.checks.create({ ...at, name: 'same', head_sha: sha, external_id: 'e' });
    const ids = [(await make()).data.id, (await make()).data.id];
    expect(new Set(ids).size).toBe(2);
    const latest = await octokit.rest.checks.listForRef({ ...at, ref: sha, check_name: 'same' });
    expect(latest.data.check_runs.map((run) => run.id)).toEqual([ids[1]]);
    const all = await octokit.rest.checks.listForRef({ ...at, ref: sha, check_name: 'same', filter: 'all' });
    expect(all.data.total_count).toBe(2);
    expect(all.data.check_runs[0]?.external_id).toBe('e');
  });

  it('the newest created governs a required check, not the newest updated', async () => {
    const pull = await repo.openPull({ head: 'topic', user: alice });
    expect(gh.mergeable(pull, 'gate', app)).toBe(false);
    const create = () =>
      octokit.rest.checks.create({ ...at, name: 'gate', head_sha: sha, status: 'in_progress' });
    const old = (await create()).data.id;
    const young = (await create()).data.id;
    await octokit.rest.checks.update({ ...at, check_run_id: old, conclusion: 'success' });
    expect(gh.mergeable(pull, 'gate', app)).toBe(false);
    await octokit.rest.checks.update({ ...at, check_run_id: young, conclusion: 'neutral' });
    expect(gh.mergeable(pull, 'gate', app)).toBe(true);
    expect(gh.governing(repo, sha, 'gate', app)?.id).toBe(young);
  });

  it('only the app that created a run may change it; a pinned check ignores the others', async () => {
    const other = gh.createApp({ slug: 'other' });
    const theirs = await clientOf(other);
    const { data: run } = await octokit.rest.checks.create({ ...at, name: 'mine', head_sha: sha });
    await expect(
      theirs.rest.checks.update({ ...at, check_run_id: run.id, conclusion: 'success' }),
    ).rejects.toMatchObject({
      status: 403,
      message: expect.stringContaining('check run can only be modified by the GitHub App that created it.'),
    });
    await theirs.rest.checks.create({ ...at, name: 'mine', head_sha: sha, conclusion: 'success' });
    expect(gh.governing(repo, sha, 'mine', app)?.id).toBe(run.id);
  });

  it('conclusion rules: completed needs one, setting one completes, completed_at stays', async () => {
    const base = { ...at, name: 'rules', head_sha: sha };
    await expect(octokit.rest.checks.create({ ...base, status: 'completed' } as never)).rejects.toMatchObject(
      {
        status: 422,
      },
    );
    await expect(octokit.rest.checks.create({ ...base, conclusion: 'stale' as never })).rejects.toMatchObject(
      {
        status: 422,
      },
    );
    const completed_at = '2026-11-01T00:00:00Z';
    const { data: run } = await octokit.rest.checks.create({ ...base, conclusion: 'failure', completed_at });
    expect(run).toMatchObject({ status: 'completed', completed_at });
    const id = { ...at, check_run_id: run.id };
    expect((await octokit.rest.checks.update({ ...id, conclusion: 'success' })).data.completed_at).toBe(
      completed_at,
    );
    expect((await octokit.rest.checks.get(id)).data.conclusion).toBe('success');
  });

  it('case 31: 50 annotations a request pass, 51 do not, and updates append', async () => {
    const fifty = Array.from({ length: 50 }, () => annotation());
    await expect(annotate([...fifty, annotation()])).rejects.toMatchObject({ status: 422 });
    const { data: run } = await annotate(fifty);
    const id = { ...at, check_run_id: run.id };
    await octokit.rest.checks.update({ ...id, output: { title: 't', summary: 's', annotations: fifty } });
    const all = await octokit.paginate(octokit.rest.checks.listAnnotations, { ...id, per_page: 100 });
    expect(all).toHaveLength(100);
    expect((await octokit.rest.checks.get(id)).data.output.annotations_count).toBe(100);
  });

  it.each([
    ['columns on a range', { start_line: 5, end_line: 9, start_column: 1, end_column: 2 }],
    ['column 0', { start_column: 0, end_column: 2 }],
    ['line 0', { start_line: 0, end_line: 0 }],
    ['end before start', { start_line: 4, end_line: 3 }],
    ['end column before start column', { start_column: 4, end_column: 3 }],
    ['a message of 70 KB', { message: 'x'.repeat(70 * 1024) }],
    ['a title of 256 characters', { title: 'x'.repeat(256) }],
    ['an unknown level', { annotation_level: 'error' }],
  ])('case 33: one annotation with %s fails the whole request', async (_, more) => {
    const before = gh.checkRuns(repo, sha).length;
    await expect(annotate([annotation(), annotation(more)])).rejects.toMatchObject({ status: 422 });
    expect(gh.checkRuns(repo, sha)).toHaveLength(before);
  });

  it('summary and text take 65,535 characters, three buttons fit', async () => {
    const base = { ...at, name: 'big', head_sha: sha };
    const output = (summary: string) => ({ title: 't', summary });
    await octokit.rest.checks.create({ ...base, output: output('x'.repeat(65_535)) });
    await expect(
      octokit.rest.checks.create({ ...base, output: output('x'.repeat(65_536)) }),
    ).rejects.toMatchObject({ status: 422 });
    const button = { label: 'Rerun', description: 'again', identifier: 'rerun' };
    await expect(
      octokit.rest.checks.create({ ...base, actions: [button, button, button, button] }),
    ).rejects.toMatchObject({ status: 422 });
    const long = { ...button, label: 'x'.repeat(21) };
    await expect(octokit.rest.checks.create({ ...base, actions: [long] })).rejects.toMatchObject({
      status: 422,
    });
  });

  it('a field that GitHub would silently ignore is a violation', async () => {
    await octokit.rest.checks.create({ ...at, name: 'typo', head_sha: sha, sumary: 'x' } as never);
    expect(gh.world.violations.splice(0)).toEqual([
      'checks/create: GitHub ignores the unknown field or parameter "sumary"',
    ]);
  });

  it('facts §2: one suite per app and commit', async () => {
    const { data } = await octokit.rest.checks.listSuitesForRef({ ...at, ref: sha, app_id: app.id });
    expect(data.total_count).toBe(1);
    expect(data.check_suites[0]?.app?.id).toBe(app.id);
  });

  it('facts §2: a commit may skip the checks of its push', async () => {
    const suites = () => gh.webhooks.events.filter(({ event }) => event === 'check_suite').length;
    const before = suites();
    await repo.commit({ branch: 'skip', files: {}, message: 'Skip', trailers: { 'skip-checks': 'true' } });
    expect(suites()).toBe(before);
    await repo.commit({ branch: 'skip', files: {}, message: 'Do not' });
    expect(suites()).toBeGreaterThan(before);
  });

  it('a run left incomplete for 14 days is stale, which does not let anything merge', async () => {
    const { data: run } = await octokit.rest.checks.create({ ...at, name: 'old', head_sha: sha });
    const days = 86_400_000;
    gh.advance(13 * days);
    const read = async () =>
      (await octokit.rest.checks.get({ ...at, check_run_id: run.id })).data.conclusion as string;
    expect(await read()).toBeNull();
    gh.advance(days + 1000);
    expect(await read()).toBe('stale');
  });

  it('a person cannot write checks, and re-request leaves the run untouched', async () => {
    const person = new Octokit({ baseUrl: gh.apiUrl, auth: alice.token, log: quiet });
    await expect(person.rest.checks.create({ ...at, name: 'x', head_sha: sha })).rejects.toMatchObject({
      status: 403,
    });
    const { data: run } = await octokit.rest.checks.create({
      ...at,
      name: 'again',
      head_sha: sha,
      conclusion: 'failure',
    });
    await person.rest.checks.rerequestRun({ ...at, check_run_id: run.id });
    expect((await octokit.rest.checks.get({ ...at, check_run_id: run.id })).data.conclusion).toBe('failure');
    expect(gh.webhooks.events.at(-1)).toMatchObject({ event: 'check_run', action: 'rerequested' });
  });
});
