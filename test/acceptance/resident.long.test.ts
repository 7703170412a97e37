/** Resident runners as processes: `countersign runner` against the sandbox, with no job of the repository's own. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { changePool } from '../../app/flow/change-pool.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type Child, startChild } from '../helpers/process.ts';
import { eventually, holdingPolicy, seen, spent } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

const MINUTE = 60_000;
const OWN = 'pools:\n  - {kind: resident, name: own}\n';
const BOTH = `${OWN}  - {kind: workflow}\n`;

let stage: TestStage;
let folder: string;
let token: string;
const runners: Child[] = [];
beforeAll(async () => {
  stage = await testStage();
  folder = mkdtempSync(join(tmpdir(), 'countersign-resident-'));
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

/** A repository whose policy names the pool, registered for its installation. */
async function repositoryOf(name: string, policy: string): Promise<Repository> {
  const { repository, installation } = await stage.repository({ name, policy });
  const installations = [String(installation.id)];
  const { deps } = stage.server;
  await eventually(
    async () => (await stage.query(`select 1 from installation where id = ${installation.id}`)).length === 1,
    () => 'the installation is not known',
  );
  await changePool(deps, 'own', { change: 'add', installations, repositories: null });
  token ??= (await changePool(deps, 'own', { change: 'token' })).secret ?? '';
  return repository;
}

/** Starts the real program; its environment holds nothing but what it needs. */
function startRunner(commands: string, more: Record<string, string> = {}): Child {
  const child = startChild('cli', ['runner', '--pool', 'own', '--commands', commands], {
    PATH: process.env['PATH'],
    HOME: folder,
    TMPDIR: folder,
    COUNTERSIGN_URL: stage.server.url,
    COUNTERSIGN_POOL_TOKEN: token,
    ...more,
  });
  runners.push(child);
  return child;
}

const alive = (child: Child) =>
  eventually(
    () => child.lines.some((line) => line.includes('Logged in as runner')),
    () => `not logged in: ${child.lines.join('\n')}\n${child.errors()}`,
  );
const ends = async (pull: Parameters<TestStage['rows']>[0]) =>
  (await stage.rows(pull)).flatMap((row) => (row.kind === 'ticket.ended' ? [row.data] : []));

describe('resident runners', { timeout: 180_000 }, () => {
  it('POOL-1, AUT-2, AUT-4: a pull request ends green by a resident runner, without a workflow file and without a dispatch', async () => {
    const repository = await repositoryOf('own', markerPolicy(OWN));
    await repository.commit({
      message: 'No job of ours',
      files: { '.github/workflows/countersign.yml': null },
    });
    const runner = startRunner('awk');
    await alive(runner);
    await repository.commit({
      branch: 'topic',
      author: stage.author,
      files: { 'a.ts': 'a\n', 'b.ts': 'b // NIT\n', 'c.ts': 'c\n' },
    });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    expect(seen(stage, pull)).toMatchObject({ state: 'success', mergeable: true });
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 0, jobs: 0, tickets: 3, leases: 3 });
    const rows = await stage.rows(pull);
    const ended = rows.filter((row) => row.kind === 'ticket.ended');
    expect(ended.map((row) => row.data.runner)).toEqual(
      ended.map(() => expect.objectContaining({ pool: 'own', workflow_run: null, attempt: null, job: null })),
    );
    expect(ended.map((row) => row.actor.via)).toEqual(ended.map(() => 'pool_token'));

    runner.process.kill('SIGTERM');
    expect(await runner.ended, runner.errors()).toBe(0);
    const said = runner.lines.join('\n');
    expect(said).not.toContain(token);
    expect(said).not.toMatch(/ghs_[A-Za-z0-9]+/);
    expect(said).toContain('3 ticket(s) delivered, 1 finding(s)');
    // a runner that went is no capacity, from that moment on
    expect(
      await stage.query('select 1 from runner where repository_id is null and ended_at is null'),
    ).toEqual([]);
  });

  it('POOL-3, LSE-6: kill -9 of a resident runner with a file in hand: the work spills to the workflow pool', async () => {
    const repository = await repositoryOf('spill', holdingPolicy(folder) + BOTH);
    const runner = startRunner('node');
    await alive(runner);
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': '// HOLD spill\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await eventually(
      () => existsSync(join(folder, 'spill.begun')),
      () => `not begun: ${runner.lines.join('\n')}`,
    );
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 0, leases: 1 });
    runner.kill();
    await runner.ended;
    writeFileSync(join(folder, 'spill.go'), '');
    await stage.advance(6 * MINUTE);
    await stage.settle();
    expect(seen(stage, pull)?.state, 'a lost runner is nobody’s fault here').toBe('in_progress');
    await stage.advance(MINUTE);
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    expect((await ends(pull)).map(({ end, runner: by }) => [end, by?.pool])).toEqual([
      ['lost_runner', 'own'],
      ['reviewed', 'countersign.yml'],
    ]);
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 1, leases: 2 });
  });

  it('POOL-3, POOL-5: no runner of the only pool lives: said by name, and gone once one comes', async () => {
    const repository = await repositoryOf('empty', markerPolicy(OWN));
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull, { until: () => true });
    await stage.settle();
    await stage.advance(2 * MINUTE);
    await stage.settle();
    await eventually(
      () => seen(stage, pull)?.title === 'No runner came for the waiting files · 0 of 1 file done',
      () => JSON.stringify(seen(stage, pull)),
    );
    expect(stage.gate(pull)?.summary).toContain('own: no runner of it is alive');
    startRunner('awk');
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    await stage.settle();
    expect(stage.gate(pull)?.summary).not.toContain('dispatch_stalled');
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 0, leases: 1 });
  });
});
