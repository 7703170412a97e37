/** The life of a pull request: draft, ready, closed, reopened, another base, merged, its fork deleted. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pull } from '../../sandbox/pull.ts';
import { eventually, NOTHING, seen, spent, sticky } from '../helpers/sight.ts';
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

describe('the life of a pull request', () => {
  it('case 12, RUN-3, GAT-3: a draft sleeps and costs nothing; ready is reviewed with no new commit; a draft again is not mergeable', async () => {
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

  it('case 11, RUN-4: another base is another verdict, undecided at once on the same head, and only what is new is read', async () => {
    const { repository } = await stage.repository({ name: 'retargeted' });
    const below = Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`below-${i}.ts`, `below ${i}\n`]));
    await repository.commit({
      branch: 'stack',
      author: stage.author,
      files: { ...below, 'below-0.ts': 'below // BUG\n' },
    });
    await repository.commit({
      branch: 'topic',
      from: 'refs/heads/stack',
      author: stage.author,
      message: 'Add top',
      files: { 'top.ts': 'top\n', 'tip.ts': 'tip\n' },
    });
    const pull = await repository.openPull({ head: 'topic', base: 'stack', user: stage.author });
    const green = await stage.verdict(pull);
    expect(green.title).toBe('Passed: 2 files reviewed, nothing blocks');
    await stage.settle();
    const rows = (await stage.rows(pull)).length;

    await pull.edit(stage.author, { title: 'Only words' });
    await stage.settle();
    expect(conclusions(pull), 'a title is no news').toEqual(['success']);
    expect((await stage.rows(pull)).length).toBe(rows);

    // neither git nor the runner has anything to do with it: the green of the other base goes at once (GAT-4)
    stage.gh.actions.disturb({ kind: 'never' });
    stage.gh.faults.add({ on: 'git', times: 1_000, when: 'before', status: 503 });
    await pull.edit(stage.author, { base: 'main' });
    await stage.verdict(pull, { until: (run) => run.id !== green.id });
    expect(seen(stage, pull)).toMatchObject({ state: 'in_progress', mergeable: false });
    stage.gh.faults.clear();
    await stage.advance(11 * 60_000);
    const red = await stage.verdict(pull, { until: is('failure') });
    expect(red.title).toBe('1 finding blocks');
    expect(red.summary).toContain('**Coverage** 9 of 9 changed paths reviewed.');
    await stage.settle();
    expect(await spent(stage, repository), 'two were read before').toMatchObject({ tickets: 9 });
    const heads = (await stage.rows(pull)).flatMap((row) => (row.kind === 'run.head' ? [row.data] : []));
    expect(heads.map((head) => [head.base_ref, head.head === pull.head.sha, head.files])).toEqual([
      ['stack', true, 2],
      ['main', true, 9],
    ]);
    expect(new Set(heads.map((head) => head.merge_base)).size).toBe(2);
  });

  it('case 11: a parent that merges moves its child to the base, and a base that is renamed re-reviews nothing', async () => {
    const { repository } = await stage.repository({ name: 'stacked' });
    await repository.commit({ branch: 'parent', author: stage.author, files: { 'parent.ts': 'parent\n' } });
    await repository.commit({
      branch: 'child',
      from: 'refs/heads/parent',
      author: stage.author,
      message: 'Add child',
      files: { 'child.ts': 'child\n' },
    });
    const parent = await repository.openPull({ head: 'parent', user: stage.author });
    const child = await repository.openPull({ head: 'child', base: 'parent', user: stage.author });
    await stage.verdict(parent);
    await stage.verdict(child);
    await stage.settle();
    const once = await spent(stage, repository);
    await parent.merge(stage.owner);
    // what GitHub does when the merged branch is deleted
    await child.edit(stage.owner, { base: 'main' });
    await stage.settle();
    await stage.verdict(child, { until: is('success') });
    expect((await stage.run(child))?.baseRef).toBe('main');

    await repository.setBranch('trunk', await repository.tip('main'));
    await child.edit(stage.owner, { base: 'trunk' });
    await stage.settle();
    await stage.verdict(child, { until: is('success') });
    expect(seen(stage, child)).toMatchObject({ state: 'success' });
    expect((await stage.run(child))?.baseRef).toBe('trunk');
    expect(await spent(stage, repository), 'the diff is the same: nobody reads it again').toEqual(once);
  });

  it('case 13, RUN-7: closed under review, reopened at the same head: what was read is kept, the rest is asked for again', async () => {
    const { repository } = await stage.repository({ name: 'interrupted' });
    const { line, release } = stage.hold();
    const slow = Object.fromEntries(['c', 'd', 'e'].map((name) => [`${name}.ts`, `// ${name}\n${line}`]));
    await repository.commit({
      branch: 'topic',
      author: stage.author,
      files: { 'a.ts': 'a\n', 'b.ts': 'b // BUG\n', ...slow },
    });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    const states = async () =>
      (
        await stage.query<{ state: string; n: number }>(
          `select state, count(*)::int as n from ticket where repository_id = ${repository.id} group by state order by state`,
        )
      ).map(({ state, n }) => `${n} ${state}`);
    await eventually(
      async () => (await states()).join() === '2 ended,3 leased',
      () => 'it never came to two read and three under way',
    );
    await pull.close();
    await stage.verdict(pull, { until: is('cancelled') });
    await release();
    await stage.settle();
    expect(await states()).toEqual(['3 cancelled', '2 ended']);
    const late = (await stage.rows(pull)).filter((row) => /^ticket\.(refused|late)$/.test(row.kind));
    expect(late.length, 'what the runner says after the close is on the record').toBeGreaterThan(0);
    expect(seen(stage, pull), 'and not published').toMatchObject({ state: 'cancelled' });

    await pull.reopen();
    await stage.verdict(pull, { until: is('failure') });
    await stage.settle();
    expect(await states()).toEqual(['5 ended']);
    const ends = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' ? [String(row.data.path)] : [],
    );
    expect(ends.toSorted(), 'each was read once').toEqual(['a.ts', 'b.ts', 'c.ts', 'd.ts', 'e.ts']);
    expect(conclusions(pull)).toEqual(['cancelled', 'failure']);
  });

  it('case 13, RUN-7: a merge leaves the verdict it rested on, and what is pushed to the branch afterwards is nobody’s', async () => {
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

  // what `/fix` answers there waits for `/fix`
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
