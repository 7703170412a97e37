/** The merge queue (GAT-5): a batch that passes without a new review, one that nobody reviewed, one whose member is red. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { findGroupRun } from '../../db/store/group.ts';
import type { QueueRule } from '../../sandbox/merge-queue.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { spent } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

/** A reviewer that objects to what two changes come to together, and to BUG. */
const policy = `version: 1
reviewers:
  pairs:
    uses: command
    run: [awk, ${JSON.stringify(
      String.raw`/BUG/{b=1}/left/{l=1}/right/{r=1}END{n=b||l&&r;print "{\"version\":1,\"count\":" (n+0) ",\"findings\":[" (n?"{\"start_line\":1,\"severity\":\"high\",\"title\":\"They do not go together\",\"body\":\"Both are here.\"}":"") "]}"}`,
    )}, '{path}']
    output: countersign
    paths: ['**']
    deletions: true
    lenses: [correctness]
    trusted: true
`;

async function place(name: string, rule: Partial<QueueRule>, files: Record<string, string>) {
  const { repository, installation } = await stage.repository({ name, policy, files });
  return { repository, installation, queue: repository.useQueue(rule) };
}

async function green(repository: Repository, branch: string, files: Record<string, string | null>) {
  await repository.commit({ branch, author: stage.author, message: branch, files });
  const pull = await repository.openPull({ head: branch, user: stage.author });
  const verdict = await stage.verdict(pull);
  expect(verdict.conclusion, verdict.summary ?? '').toBe('success');
  return pull;
}

/** The commits for which checks were asked, and how our gate stands on each. */
function asked(repository: Repository) {
  return stage.gh.webhooks.events
    .filter(({ event, action }) => event === 'merge_group' && action === 'checks_requested')
    .filter(({ payload }) => (payload['repository'] as { id: number }).id === repository.id)
    .map(({ payload }) => (payload['merge_group'] as { head_sha: string }).head_sha);
}
const gateOn = (repository: Repository, sha: string) =>
  stage.gh.governing(repository, sha, 'countersign', stage.app);

async function rowsOf(repository: Repository, installation: { id: number }, head: string) {
  const place = { installationId: String(installation.id), id: String(repository.id) };
  const run = await findGroupRun(stage.database.database.db, place, head);
  if (run === null) throw new Error(`no run of ${head}`);
  const { verdict, rows } = await verifyRun(stage.server.deps, run, { full: true });
  expect(verdict.kind).toBe('intact');
  return rows;
}
const merged = (...pulls: Pull[]) => pulls.map((pull) => pull.merged);

