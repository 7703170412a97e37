/** Verify commands of a resident pool: `countersign runner` as a process, against the sandbox and a container runtime. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Runtime } from '../../action/verify/runtime.ts';
import { changePool } from '../../app/flow/change-pool.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { NO_RUNTIME, realRuntime, standInRuntime } from '../helpers/containers.ts';
import { type Child, startChild } from '../helpers/process.ts';
import { eventually } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

const MINUTE = 60_000;
const POOL = 'box';
const folder = mkdtempSync(join(tmpdir(), 'countersign-pool-'));
const IMAGE = `cs-test:${process.pid}`;
const real = await realRuntime(folder, IMAGE);

const POLICY = markerPolicy(`verify:
  e2e: {from: pool, pool: ${POOL}, image: "${IMAGE}", run: [/bin/sh, ./e2e.sh], artifacts: [out/report.txt], timeout: 2m}
routes:
  - {when: {paths: ["src/**"]}, verify: [e2e]}
pools:
  - {kind: resident, name: ${POOL}, serves: [review, verify]}
`);
/** Fails where a credential or a repository is in its container. */
const E2E = `env | grep -E 'TOKEN|ghs_|COUNTERSIGN_URL' && exit 9
test -e .git && exit 8
grep -q FAIL src/a.ts && exit 3
if grep -q HOLD src/a.ts; then
  touch '${folder}/begun'
  while ! test -e '${folder}/go'; do sleep 0.1; done
fi
mkdir out; echo done > out/report.txt
`;

let stage: TestStage;
let token: string;
let bin: string;
const runners: Child[] = [];
beforeAll(async () => {
  stage = await testStage();
  ({ bin } = await standInRuntime(folder));
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(async () => {
  for (const one of runners.splice(0)) {
    one.process.kill('SIGTERM');
    await one.ended;
  }
});

async function make(name: string): Promise<Repository> {
  const { repository, installation } = await stage.repository({
    name,
    policy: POLICY,
    files: { 'e2e.sh': E2E },
  });
  await eventually(
    async () => (await stage.query(`select 1 from installation where id = ${installation.id}`)).length === 1,
    () => 'the installation is not known',
  );
  const { deps } = stage.server;
  await changePool(deps, POOL, {
    change: 'add',
    installations: [String(installation.id)],
    repositories: null,
  });
  token ??= (await changePool(deps, POOL, { change: 'token' })).secret ?? '';
  await repository.commit({
    message: 'No job of ours',
    files: { '.github/workflows/countersign.yml': null },
  });
  return repository;
}

/** Starts the real program; without a runtime of the machine it finds the stand-in. */
async function startRunner(runtime: Runtime | null): Promise<Child> {
  const child = startChild('cli', ['runner', '--pool', POOL, '--commands', 'awk', '--images', IMAGE], {
    ...(runtime === null ? { PATH: `${bin}:${process.env['PATH']}`, HOME: folder } : runtime.env),
    TMPDIR: folder,
    COUNTERSIGN_URL: stage.server.url,
    COUNTERSIGN_POOL_TOKEN: token,
  });
  runners.push(child);
  await eventually(
    () => child.lines.some((line) => line.includes('Logged in as runner')),
    () => `not logged in: ${child.lines.join('\n')}\n${child.errors()}`,
  );
  return child;
}

async function open(repository: Repository, text: string): Promise<Pull> {
  await repository.commit({ branch: 'topic', author: stage.author, files: { 'src/a.ts': text } });
  return repository.openPull({ head: 'topic', user: stage.author });
}
const ends = async (pull: Pull) =>
  (await stage.rows(pull)).flatMap((row) =>
    row.kind === 'receipt.ended'
      ? [`${row.data.receipt} ${row.data.state} ${row.data.told?.exit ?? row.data.why}`]
      : [],
  );

async function redThenGreen(name: string, runtime: Runtime | null): Promise<void> {
  const repository = await make(name);
  const runner = await startRunner(runtime);
  expect(runner.lines.join('\n')).toMatch(/container runtime: (docker|podman) \d/);
  const pull = await open(repository, 'export const a = 1; // FAIL\n');
  const red = await stage.verdict(pull, { until: (run) => run.conclusion === 'failure' });
  expect(red.summary).toContain('e2e: it failed');
  const sha = await pull.push({ files: { 'src/a.ts': 'export const a = 1;\n' } });
  const green = await stage.verdict(pull, { sha, until: (run) => run.conclusion === 'success' });
  expect(green.summary).toContain('**Verify**');
  expect(await ends(pull)).toEqual(['RCP-001 failed 3', 'RCP-002 passed 0']);
  const ended = (await stage.rows(pull)).findLast((row) => row.kind === 'receipt.ended');
  expect(ended).toMatchObject({
    actor: { kind: 'runner', via: 'pool_token' },
    data: {
      job: null,
      conclusion: 'success',
      told: { mutated_count: 0, missing_count: 0, found: [{ files: 1 }] },
    },
  });
  runner.process.kill('SIGTERM');
  expect(await runner.ended, runner.errors()).toBe(0);
  const said = runner.lines.join('\n');
  expect(said).toContain('2 verify command(s) told');
  expect(said).not.toContain(token);
  expect(said).not.toMatch(/ghs_[A-Za-z0-9]+/);
}

describe('verify commands of a resident pool', { timeout: 180_000 }, () => {
  it('VER-1, AUT-4: red by the exit that the pool saw, green by a push, by the real runner and a stand-in for the runtime', () =>
    redThenGreen('pooled', null));

  it.skipIf(real === null)(
    `VER-1, AUT-4: the same in real containers${real === null ? ` (skipped: ${NO_RUNTIME})` : ''}`,
    () => redThenGreen('contained', real),
  );

  it('VER-3, LSE-5, POOL-3: SIGTERM under a command gives it back; kill -9 aborts it, and another runner clears away and runs it', async () => {
    const repository = await make('killed');
    const begun = join(folder, 'begun');
    const underCommand = async () => {
      const runner = await startRunner(null);
      await eventually(
        () => existsSync(begun),
        () => `not begun: ${runner.lines.join('\n')}`,
      );
      rmSync(begun);
      return runner;
    };
    const pull = await open(repository, 'export const a = 1; // HOLD\n');
    const told = await underCommand();
    told.process.kill('SIGTERM');
    expect(await told.ended, told.errors()).toBe(0);
    expect(told.lines.join('\n')).toContain('given back (stopping)');
    const waits = (await stage.rows(pull)).findLast((row) => row.kind === 'receipt.waiting');
    expect(waits?.kind === 'receipt.waiting' && waits.data.why).toBe('given_back');

    const killed = await underCommand();
    killed.kill();
    await killed.ended;
    await stage.advance(6 * MINUTE);
    await eventually(
      async () => (await ends(pull)).includes('RCP-001 aborted lost'),
      () => 'the runner is not missed',
    );
    writeFileSync(join(folder, 'go'), '');
    await stage.advance(MINUTE);
    const last = await startRunner(null);
    expect(last.lines.join('\n')).toContain('1 container(s) of a lost runner removed');
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    expect(await ends(pull)).toEqual(['RCP-001 aborted lost', 'RCP-001 passed 0']);
  });
});
