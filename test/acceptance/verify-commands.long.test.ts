import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parsePolicy } from '../../app/domain/policy.ts';
import { workflowFiles } from '../../app/domain/workflow/files.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { createCheckRun } from '../../sandbox/rest/check-runs.ts';
import { eventually } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

const POLICY = markerPolicy(`verify:
  unit: {from: ci, workflow: ci.yml, job: unit tests}
  e2e: {from: action, run: [sh, ./e2e.sh], artifacts: [report.txt], timeout: 2m}
routes:
  - {when: {paths: ["src/**"]}, verify: [unit, e2e]}
`);
const CI = `on: pull_request
jobs:
  unit:
    name: unit tests
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - run: 'for until in $(sed -n "s/.* JOB UNTIL //p" src/a.ts); do while [ ! -e "$until" ]; do sleep 0.05; done; done'
      - run: '! grep -q UNIT src/a.ts'
`;
const E2E = `grep -q FAIL src/a.ts && exit 3
grep -q SILENT src/a.ts || echo done > report.txt
`;

async function make(name: string): Promise<Repository> {
  const reading = parsePolicy(Buffer.from(POLICY));
  if (!reading.ok) throw new Error(JSON.stringify(reading.errors));
  const printed = workflowFiles(reading.policy, {
    serverUrl: stage.server.url,
    ref: 'countersign-dev/countersign@v0',
  });
  const verify = printed.find(({ path }) => path.endsWith('countersign-verify.yml'));
  const { repository } = await stage.repository({
    name,
    policy: POLICY,
    files: { '.github/workflows/ci.yml': CI, [verify?.path ?? '']: verify?.text ?? '', 'e2e.sh': E2E },
  });
  return repository;
}

async function open(repository: Repository, text: string): Promise<Pull> {
  const { author } = stage;
  await repository.commit({ branch: 'topic', author, files: { 'src/a.ts': text } });
  return repository.openPull({ head: 'topic', user: author });
}

const receipts = async (pull: Pull) =>
  (await stage.rows(pull)).flatMap((row) =>
    row.kind === 'receipt.ended'
      ? [`${row.data.receipt} ${row.data.state} ${row.data.why ?? 'fine'} ${row.data.told === undefined}`]
      : [],
  );

describe('verify commands', () => {
  it('VER-1…VER-3: red by what fails, no matter what another App says; mended by a push, whose deliveries were lost', async () => {
    const repository = await make('verified');
    const pull = await open(repository, 'export const a = 1; // UNIT FAIL\n');
    const red = await stage.verdict(pull);
    expect(red.conclusion).toBe('failure');
    await stage.settle();
    expect(stage.gate(pull)?.summary).toContain('e2e, unit: it failed');
    expect((await receipts(pull)).sort()).toEqual([
      'RCP-001 failed failed false',
      'RCP-002 failed failed true',
    ]);

    // VER-1: a check run that somebody else gave the job's name
    const other = stage.gh.createApp({ slug: 'other' });
    await stage.gh.installApp(other, repository);
    for (const name of ['unit tests', 'verify e2e'])
      await createCheckRun(stage.gh.world, repository, other, pull.head.sha, { name, conclusion: 'success' });
    await stage.settle();
    expect(stage.gate(pull)?.conclusion).toBe('failure');

    const found = stage.gh.webhooks.drop(({ event }) => event === 'workflow_job' || event === 'workflow_run');
    // under way when GitHub is looked at: its end is told by the lost delivery alone
    const { path, release } = stage.hold();
    const sha = await pull.push({ files: { 'src/a.ts': `export const a = 1; // JOB UNTIL ${path}\n` } });
    const reasons = async () => {
      const decided = (await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided');
      return decided?.kind === 'gate.decided' ? decided.data.reasons.map(({ code }) => code).join() : '';
    };
    await eventually(
      async () => (await stage.run(pull))?.head === sha && (await reasons()) === 'verify_pending',
      () => 'it never came to wait for the job alone',
    );
    await release();
    await stage.settle();
    expect(await reasons()).toBe('verify_pending');
    found();
    await stage.advance(6 * 60_000);
    const green = await stage.verdict(pull, { sha });
    expect(green.conclusion).toBe('success');
    expect(green.summary).toContain('**Verify**');
    expect((await receipts(pull)).slice(2).sort()).toEqual([
      'RCP-003 passed fine false',
      'RCP-004 passed fine true',
    ]);
  });

  it('VER-3: a job that passed and left out its artifact fails, and /rerun runs it again', async () => {
    const repository = await make('silent');
    const pull = await open(repository, 'export const a = 1; // SILENT\n');
    const red = await stage.verdict(pull);
    expect(red.conclusion).toBe('failure');
    expect(red.summary).toContain('e2e: it left out a file that it must make');
    await stage.settle();
    const before = stage.gh.actions.runs.filter((run) => run.repository === repository && run.attempt > 1);
    expect(before).toEqual([]);
    await pull.comment(stage.author, '/rerun e2e');
    await stage.settle();
    expect(
      stage.gh.actions.runs
        .filter((run) => run.repository === repository && run.attempt > 1)
        .map((run) => run.jobs.map(({ name, attempt }) => [name, attempt])),
    ).toEqual([[['verify e2e', 2]]]);
    expect((await receipts(pull)).filter((one) => one.includes('artifact_missing'))).toHaveLength(2);
  });

  it('VER-1: nothing runs while the pull request conflicts with its base, and the gate says so', async () => {
    const repository = await make('conflict');
    const { author } = stage;
    await repository.commit({ branch: 'topic', author, files: { 'src/a.ts': 'one\n' } });
    await repository.commit({ author, files: { 'src/a.ts': 'two\n' } });
    const pull = await repository.openPull({ head: 'topic', user: author });
    await stage.settle();
    await stage.advance(6 * 60_000);
    await stage.settle();
    const gate = stage.gate(pull);
    expect(gate?.status).toBe('in_progress');
    expect(gate?.summary).toContain('conflicts with its base');
  });
});