describe('a merge queue', () => {
  const lines = (...changed: [number, string][]) => {
    const text = Array.from({ length: 20 }, (_, i) => `line ${i}`);
    for (const [at, to] of changed) text[at] = to;
    return `${text.join('\n')}\n`;
  };

  it('GAT-5: a batch of three, of which two change one file, is green without a new review', async () => {
    const { repository, installation, queue } = await place('batch', {}, { 'shared.txt': lines() });
    const one = await green(repository, 'one', { 'shared.txt': lines([2, 'one']), 'one.ts': '1\n' });
    const two = await green(repository, 'two', { 'shared.txt': lines([17, 'two']), 'README.md': null });
    const three = await green(repository, 'three', { 'three.ts': '3\n' });
    await stage.settle();
    const before = await spent(stage, repository);
    const held = stage.gh.webhooks.hold(
      ({ event, action }) => event === 'merge_group' && action !== 'destroyed',
    );
    for (const pull of [one, two, three]) await queue.enqueue(pull, stage.author);
    expect(held.count()).toBe(3);
    const heads = asked(repository);
    held.release('reversed');
    await stage.settle();
    expect(merged(one, two, three)).toEqual([true, true, true]);
    expect(await spent(stage, repository), 'nothing was read again').toEqual(before);
    expect(heads.map((head) => gateOn(repository, head)?.conclusion)).toEqual([
      'success',
      'success',
      'success',
    ]);
    expect(await repository.tip()).toBe(heads[2]);

    const rows = await rowsOf(repository, installation, heads[2] ?? '');
    const members = rows.flatMap((row) => (row.kind === 'group.member' ? [row.data] : []));
    expect(new Set(members.map((member) => member.pull))).toEqual(
      new Set([one, two, three].map((pull) => String(pull.number))),
    );
    expect(members.at(-1)).toMatchObject({ conclusion: 'success', head: three.head.sha });
    const known = rows.flatMap((row) => (row.kind === 'group.known' ? [row.data] : []));
    expect(known.map((row) => row.proof)).toEqual(['merge']);
    expect(rows.some((row) => row.kind === 'block.opened' || row.kind === 'ticket.ended')).toBe(false);
    expect(rows.at(-1)?.kind, 'destroyed concludes it').toBe('run.closed');
  });

  it('GAT-5: content that git merged otherwise than anybody reviewed gets a ticket, and a finding fails the group and is shown on the pull request', async () => {
    const { repository, installation, queue } = await place(
      'odd',
      { method: 'REBASE' },
      { '.gitattributes': '*.list merge=union\n', 'fine.list': 'a\n', 'bad.list': 'a\n' },
    );
    const one = await green(repository, 'one', { 'fine.list': 'a\nleft\n' });
    const two = await green(repository, 'two', { 'fine.list': 'a\nother\n', 'two.ts': '2\n' });
    await stage.settle();
    const before = await spent(stage, repository);
    await queue.enqueue(one, stage.author);
    await queue.enqueue(two, stage.author);
    await stage.settle();
    expect(merged(one, two)).toEqual([true, true]);
    expect((await repository.git.text(['show', 'main:fine.list'])).split('\n').sort()).toEqual([
      'a',
      'left',
      'other',
    ]);
    const [, second = ''] = asked(repository);
    const rows = await rowsOf(repository, installation, second);
    const ends = rows.flatMap((row) => (row.kind === 'ticket.ended' ? [row.data.path] : []));
    expect(ends, 'only what nobody knows').toEqual(['fine.list']);
    const known = rows.flatMap((row) => (row.kind === 'group.known' ? row.data.paths : []));
    expect(known).toEqual([{ path: 'two.ts', member: 1 }]);
    expect((await spent(stage, repository))['tickets']).toBe((before['tickets'] ?? 0) + 1);

    const three = await green(repository, 'three', { 'bad.list': 'a\nleft\n' });
    const four = await green(repository, 'four', { 'bad.list': 'a\nright\n' });
    await stage.settle();
    await queue.enqueue(three, stage.author);
    await queue.enqueue(four, stage.author);
    await stage.settle();
    expect(merged(three, four)).toEqual([true, false]);
    const last = asked(repository).at(-1) ?? '';
    expect(gateOn(repository, last)).toMatchObject({ conclusion: 'failure' });
    expect(gateOn(repository, last)?.title).toContain('1');
    const shown = stage.gh
      .checkRuns(repository, four.head.sha)
      .find((run) => run.name === 'countersign / merge group');
    expect(shown).toMatchObject({ status: 'completed', conclusion: 'failure' });
    expect(shown?.summary).toContain('They do not go together');
    expect(shown?.summary).toContain('bad.list');
    expect(stage.gate(four)?.conclusion, 'its own verdict is its own').toBe('success');
  });

  it('GAT-5, attack 28: a red member fails the group, whatever its tree', async () => {
    const { repository, queue } = await place('red', { method: 'SQUASH' }, {});
    const good = await green(repository, 'good', { 'good.ts': '1\n' });
    await repository.commit({ branch: 'bad', author: stage.author, files: { 'bad.ts': 'BUG\n' } });
    const bad = await repository.openPull({ head: 'bad', user: stage.author });
    expect((await stage.verdict(bad)).conclusion).toBe('failure');
    await stage.settle();
    const before = await spent(stage, repository);
    // queued while no rule asked for our check
    const rules = repository.requiredChecks.splice(0);
    const held = stage.gh.webhooks.hold(({ event }) => event === 'merge_group');
    await queue.enqueue(good, stage.author);
    await queue.enqueue(bad, stage.author);
    repository.requiredChecks.push(...rules);
    held.release();
    await stage.settle();
    expect(merged(good, bad)).toEqual([true, false]);
    const [, second = ''] = asked(repository);
    expect(gateOn(repository, second)).toMatchObject({ conclusion: 'failure' });
    expect(gateOn(repository, second)?.summary).toMatch(new RegExp(`#\\u200b?${bad.number}: open`, 'u'));
    expect(queue.entries).toEqual([]);
    expect(await spent(stage, repository)).toEqual(before);
  });
});
