/**
 * A model and an author who do not agree, on the whole road (RND-1, RND-2, FND-2). docs/story.md is this
 * run, told: `npm run story` writes it anew.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ScriptedModel, startScriptedModel } from '../../sandbox/demo/model.ts';
import type { User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { seen, sticky } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';
import { story } from '../helpers/story.ts';

let stage: TestStage;
let model: ScriptedModel;
let mara: User;
beforeAll(async () => {
  stage = await testStage();
  mara = stage.gh.createUser('mara');
  model = await startScriptedModel([
    {
      line: /return sum - coupon;/,
      severity: 'high',
      lens: 'correctness',
      title: 'The total can fall below zero',
      body: 'A coupon worth more than the cart makes the total negative, and the shop pays the customer.',
    },
  ]);
});
afterAll(async () => {
  await stage.close();
  await model.close();
});

const until = (pull: Pull, conclusion: string) =>
  stage.verdict(pull, { until: (run) => run.conclusion === conclusion });

/** Says it and gives the reply, as people find it in our one comment. */
async function say(pull: Pull, user: User, body: string): Promise<string> {
  await pull.comment(user, body);
  await stage.settle();
  // three replies a minute
  await stage.advance(61_000);
  const [reply = ''] = sticky(stage, pull)
    .split('\n')
    .filter((line) => line.includes(`\`${body.split(' ')[0]}\``))
    .slice(-1);
  return reply;
}

/** Reviews of the run in their order: path, round and level of each. */
const reviews = async (pull: Pull) =>
  (await stage.rows(pull)).flatMap((row) =>
    row.kind === 'ticket.ended' && row.data.end === 'reviewed'
      ? [`${String(row.data.path)}: round ${row.data.round} at ${row.data.level}, ${row.data.verdict}`]
      : [],
  );

