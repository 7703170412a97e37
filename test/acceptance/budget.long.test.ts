/** Budgets on the whole road: the built Action meets them, the gate says so, people answer or raise them (ADM-2, POL-2). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeSetting } from '../../app/flow/change-setting.ts';
import { type ScriptedModel, startScriptedModel } from '../../sandbox/demo/model.ts';
import type { User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { seen, spent, sticky } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

const DAY = 86_400_000;

let stage: TestStage;
let model: ScriptedModel;
let mara: User;
beforeAll(async () => {
  stage = await testStage();
  mara = stage.gh.createUser('mara');
  model = await startScriptedModel([
    { line: /NIT/, severity: 'low', lens: 'correctness', title: 'Marked line', body: 'The line is marked.' },
  ]);
});
afterAll(async () => {
  await stage.close();
  await model.close();
});

const policy = (budget: string, maxOutput = 1000) => `version: 1
review: {parallel: 1, lenses: [correctness]}
reviewers:
  model: {uses: openai-compatible, model: scripted-1, base_url: "${model.url}", max_output: ${maxOutput}}
budget: ${budget}
`;
const marked = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [`src/${name}.ts`, `export const ${name} = 1; // NIT\n`]));

async function budgeted(name: string, budget: string, maxOutput?: number): Promise<Repository> {
  const { repository } = await stage.repository({
    name,
    collaborators: [
      [stage.author, 'write'],
      [mara, 'write'],
    ],
    policy: policy(budget, maxOutput),
  });
  return repository;
}

async function open(repository: Repository, branch: string, names: readonly string[]): Promise<Pull> {
  await repository.commit({ branch, author: stage.author, files: marked(names) });
  return repository.openPull({ head: branch, user: stage.author });
}

async function until(pull: Pull, conclusion: string) {
  const run = await stage.verdict(pull, { until: (one) => one.conclusion === conclusion });
  await stage.settle();
  return run;
}

async function say(pull: Pull, user: User, body: string): Promise<void> {
  await pull.comment(user, body);
  await stage.settle();
  // three replies a minute
  await stage.advance(61_000);
  await stage.settle();
}

/** How each file of a run ended, in the order of the ends, with what was found in it. */
const ends = async (pull: Pull) =>
  (await stage.rows(pull)).flatMap((row) =>
    row.kind === 'ticket.ended'
      ? [
          {
            block: row.data.block,
            end: row.data.end,
            found: row.data.findings.length,
            detail: row.data.detail,
          },
        ]
      : [],
  );
const count = (all: Awaited<ReturnType<typeof ends>>, end: string) =>
  all.filter((one) => one.end === end).length;

