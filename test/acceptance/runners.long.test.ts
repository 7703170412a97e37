/** Runners that get lost or never come, and a repository that cannot start any (POOL-3, POOL-5, LSE-6, RUN-9). */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, holdingPolicy, NOTHING, seen, spent } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

const MINUTE = 60_000;

let stage: TestStage;
let folder: string;
beforeAll(async () => {
  stage = await testStage();
  folder = mkdtempSync(join(tmpdir(), 'countersign-hold-'));
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true });
});

const is = (what: string) => (run: { status: string; conclusion: string | null }) =>
  (run.conclusion ?? run.status) === what;

describe('runners', () => {
  it('LSE-6: a runner that GitHub reports lost in the middle of a file: another one takes it, and nobody has to ask', async () => {
    const { repository } = await stage.repository({ name: 'lost', policy: holdingPolicy(folder) });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': '// HOLD lost\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await eventually(
      () => existsSync(join(folder, 'lost.begun')),
      () => `not read: ${JSON.stringify(seen(stage, pull))}`,
    );
    const [job] = stage.gh.actions.runs.filter((run) => run.repository === repository);
    if (job === undefined) throw new Error('no job');
    stage.gh.actions.lose(job);
    writeFileSync(join(folder, 'lost.go'), '');
    await stage.gh.actions.reportLost(job);
    expect(seen(stage, pull), 'a lost runner is nobody’s fault here').toMatchObject({ state: 'in_progress' });
    await eventually(
      async () => (await stage.query("select 1 from lease where state = 'expired'")).length === 1,
      () => 'the lease of the lost runner still holds',
    );
    await stage.advance(MINUTE); // the file waits half a minute before it is tried again
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    const ends = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' ? [row.data.end] : [],
    );
    expect(ends).toEqual(['lost_runner', 'reviewed']);
    expect(await spent(stage, repository)).toMatchObject({ tickets: 1, leases: 2, jobs: 2 });
    expect(stage.gh.comments(pull)).toEqual([]);
  });

  it('LSE-6: a runner that falls silent: its lease runs out, and another one takes the file', async () => {
    const { repository } = await stage.repository({ name: 'silent', policy: holdingPolicy(folder) });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': '// HOLD silent\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await eventually(
      () => existsSync(join(folder, 'silent.begun')),
      () => `not read: ${JSON.stringify(seen(stage, pull))}`,
    );
    const [job] = stage.gh.actions.runs.filter((run) => run.repository === repository);
    if (job === undefined) throw new Error('no job');
    stage.gh.actions.lose(job);
    writeFileSync(join(folder, 'silent.go'), '');
    await stage.advance(6 * MINUTE);
    await stage.settle();
    expect(seen(stage, pull)?.state).toBe('in_progress');
    await stage.advance(MINUTE);
    await stage.verdict(pull, { until: is('success') });
    const ends = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' ? [row.data.end] : [],
    );
    expect(ends).toEqual(['lost_runner', 'reviewed']);
  });

  it('case 42, POOL-3: no runner comes, twice: said after twenty minutes, tried again, and green by itself', async () => {
    const { repository } = await stage.repository({ name: 'never' });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    stage.gh.actions.disturb({ kind: 'never', times: 2 });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull, { until: () => true });
    await stage.settle();
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 1, leases: 0 });
    await stage.advance(10 * MINUTE + 1_000);
    await stage.settle();
    expect(seen(stage, pull), 'once says nothing of the pool').toMatchObject({
      state: 'in_progress',
      title: 'Reviews are under way · 0 of 1 file done',
    });
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 2, leases: 0 });
    await stage.advance(10 * MINUTE + 1_000);
    await stage.settle();
    expect(seen(stage, pull)).toEqual({
      state: 'in_progress',
      title: 'No runner came for the waiting files · 0 of 1 file done',
      mergeable: false,
    });
    expect(stage.gate(pull)?.summary).toMatch(
      /\| `dispatch_stalled` No runner came for the waiting files: countersign\.yml: no runner came \|/,
    );
    expect(stage.gate(pull)?.summary).toContain('see the workflow file and its runs');
    expect(await spent(stage, repository), 'a stalled pool is left alone for a while').toMatchObject({
      dispatches: 2,
    });
    await stage.advance(5 * MINUTE + 1_000);
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    expect(stage.gate(pull)?.summary).not.toContain('dispatch_stalled');
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 3, leases: 1 });
  });

  it('case 42, POOL-3: runs that fail to start are noticed when GitHub says so, not after ten minutes', async () => {
    const { repository } = await stage.repository({ name: 'startup' });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    stage.gh.actions.disturb({ kind: 'startup_failure', times: 2 });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull, { until: () => true });
    await stage.settle();
    await stage.advance(6_000); // titles of a wait are written every five seconds
    await stage.settle();
    expect(seen(stage, pull)).toEqual({
      state: 'in_progress',
      title: 'No runner came for the waiting files · 0 of 1 file done',
      mergeable: false,
    });
    expect(stage.gate(pull)?.summary, 'with what GitHub said').toContain('startup\\_failure');
    await stage.advance(5 * MINUTE);
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 3, leases: 1 });
  });

  it('RUN-9: the workflow file is missing: said before anything is dispatched, and cleared by adding it', async () => {
    const { repository } = await stage.repository({ name: 'half', workflow: false });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull, { until: is('action_required') });
    await stage.settle();
    expect(seen(stage, pull)).toEqual({
      state: 'action_required',
      title: 'The repository is enrolled and cannot work yet',
      mergeable: false,
    });
    expect(stage.gate(pull)?.summary).toContain('countersign.yml is missing on the default branch');
    expect(stage.gate(pull)?.summary).toContain('maintain or admin');
    expect(stage.gate(pull)?.summary).not.toContain('Reviews are under way');
    expect(await spent(stage, repository)).toMatchObject({ ...NOTHING, tickets: 1 });
    await stage.advance(20 * MINUTE);
    await stage.settle();
    expect(await spent(stage, repository), 'and it is not tried in vain').toMatchObject({ dispatches: 0 });

    const donor = stage.gh.world.repositories.find((one) => one.name === 'startup');
    const path = '.github/workflows/countersign.yml';
    const text = await stage.gh.actions.files.read(donor ?? repository, (await donor?.tip()) ?? '', path);
    await repository.commit({ message: 'Add the workflow', files: { [path]: text ?? '' } });
    await stage.verdict(pull, { until: is('success') });
    expect(seen(stage, pull)).toMatchObject({ state: 'success', mergeable: true });
  });
});