describe('rounds', { timeout: 180_000 }, () => {
  it('RND-2: answers never argue on for ever: rounds, one at L3, then a person, whose word is kept over a rebase', async () => {
    const policy = `version: 1
review: {rounds: 2, lenses: [correctness]}
reviewers:
  model: {uses: openai-compatible, model: scripted-1, base_url: "${model.url}"}
`;
    const { repository } = await stage.repository({
      name: 'shop',
      collaborators: [
        [stage.author, 'write'],
        [mara, 'write'],
      ],
      policy,
    });
    const { author } = stage;
    const told = story();
    told.say(
      '# A pull request, told',
      '<!-- Written by the run of test/acceptance/rounds.long.test.ts: npm run story writes it anew, and the test holds it to this text. -->',
      'What follows happened: on a local GitHub, with the built Action and a model behind a local server that objects to ' +
        'one line and is never persuaded. The texts are what the product wrote; only addresses, commit ids, tokens, times and ' +
        'the head of the ledger are left out, since they are other ones in every run.',
      `\`\`\`yaml\n${policy.replace(model.url, 'https://models.example/v1')}\`\`\``,
    );

    told.say(
      '## Alice opens it',
      'Two files in one commit. The model reads each and objects to one line of one.',
    );
    const files = {
      'src/total.ts': 'export function total(sum: number, coupon: number) {\n  return sum - coupon;\n}\n',
      'src/coupon.ts': "export const COUPON = 'TEA';\n",
    };
    await repository.commit({ branch: 'topic', author, message: 'Take coupons', files });
    const pull = await repository.openPull({ head: 'topic', user: author });
    const first = await until(pull, 'failure');
    await stage.settle();
    told.show(`${first.title}\n\n${first.summary}`);
    expect((await reviews(pull)).sort()).toEqual([
      'src/coupon.ts: round 0 at L2, approve',
      'src/total.ts: round 0 at L2, findings',
    ]);

    told.say(
      '## She answers, twice',
      'An answer is input for another look, and no more. The model sees the finding with her words and proposes that it ' +
        'stands; what it says is one of `fixed`, `persists` or `withdrawn`, and none of them would close a finding on the ' +
        'same code by itself.',
    );
    const answers = [
      '/answer F1 The checkout refuses coupons above the cart.',
      '/answer F1 The checkout is covered by tests.',
    ];
    const [once = '', again = ''] = answers;
    told.show(`alice: ${once}\n\n${await say(pull, author, once)}`);
    await stage.settle();
    expect(seen(stage, pull)?.state).toBe('failure');
    told.show(`alice: ${again}\n\n${await say(pull, author, again)}`);

    told.say(
      '## The cap',
      'The policy allows two such rounds. Now the block had one at level L3, which agreed with those before. Nobody argues ' +
        'on: the gate asks for a person.',
    );
    const over = await until(pull, 'action_required');
    await stage.settle();
    expect(over.summary).toMatch(/\| `rounds_exhausted` [^|]*\| `F1` \| `\/approve rounds/);
    told.show(`${over.title}\n\n${over.summary}`);
    const all = await reviews(pull);
    expect(all.filter((one) => one.startsWith('src/total.ts'))).toEqual([
      'src/total.ts: round 0 at L2, findings',
      'src/total.ts: round 1 at L2, findings',
      'src/total.ts: round 2 at L2, findings',
      expect.stringMatching(/^src\/total\.ts: round \d at L3, findings$/),
    ]);
    const raised = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'decision' ? row.data.paths.filter((path) => path.reason === 'rounds') : [],
    );
    expect(raised.map((path) => [path.path, path.level, path.asked]).sort()).toEqual([
      ['src/coupon.ts', 'L3', 'L2'],
      ['src/total.ts', 'L3', 'L2'],
    ]);
    const spent = model.calls();

    told.say('Alice has write, and it is her own work.');
    const own = '/approve rounds I know better';
    told.show(`alice: ${own}\n\n${await say(pull, author, own)}`);
    expect(sticky(stage, pull)).toContain('`/approve` was not done');
    expect(seen(stage, pull)?.mergeable).toBe(false);

    told.say(
      '## A rebase',
      'Main moves on and Alice rebases. The content is the same: nothing is asked again, and nothing is forgotten.',
    );
    await repository.commit({ branch: 'main', author: mara, files: { 'README.md': '# Tea\n' } });
    await pull.forcePush({ message: 'Take coupons, rebased', files });
    await stage.settle();
    const rebased = await until(pull, 'action_required');
    expect(rebased.summary).toContain('`rounds_exhausted`');
    expect(model.calls(), 'nobody argues on').toBe(spent);
    told.show(rebased.title ?? '');

    told.say(
      '## Mara dismisses it',
      'She has write and no part in the change, so her word counts. It is a signed row with her reason.',
    );
    const dismissal = '/dismiss F1 The till floors the total at zero.';
    told.show(`mara: ${dismissal}\n\n${await say(pull, mara, dismissal)}`);
    const last = await until(pull, 'success');
    expect(seen(stage, pull)?.mergeable).toBe(true);
    expect(model.calls()).toBe(spent);
    told.show(`${last.title}\n\n${last.summary}`);

    const rows = await stage.rows(pull);
    const raisedBefore = new Set<number>();
    const lives = rows.flatMap((row) => {
      if (row.kind === 'finding.raised') {
        const again = raisedBefore.has(row.data.finding) ? ' again' : '';
        raisedBefore.add(row.data.finding);
        return [`- F${row.data.finding} was raised${again}, ${row.data.severity}`];
      }
      if (row.kind === 'finding.answered') return [`- F${row.data.finding} was answered`];
      if (row.kind === 'finding.ended')
        return [`- F${row.data.finding} ended: ${row.data.state} (${row.data.reason})`];
      return [];
    });
    const verdicts = rows.flatMap((row) => {
      const over = row.kind === 'gate.decided' && !['in_progress', 'queued'].includes(row.data.conclusion);
      return over ? [row.data.conclusion] : [];
    });
    told.say(
      '## What the ledger says',
      'Of the rows of this run, in their order, those of the finding:',
      lives.join('\n'),
      `The verdicts that concluded: ${verdicts.filter((one, i) => one !== verdicts[i - 1]).join(', then ')}.`,
      `The model was asked ${spent} times, and not once after the cap.`,
    );
    await expect(told.page()).toMatchFileSnapshot('../../docs/story.md');
  });
});
