/** The life of a pull request: draft, ready, closed, reopened, another base, merged, its fork deleted. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pull } from '../../sandbox/pull.ts';
import { NOTHING, seen, spent, sticky } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

const conclusions = (pull: Pull) =>
  stage.gh
    .checkRuns(pull.repository, pull.head.sha)
    .filter((run) => run.name === 'countersign')
    .map((run) => run.conclusion ?? run.status);
const is = (what: string) => (run: { status: string; conclusion: string | null }) =>
  (run.conclusion ?? run.status) === what;

describe('the life of a pull request', { timeout: 120_000 }, () => {
  it('RUN-3, GAT-3: a draft sleeps and costs nothing; ready is reviewed with no new commit; a draft again is not mergeable', async () => {
    const { repository } = await stage.repository({ name: 'drafted' });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author, draft: true });
    await stage.verdict(pull, { until: is('queued') });
    await stage.settle();
    expect(seen(stage, pull)).toMatchObject({ state: 'queued', mergeable: false });
    expect(seen(stage, pull)?.title).toMatch(/^Draft: reviewed when it is ready/);
    expect(stage.gate(pull)?.summary).not.toContain('Reviews are under way');
    expect(await spent(stage, repository)).toEqual(NOTHING);

    await pull.readyForReview();
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    const once = await spent(stage, repository);
    expect(once).toMatchObject({ tickets: 1, jobs: 1 });

    await pull.convertToDraft();
    await stage.verdict(pull, { until: is('queued') });
    expect(seen(stage, pull)?.mergeable).toBe(false);
    await pull.readyForReview();
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    expect(conclusions(pull), 'what was concluded is never set back: a second check run').toEqual([
      'success',
      'success',
    ]);
    expect(await spent(stage, repository), 'what was read is not read again').toEqual(once);
  });

  it('RUN-7: closing takes the green back, and reopening gives it again without a second review', async () => {
    const { repository } = await stage.repository({ name: 'reopened' });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    const once = await spent(stage, repository);

    await pull.close();
    await stage.verdict(pull, { until: is('cancelled') });
    expect(seen(stage, pull)).toEqual({
      state: 'cancelled',
      title: 'The pull request was closed',
      mergeable: false,
    });
    await pull.comment(stage.author, '/status');
    await stage.settle();
    expect(sticky(stage, pull)).toContain('The pull request is closed.');

    await pull.reopen();
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    expect(conclusions(pull)).toEqual(['cancelled', 'success']);
    expect(await spent(stage, repository)).toEqual(once);
    const kinds = (await stage.rows(pull)).map((row) => row.kind);
    expect(kinds.filter((kind) => kind === 'run.closed' || kind === 'run.reopened')).toEqual([
      'run.closed',
      'run.reopened',
    ]);
  });

  it('RUN-4: another base is another verdict, undecided at once on the same head', async () => {
    const { repository } = await stage.repository({ name: 'retargeted' });
    await repository.commit({
      branch: 'stack',
      author: stage.author,
      files: { 'below.ts': 'below // BUG\n' },
    });
    await repository.commit({
      branch: 'topic',
      from: 'refs/heads/stack',
      author: stage.author,
      message: 'Add top',
      files: { 'top.ts': 'top\n' },
    });
    const pull = await repository.openPull({ head: 'topic', base: 'stack', user: stage.author });
    const green = await stage.verdict(pull);
    expect(green.title).toBe('Passed: 1 file reviewed, nothing blocks');
    await stage.settle();

    await pull.edit(stage.author, { title: 'Only words' });
    await stage.settle();
    expect(conclusions(pull), 'a title is no news').toEqual(['success']);

    // the runner would decide it soon: what a person sees before that must not be the green of the other base
    stage.gh.actions.disturb({ kind: 'never' });
    await pull.edit(stage.author, { base: 'main' });
    await stage.verdict(pull, { until: (run) => run.id !== green.id });
    expect(seen(stage, pull)).toMatchObject({ state: 'in_progress', mergeable: false });
    await stage.settle();
    expect(seen(stage, pull)).toMatchObject({ state: 'in_progress', mergeable: false });
    await stage.advance(11 * 60_000);
    const red = await stage.verdict(pull, { until: is('failure') });
    expect(red.title).toBe('1 finding blocks');
    expect(red.summary).toContain('**Coverage** 2 of 2 changed paths reviewed.');
    await stage.settle();
    expect(await spent(stage, repository), 'top.ts was read before').toMatchObject({ tickets: 2 });
  });

  it('RUN-7: a merge leaves the verdict it rested on, and what is pushed to the branch afterwards is nobody’s', async () => {
    const { repository } = await stage.repository({ name: 'merged' });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull, { until: is('success') });
    await stage.settle();
    await pull.merge(stage.owner);
    await stage.settle();
    expect(conclusions(pull)).toEqual(['success']);
    expect((await stage.run(pull))?.status).toBe('merged');
    const once = await spent(stage, repository);

    const sha = await repository.commit({ branch: 'topic', author: stage.author, files: { 'b.ts': 'b\n' } });
    await pull.comment(stage.author, '/status');
    await stage.settle();
    expect(stage.gh.checkRuns(repository, sha).filter((run) => run.app === stage.app)).toEqual([]);
    expect(sticky(stage, pull)).toContain('The pull request is merged.');
    expect(await spent(stage, repository)).toEqual(once);
  });

  it('case 9: the fork is deleted: read from the pull ref, nothing crashes, and a command still works', async () => {
    const { repository } = await stage.repository({ name: 'orphaned' });
    const author = stage.gh.createUser('leaving');
    const fork = await repository.fork(author);
    await fork.commit({ branch: 'fix', author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'fix', fork, user: author });
    await stage.verdict(pull, { until: is('action_required') });
    await stage.settle();
    await fork.delete();
    pull.becomeGhost();
    await pull.edit(stage.owner, { title: 'The author is gone' });
    await stage.settle();
    expect(seen(stage, pull)?.state).toBe('action_required');
    await stage.advance(2_000);
    await pull.comment(stage.author, '/allow');
    await stage.verdict(pull, { until: is('success') });
    expect(seen(stage, pull)).toEqual({
      state: 'success',
      title: 'Passed: 1 file reviewed, nothing blocks',
      mergeable: true,
    });
    const rerun = await pull.comment(stage.author, '/rerun all');
    await stage.settle();
    expect(rerun.reactions.map((one) => one.content)).toEqual(['eyes', 'rocket']);
    await stage.verdict(pull, { until: is('success') });
    const opened = (await stage.rows(pull)).find((row) => row.kind === 'run.opened');
    expect(opened?.data, 'who opened it stays on the record').toMatchObject({
      author: { id: String(author.id), login: 'leaving' },
    });
  });
});
