/** Suggestions as review comments on a real pull request of the sandbox (PUB-5). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findRemark } from '../../../db/store/remark.ts';
import { type GateStage, gateStage, type TestFinding, type TestRun } from '../../helpers/gate-stage.ts';

let stage: GateStage;
let serial = 0;
beforeAll(async () => {
  stage = await gateStage();
});
afterAll(async () => {
  await stage.close();
});

const POLICY = 'version: 1\npublish:\n  comments: review\n';
const FINDINGS = 'countersign / findings';

/** A pull request that changes line 3 of a file of 20 lines, read and reviewed with these findings, decided. */
async function reviewed(findings: readonly TestFinding[], policy = POLICY): Promise<TestRun> {
  const path = `suggest-${++serial}.ts`;
  const lines = Array.from({ length: 20 }, (_, i) => `line ${i + 1}`);
  await stage.repository.commit({ message: 'Base', files: { [path]: `${lines.join('\n')}\n` } });
  lines[2] = '  three();';
  const run = await stage.open({ [path]: `${lines.join('\n')}\n` }, { policy });
  await run.sync({ [path]: {} });
  await run.review(path, findings);
  return run;
}
async function decided(run: TestRun): Promise<void> {
  await run.decide();
  await stage.work();
}
const posted = (run: TestRun) => stage.gh.reviews(run.pull);
const commentsOf = (run: TestRun) =>
  stage.gh.world.reviewComments.filter((one) => posted(run).some((review) => review.id === one.reviewId));
const stored = (run: TestRun) =>
  findRemark(stage.database.database.db, {
    repositoryId: String(run.repository.id),
    pull: String(run.pull.number),
    sha: run.pull.head.sha,
  });
const good: TestFinding = { title: 'Calls three', line: 3, quote: 'three();', suggestion: '  four();' };

describe('PUB-5: the one review of a head', () => {
  test('holds each verified suggestion on its line, as a comment that neither approves nor asks; the rest is in the summary', async () => {
    const run = await reviewed([
      good,
      { title: 'Far away', line: 15, quote: 'line 15', suggestion: 'line fifteen' },
      { title: 'Misquoted', line: 3, quote: 'seven();', suggestion: 'x' },
      { title: 'Nothing to suggest', line: 2 },
    ]);
    await decided(run);
    const [review, ...more] = posted(run);
    expect(more).toEqual([]);
    expect(review).toMatchObject({ state: 'COMMENTED', commit: run.pull.head.sha });
    expect(review?.body).toContain('One suggestion');
    expect(review?.body).toContain('2 more could not be put on a line');
    const [comment, ...others] = commentsOf(run);
    expect(others).toEqual([]);
    expect(comment).toMatchObject({ line: 3, side: 'RIGHT' });
    expect(comment?.body).toContain('```suggestion\n  four();\n```');
    const summary = stage.check(run, FINDINGS)?.summary ?? '';
    expect(summary).toContain('Suggestions in no comment');
    expect(summary).toContain('its lines are not in the diff');
    expect(summary).toContain('line fifteen');
    expect(summary).toContain('its lines are not those that were quoted');
    expect(summary).not.toContain('four();');
    expect(await stored(run)).toMatchObject({ state: 'posted', findings: [1], githubId: String(review?.id) });
  });

  test('TKT-7: is made once: deciding again and later findings on that head add none', async () => {
    const run = await reviewed([good]);
    await decided(run);
    await decided(run);
    const path = `suggest-${serial}.ts`;
    await run.review(path, [{ title: 'Another', line: 2, quote: 'line 2', suggestion: 'line two' }]);
    await decided(run);
    await stage.advance(120_000);
    expect(posted(run)).toHaveLength(1);
    expect(stage.check(run, FINDINGS)?.summary).toContain('in no comment of this head');
  });

  test('case 36: one whose answer was lost is found by its marker, not made again', async () => {
    const run = await reviewed([good]);
    const fault = stage.gh.faults.add({ on: 'pulls/create-review', when: 'after', status: 502, times: 1 });
    await decided(run);
    expect(fault.hits).toBe(1);
    expect(posted(run)).toHaveLength(1);
    expect(await stored(run)).toMatchObject({ state: 'intended', githubId: null });
    await stage.advance(120_000);
    expect(posted(run)).toHaveLength(1);
    expect(await stored(run)).toMatchObject({ state: 'posted', githubId: String(posted(run)[0]?.id) });
    expect(stage.check(run)?.conclusion).toBe('failure');
  });

  test('one that was never made is made later; the check of findings did not wait for it', async () => {
    const run = await reviewed([good]);
    stage.gh.faults.add({ on: 'pulls/create-review', when: 'before', status: 502, times: 1 });
    await decided(run);
    expect(posted(run)).toHaveLength(0);
    expect(stage.check(run, FINDINGS)).toMatchObject({ conclusion: 'failure' });
    await stage.advance(120_000);
    expect(posted(run)).toHaveLength(1);
  });

  test('case 33: refused as a whole, all of it is shown in the summary', async () => {
    const run = await reviewed([good]);
    stage.gh.faults.add({ on: 'pulls/create-review', status: 422, message: 'Validation Failed' });
    await decided(run);
    await stage.advance(10_000);
    expect(posted(run)).toHaveLength(0);
    expect(await stored(run)).toMatchObject({ state: 'refused', findings: [] });
    const summary = stage.check(run, FINDINGS)?.summary ?? '';
    expect(summary).toContain('GitHub refused the review');
    expect(summary).toContain('four();');
  });

  test('on a head that is another one by now nothing is posted', async () => {
    const run = await reviewed([good]);
    await run.decide();
    await run.pull.push({ message: 'More', files: { [`suggest-${serial}.ts`]: 'other\n' } });
    await stage.work();
    expect(posted(run)).toHaveLength(0);
  });

  test('POL-1: without `publish.comments: review` none is made', async () => {
    const run = await reviewed([good], 'version: 1\n');
    await decided(run);
    expect(posted(run)).toHaveLength(0);
    expect(stage.check(run, FINDINGS)?.summary).not.toContain('Suggestions in no comment');
  });
});