describe('budgets', { timeout: 180_000 }, () => {
  it("ADM-2, GAT-6: a run's sessions are used up: what was found is kept, and a person answers for this head only", async () => {
    const repository = await budgeted('sessions', '{run: {sessions: 2}}');
    const asked = model.calls();
    const pull = await open(repository, 'topic', ['a', 'b', 'c', 'd']);
    const held = await until(pull, 'action_required');
    expect(model.calls() - asked, 'nothing is spent over the budget').toBe(2);
    const all = await ends(pull);
    expect([count(all, 'reviewed'), count(all, 'budget')]).toEqual([2, 2]);
    expect(all.find((one) => one.end === 'budget')?.detail).toContain(
      "the run's budget of 2 sessions is used up (budget.run.sessions)",
    );
    expect(all.filter((one) => one.end === 'reviewed').map((one) => one.found)).toEqual([1, 1]);
    expect(seen(stage, pull)).toMatchObject({ state: 'action_required', mergeable: false });
    expect(held.title).toContain('The budget is used up');
    expect(held.summary).toMatch(
      /\| `budget` [^|]*\| [^|]+ \| `\/approve budget REASON` in a comment[^|]*\| write/,
    );
    expect(held.summary, 'what was found before is shown').toContain('Marked line');

    const sha = pull.head.sha.slice(0, 10);
    await say(pull, stage.author, `/approve budget ${sha} mine is fine`);
    expect(seen(stage, pull)?.state, 'not who made it').toBe('action_required');
    await say(pull, mara, `/approve budget ${sha} read them myself`);
    await until(pull, 'success');
    expect(sticky(stage, pull)).toContain(`\`/approve\`: \`budget\` on \`${pull.head.sha.slice(0, 12)}\`.`);
    expect(seen(stage, pull)?.mergeable).toBe(true);
    expect(model.calls() - asked).toBe(2);

    const before = await spent(stage, repository);
    await pull.push({ author: stage.author, files: marked(['e']) });
    await until(pull, 'action_required');
    expect(await spent(stage, repository), 'nor is a runner started for it').toMatchObject({
      dispatches: before['dispatches'],
      leases: before['leases'],
    });
    expect(seen(stage, pull)?.mergeable, 'what she answered for was another head').toBe(false);
    expect(model.calls() - asked).toBe(2);
  });

  it('ADM-2: raised on the base branch, `/rerun failed` reviews what is left, and nothing twice', async () => {
    const repository = await budgeted('raised', '{run: {sessions: 1}}');
    const asked = model.calls();
    const pull = await open(repository, 'topic', ['a', 'b', 'c']);
    await until(pull, 'action_required');
    expect(model.calls() - asked).toBe(1);
    await repository.commit({
      branch: 'main',
      author: stage.owner,
      files: { '.github/countersign.yml': policy('{run: {sessions: 3}}') },
    });
    await stage.settle();
    expect(seen(stage, pull)?.state, 'a larger budget alone spends nothing').toBe('action_required');
    await say(pull, stage.author, '/rerun failed');
    expect(await until(pull, 'success')).toMatchObject({
      title: 'Passed: 3 files reviewed, nothing blocks',
    });
    expect(model.calls() - asked).toBe(3);
  });

  it('ADM-2: each block has its own sessions, and one that has none left stops no other', async () => {
    const repository = await budgeted('blocks', '{block: {sessions: 1}}');
    const asked = model.calls();
    for (const block of ['one', 'two'])
      await repository.commit({
        branch: 'topic',
        author: stage.author,
        message: `Add ${block}`,
        trailers: { Block: block },
        files: marked([`${block}a`, `${block}b`]),
      });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await until(pull, 'action_required');
    const all = (await ends(pull)).map(({ block, end }) => `${block} ${end}`).sort();
    expect(all).toEqual(['one budget', 'one reviewed', 'two budget', 'two reviewed']);
    expect(model.calls() - asked).toBe(2);
    await say(pull, mara, '/approve one read it');
    expect(seen(stage, pull)?.state, 'one block of two').toBe('action_required');
    await say(pull, mara, '/approve two read it');
    await until(pull, 'success');
  });

  it.each([
    ['tokens', '{run: {tokens: 4000}}', "the run's budget of 4000 tokens is used up (budget.run.tokens)"],
    [
      'money',
      '{run: {usd: 0.04}, prices: {model: {input: 10, output: 10}}}',
      "the run's budget of 0.04 USD is used up (budget.run.usd)",
    ],
  ])('ADM-2: %s of a run are never exceeded by a session that is admitted', async (name, budget, says) => {
    const repository = await budgeted(name, budget);
    const pull = await open(repository, 'topic', ['a', 'b', 'c', 'd', 'e', 'f']);
    await until(pull, 'action_required');
    const all = await ends(pull);
    expect(count(all, 'reviewed'), 'some fit').toBeGreaterThanOrEqual(1);
    expect(count(all, 'budget'), 'and some do not').toBeGreaterThanOrEqual(1);
    expect(all).toHaveLength(6);
    expect(all.find((one) => one.end === 'budget')?.detail).toContain(says);
    await stage.advance(10_000); // what sessions came to is booked
    const run = await stage.run(pull);
    const [counted] = await stage.query<{ tokens: string }>(
      `select tokens from spend where scope = 2 and id = '${run?.id}'`,
    );
    expect(Number(counted?.tokens)).toBeLessThanOrEqual(4_000);
    await say(pull, mara, '/approve unreviewed nobody could read them');
    await until(pull, 'success');
  });

  it('ADM-2: a month is of the repository: used up by one pull request for the next, until another begins', async () => {
    const repository = await budgeted('month', '{month: {tokens: 5000}}', 3000);
    const first = await open(repository, 'first', ['a', 'b', 'c', 'd']);
    await until(first, 'action_required');
    const second = await open(repository, 'second', ['e']);
    await until(second, 'action_required');
    const all = await ends(second);
    expect(all.map((one) => one.end)).toEqual(['budget']);
    expect(all[0]?.detail).toContain(
      "the repository's budget of the month of 5000 tokens is used up (budget.month.tokens)",
    );
    await stage.advance(32 * DAY);
    await stage.settle();
    await say(second, stage.author, '/rerun failed');
    await until(second, 'success');
    expect(seen(stage, second)?.mergeable).toBe(true);
  });

  it("RUN-10: outsiders' part of a month stops at theirs, and takes nothing from the others", async () => {
    const repository = await budgeted('outsiders', '{month: {tokens: 100000}, outsiders: {tokens: 4000}}');
    const stranger = stage.gh.createUser('stranger');
    const fork = await repository.fork(stranger);
    await fork.commit({
      branch: 'fix',
      author: stranger,
      files: marked(['a', 'b', 'c', 'd', 'e', 'f']),
    });
    const pull = await repository.openPull({ head: 'fix', fork, user: stranger });
    await until(pull, 'action_required');
    expect(await ends(pull), 'nothing before somebody allows it').toEqual([]);
    await say(pull, mara, '/allow');
    await until(pull, 'action_required');
    const all = await ends(pull);
    expect(count(all, 'reviewed')).toBeGreaterThanOrEqual(1);
    expect(all.find((one) => one.end === 'budget')?.detail).toContain(
      "the month's budget for outsiders of 4000 tokens is used up (budget.outsiders.tokens)",
    );
    const own = await open(repository, 'topic', ['g', 'h', 'i']);
    expect((await until(own, 'success')).title).toContain('3 files reviewed');
  });

  it("POL-2: the installation's ceiling holds where the policy has no limit", async () => {
    const { repository, installation } = await stage.repository({ name: 'ceiling', policy: policy('{}') });
    await stage.settle();
    await changeSetting(stage.server.deps, {
      installation: String(installation.id),
      key: 'ceiling.tokens',
      value: 2_500,
      by: 'olga',
      reason: 'the contract',
      via: 'command_line',
    });
    const pull = await open(repository, 'topic', ['a', 'b', 'c', 'd']);
    await until(pull, 'action_required');
    const all = await ends(pull);
    expect(count(all, 'reviewed')).toBeGreaterThanOrEqual(1);
    expect(all.find((one) => one.end === 'budget')?.detail).toContain('(setting ceiling.tokens)');
  });
});
