/** Commands as people give them, while GitHub sends everything twice: each is done once, and answered in one place. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IssueComment, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { seen, spent, sticky } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
  // once under the same id, and once more as from a hook that is registered twice (case 2)
  stage.gh.webhooks.double();
  stage.gh.webhooks.double(() => true, { newGuid: true });
});
afterAll(() => stage.close());

const reactions = (comment: IssueComment) => comment.reactions.map((one) => one.content);

async function say(pull: Pull, user: User, body: string): Promise<IssueComment> {
  const comment = await pull.comment(user, body);
  await stage.settle();
  return comment;
}

const acts = async (pull: Pull) =>
  (await stage.rows(pull)).flatMap((row) => (row.kind === 'human.acted' ? [row.data.act] : []));

describe('commands on the road, with every delivery doubled', () => {
  it('CMD-4, case 2: /help, /status, /claim, /release and /rerun are each done once and answered in one comment', async () => {
    const { repository } = await stage.repository({
      name: 'commanded',
      policy: markerPolicy('ownership: declared\n'),
    });
    const { author } = stage;
    await repository.commit({
      branch: 'topic',
      author,
      message: 'Add the shop',
      trailers: { Block: 'shop', Owns: 'src/' },
      files: { 'src/shop.ts': 'shop\n', 'tools/run.ts': 'run\n' },
    });
    const pull = await repository.openPull({ head: 'topic', user: author });
    const held = await stage.verdict(pull);
    expect(seen(stage, pull)).toEqual({
      state: 'failure',
      title: 'Paths belong to no block',
      mergeable: false,
    });
    expect(held.summary).toMatch(
      /\| `orphan` [^|]*\| `tools\/run\.ts` \| `\/claim PATH BLOCK` in a comment \| author or write \|/,
    );
    await stage.settle();
    const once = await spent(stage, repository);
    expect(once, 'one dispatch, one review a file, whatever came twice').toMatchObject({
      dispatches: 1,
      tickets: 2,
      leases: 2,
    });

    const help = await say(pull, author, '/help');
    expect(reactions(help)).toEqual(['eyes', 'rocket']);
    for (const name of ['status', 'claim', 'release', 'rerun', 'allow', 'help'])
      expect(sticky(stage, pull)).toContain(`\`/${name}`);

    const status = await say(pull, author, 'What is it?\n\n/status');
    expect(reactions(status)).toEqual(['eyes', 'rocket']);
    expect(sticky(stage, pull)).toMatch(
      /`\/status` at `[0-9a-f]{12}`: Paths belong to no block\.\n {2}- `orphan` Paths belong to no block \(`tools\/run\.ts`\)\. Clears it: `\/claim PATH BLOCK` in a comment\. Who: author or write\./,
    );

    const claim = await say(pull, author, '/claim tools/run.ts shop');
    expect(reactions(claim)).toEqual(['eyes', 'rocket']);
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    expect(seen(stage, pull)).toMatchObject({
      title: 'Passed: 2 files reviewed, nothing blocks',
      mergeable: true,
    });
    const claims = (await stage.rows(pull)).filter((row) => row.kind === 'block.claimed');
    expect(claims.map((row) => row.data)).toMatchObject([
      { block: 'shop', path: 'tools/run.ts', auto: false },
    ]);

    await stage.advance(61_000); // three replies a minute
    const release = await say(pull, author, '/release tools/run.ts');
    expect(reactions(release)).toEqual(['eyes', 'rocket']);
    await stage.verdict(pull, { until: (run) => run.conclusion === 'failure' });
    expect(seen(stage, pull)).toMatchObject({
      title: 'Paths were changed outside of the block that declares them',
      mergeable: false,
    });

    const rerun = await say(pull, author, '/claim tools/run.ts shop\n/rerun src/shop.ts');
    // by now the pace of writes may let the answer wait
    await expect.poll(() => reactions(rerun), { timeout: 120_000 }).toEqual(['eyes', 'rocket']);
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    await stage.settle();
    const rounds = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' ? [[row.data.path, row.data.round]] : [],
    );
    expect(rounds.sort()).toEqual([
      ['src/shop.ts', 0],
      ['src/shop.ts', 1],
      ['tools/run.ts', 0],
    ]);
    expect(await acts(pull), 'each once, although each comment came four times').toEqual([
      'claim',
      'release',
      'claim',
      'rerun',
    ]);
    const done = await stage.query<{ n: string }>('select count(*) as n from command');
    expect(Number(done[0]?.n)).toBe(6);
    expect(
      stage.gh.comments(pull).filter((one) => one.viaApp === stage.app),
      'one sticky comment',
    ).toHaveLength(1);
    expect(sticky(stage, pull).match(/\*\*To \[this comment\]/g)).toHaveLength(5);
  });

  it('CMD-2, CMD-3: what is no command, whose it is not, and one too many', async () => {
    const { repository } = await stage.repository({ name: 'refused' });
    const reader = stage.gh.createUser('reader');
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull);
    await stage.settle();
    const once = await spent(stage, repository);
    const quoted = await say(pull, reader, '> /rerun all\n\n```\n/rerun all\n```\n\nsee /usr/bin/rerun');
    expect(reactions(quoted)).toEqual([]);
    expect(sticky(stage, pull)).toBe('');
    const denied = await say(pull, reader, '/rerun all');
    expect(reactions(denied)).toEqual(['eyes', 'confused']);
    expect(sticky(stage, pull)).toContain('`/rerun` was not done: it needs write on this repository');
    expect(await spent(stage, repository)).toEqual(once);
    expect(await acts(pull)).toEqual([]);
    const refusals = (await stage.rows(pull)).filter((row) => row.kind === 'command.refused');
    expect(refusals.map((row) => row.data)).toEqual([{ command: 'rerun', code: 'denied' }]);
    const twice = await pull.comment(reader, Array.from({ length: 11 }, () => '/status').join('\n'));
    await stage.settle();
    expect(reactions(twice), 'the last ones are over ten an hour: a reaction and no text').toEqual([
      'eyes',
      'confused',
    ]);
    expect(sticky(stage, pull).match(/`\/status` at/g)).toHaveLength(9);
  });
});
