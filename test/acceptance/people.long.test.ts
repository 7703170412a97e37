/** What people clear on the whole road: comments and reviews, pushes and rebases, GitHub's permissions (GAT-6, OWN-8). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { seen, sticky } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
let mara: User;
let bob: User;
beforeAll(async () => {
  stage = await testStage();
  mara = stage.gh.createUser('mara');
  bob = stage.gh.createUser('bob');
});
afterAll(() => stage.close());

const acts = async (pull: Pull) =>
  (await stage.rows(pull)).flatMap((row) =>
    row.kind === 'human.acted'
      ? [`${row.actor.id} ${row.data.act} ${row.data.clause ?? row.data.verdict}`]
      : [],
  );
const until = (pull: Pull, conclusion: string) =>
  stage.verdict(pull, { until: (run) => run.conclusion === conclusion });

async function say(pull: Pull, user: User, body: string): Promise<void> {
  await pull.comment(user, body);
  await stage.settle();
  // three replies a minute
  await stage.advance(61_000);
}

describe('people', () => {
  it('OWN-8, attack 22, case 49: a guarded change waits for a maintainer who had no part in it, for that content', async () => {
    const { repository } = await stage.repository({
      name: 'guarded',
      collaborators: [
        [stage.author, 'write'],
        [mara, 'maintain'],
        [bob, 'write'],
      ],
    });
    const { author } = stage;
    await repository.commit({
      branch: 'topic',
      author,
      files: { CODEOWNERS: '* @alice\n', 'src/a.ts': 'export const a = 1;\n' },
    });
    const pull = await repository.openPull({ head: 'topic', user: author });
    const first = pull.head.sha;
    const held = await until(pull, 'action_required');
    expect(held.summary).toMatch(
      /\| `guarded` [^|]*\| `CODEOWNERS` \| `\/approve guarded REASON` in a comment \|/,
    );
    await stage.settle();

    await say(pull, author, `/approve guarded ${first.slice(0, 10)} mine is fine`);
    expect(sticky(stage, pull)).toContain('`/approve` was not done');
    await say(pull, bob, `/approve guarded ${first.slice(0, 10)} looks fine`);
    expect(sticky(stage, pull)).toContain('guarded takes maintain on this repository');
    expect(await acts(pull)).toEqual([]);
    expect(seen(stage, pull)?.mergeable).toBe(false);

    await say(pull, mara, `/approve guarded ${first.slice(0, 10)} owners agreed`);
    await until(pull, 'success');
    expect(sticky(stage, pull)).toContain(`\`/approve\`: \`guarded\` on \`${first.slice(0, 12)}\`.`);
    expect(await acts(pull)).toEqual([`${mara.id} approve guarded`]);
    expect(seen(stage, pull)?.mergeable).toBe(true);

    // other content: unapproved, and the old commit approves nothing
    await pull.push({ message: 'Own it alone', files: { CODEOWNERS: '* @mallory\n' } });
    const second = pull.head.sha;
    await until(pull, 'action_required');
    await stage.settle();
    await say(pull, mara, `/approve guarded ${first.slice(0, 10)} as before`);
    expect(sticky(stage, pull)).toContain('is not the present head, so nothing was approved');
    expect(seen(stage, pull)?.mergeable).toBe(false);
    await say(pull, mara, `/approve ${second.slice(0, 10)} read it again`);
    await until(pull, 'success');

    // the same content in one commit: nothing to approve again
    await pull.forcePush({
      message: 'All in one',
      files: { CODEOWNERS: '* @mallory\n', 'src/a.ts': 'export const a = 1;\n' },
    });
    await until(pull, 'success');
    await stage.settle();
    expect(seen(stage, pull)?.mergeable).toBe(true);
    expect(await acts(pull)).toHaveLength(2);
    const pushed = (await stage.rows(pull)).flatMap((row) => (row.kind === 'run.pushed' ? [row.data] : []));
    expect(pushed.map((one) => one.head)).toEqual([first, second, pull.head.sha]);
    expect(new Set(pushed.map((one) => one.pusher))).toEqual(new Set([String(author.id)]));
  });

  it('BLK-3, case 48: Accept-Human is cleared by a review, taken back by its author, found though its delivery was lost', async () => {
    const { repository } = await stage.repository({
      name: 'clause',
      collaborators: [
        [stage.author, 'write'],
        [mara, 'write'],
        [bob, 'write'],
      ],
    });
    const { author } = stage;
    await repository.commit({
      branch: 'topic',
      author,
      message: 'Change the copy',
      trailers: { Block: 'copy', 'Accept-Human': 'the tone is right' },
      files: { 'src/copy.ts': 'export const hi = 1;\n' },
    });
    const pull = await repository.openPull({ head: 'topic', user: author });
    const held = await until(pull, 'action_required');
    expect(held.summary).toContain('clause copy/1');
    await stage.settle();

    await pull.review(mara, { event: 'COMMENT', body: 'Hm.' });
    await stage.settle();
    expect(seen(stage, pull)?.mergeable).toBe(false);
    const review = await pull.review(bob);
    await until(pull, 'success');
    await pull.review(bob, { event: 'COMMENT', body: 'Nice.' });
    await pull.review(bob, { event: 'REQUEST_CHANGES', body: 'No, wait.' });
    await until(pull, 'action_required');
    await pull.dismissReview(review, author);
    await stage.settle();
    expect(await acts(pull)).toEqual([`${bob.id} review approved`, `${bob.id} review changes_requested`]);

    // nobody hears of the next one
    const heard = stage.gh.webhooks.drop(({ event }) => event === 'pull_request_review');
    await pull.review(bob);
    await stage.settle();
    expect(seen(stage, pull)?.mergeable).toBe(false);
    heard();
    await stage.advance(6 * 60_000);
    await until(pull, 'success');
    expect(seen(stage, pull)?.mergeable).toBe(true);
  });
});
