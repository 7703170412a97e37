import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { publishChecks } from '../../../app/flow/publish-checks.ts';
import { listChecks } from '../../../db/store/check.ts';
import { updateRun } from '../../../db/store/run.ts';
import { putText } from '../../../db/store/text.ts';
import { type GateStage, gateStage, type TestFinding, type TestRun } from '../../helpers/gate-stage.ts';
import { app as appActor, cause } from '../../helpers/ledger.ts';

let stage: GateStage;
beforeAll(async () => {
  stage = await gateStage();
});
afterAll(() => stage.close());

const by = { actor: appActor, cause };
const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const nameOf = (block: string) => `countersign / block ${block}`;
let serial = 0;

async function openBlock(run: TestRun, block: string, named = true, title = `Title of ${block}`) {
  await run.rows(async (unit) => {
    unit.append('block.opened', {
      ...by,
      block,
      data: {
        block,
        title: await putText(unit.tx, title),
        attempt: 1,
        kind: 'code',
        level: 'L1',
        named,
        identity: sha(block),
        commits: [run.pull.head.sha],
        commit_count: 1,
        owns: [],
        after: [],
        accept: [],
        accept_human: [],
        notes: [],
      },
    });
  });
}

/** A pull request with a file for each named block, read, every block opened. */
async function named(
  blocks: readonly string[],
  policy = 'version: 1\n',
): Promise<{ run: TestRun; path: (block: string) => string }> {
  const folder = `dir-${++serial}`;
  const path = (block: string) => `${folder}/${block}.ts`;
  const run = await stage.open(Object.fromEntries(blocks.map((block) => [path(block), `${block}\n`])), {
    policy,
  });
  await run.sync(Object.fromEntries(blocks.map((block) => [path(block), { block }])));
  for (const block of blocks) await openBlock(run, block);
  return { run, path };
}
async function decided(run: TestRun): Promise<void> {
  await run.decide();
  await stage.work();
}
const ours = (run: TestRun, block: string) =>
  stage.gh
    .checkRuns(run.repository, run.pull.head.sha)
    .filter((check) => check.name === nameOf(block))
    .sort((a, b) => a.id - b.id);
const blockNames = (run: TestRun, commit = run.pull.head.sha) =>
  stage.gh
    .checkRuns(run.repository, commit)
    .map((check) => check.name)
    .filter((name) => name.startsWith('countersign / block '))
    .sort();
const writes = (since: number) =>
  stage.gh.requests
    .slice(since)
    .filter((one) => (one.method === 'POST' && one.path.endsWith('/check-runs')) || one.method === 'PATCH');
const rows = (run: TestRun, block: string) =>
  listChecks(stage.database.database.db, {
    repositoryId: String(run.repository.id),
    sha: run.pull.head.sha,
    name: nameOf(block),
  });
const blocking: TestFinding = { title: 'Wrong total', severity: 'high' };

describe('check runs of blocks', () => {
  test('PUB-1: a block is created once, concluded, when its own paths are done; one write a block', async () => {
    const { run, path } = await named(['parser', 'report']);
    await decided(run);
    expect(blockNames(run)).toEqual([]);
    await run.review(path('parser'));
    const since = stage.gh.requests.length;
    await decided(run);
    expect(blockNames(run)).toEqual([nameOf('parser')]);
    expect(writes(since)).toHaveLength(1);
    const [made] = writes(since);
    expect(made?.body).toMatchObject({ status: 'completed', conclusion: 'success' });
    expect(stage.check(run)?.status).toBe('in_progress');
    await run.review(path('report'), [blocking]);
    await decided(run);
    expect(stage.check(run, nameOf('report'))).toMatchObject({
      conclusion: 'failure',
      title: '1 finding blocks',
    });
    expect(stage.check(run, nameOf('parser'))).toMatchObject({
      conclusion: 'success',
      title: 'Passed: 1 file reviewed, nothing blocks',
    });
    expect(stage.check(run)?.conclusion).toBe('failure');
    const settled = stage.gh.requests.length;
    await decided(run);
    expect(writes(settled)).toHaveLength(0);
    expect(ours(run, 'parser')).toHaveLength(1);
  });

  test('PUB-1: it says what is the block’s alone, neutralised, with the ledger line, and that it holds nothing', async () => {
    const { run, path } = await named(['cart', 'till']);
    await openBlock(run, 'cart', true, 'Mend @everyone <b>carts</b>');
    await run.review(path('cart'), [{ ...blocking, title: 'Closes #1 for @everyone' }]);
    await run.review(path('till'), [{ ...blocking, title: 'Another block’s' }]);
    await decided(run);
    const summary = stage.check(run, nameOf('cart'))?.summary ?? '';
    expect(summary).toContain('**Not passed: 1 finding blocks.**');
    expect(summary).toContain('It neither passes nor holds the pull request: `countersign` does.');
    expect(summary).toContain(path('cart'));
    expect(summary).not.toContain(path('till'));
    expect(summary).not.toContain('Another block');
    expect(summary).not.toMatch(/(^|\s)@everyone|<b>/);
    expect(summary).toMatch(/Ledger `run-\d+:\d+`/);
    expect(summary).toContain(`https://countersign.test/runs/${run.id}`);
  });

  test('PUB-1: commits that name no block make none, and neither does a block that owns nothing (BLK-5)', async () => {
    const { run, path } = await named(['owner']);
    await openBlock(run, 'idle');
    await openBlock(run, 'unnamed', false);
    await run.review(path('owner'));
    await decided(run);
    expect(blockNames(run)).toEqual([nameOf('owner')]);
    const plain = await stage.open({ 'plain.ts': 'a\n' });
    await plain.sync({ 'plain.ts': {} });
    await plain.review('plain.ts');
    await decided(plain);
    expect(blockNames(plain)).toEqual([]);
    expect(stage.check(plain)?.conclusion).toBe('success');
  });

  test('PUB-1: of twelve named blocks the first ten get one', async () => {
    const blocks = Array.from({ length: 12 }, (_, index) => `b${String(index).padStart(2, '0')}`);
    const { run, path } = await named(blocks);
    for (const block of blocks) await run.review(path(block));
    await decided(run);
    expect(blockNames(run)).toEqual(blocks.slice(0, 10).map(nameOf));
    expect(stage.check(run)?.conclusion).toBe('success');
  });

  test('PUB-1: `publish.blocks: off` makes none', async () => {
    const { run, path } = await named(['quiet'], 'version: 1\npublish:\n  blocks: off\n');
    await run.review(path('quiet'), [blocking]);
    await decided(run);
    expect(blockNames(run)).toEqual([]);
    expect(stage.check(run)?.conclusion).toBe('failure');
  });

  test('PUB-1: blocks that pass do not make the gate pass, and a block of its own person is action_required', async () => {
    const { run, path } = await named(['done']);
    await run.rows(async (unit) => {
      await updateRun(unit.tx, run.id, { status: 'paused' });
    });
    await run.review(path('done'));
    await decided(run);
    expect(stage.check(run, nameOf('done'))?.conclusion).toBe('success');
    expect(stage.check(run)?.conclusion).toBe('action_required');
  });

  test('BLK-7: a block of which nothing is reviewed does not pass where nothing else is', async () => {
    const { run, path } = await named(['moved']);
    await run.sync({ [path('moved')]: { block: 'moved', level: 'L0', reason: 'moved' } });
    await decided(run);
    expect(stage.check(run, nameOf('moved'))?.conclusion).toBe('action_required');
  });

  test('PUB-2: another verdict after the conclusion is check run n+1; the same one with more to say is not', async () => {
    const { run, path } = await named(['twice']);
    await run.review(path('twice'));
    await decided(run);
    const [first] = ours(run, 'twice');
    await run.review(path('twice'), [{ title: 'Below the bar', severity: 'low' }]);
    await decided(run);
    expect(ours(run, 'twice')).toHaveLength(1);
    expect(first?.summary).toContain('Below the bar');
    await run.review(path('twice'), [blocking]);
    await decided(run);
    expect(ours(run, 'twice').map((check) => check.conclusion)).toEqual(['success', 'failure']);
    expect(stage.check(run, nameOf('twice'))?.externalId.endsWith(':2')).toBe(true);
  });

  test('PUB-2: on a commit that is nobody’s head a success is cancelled and a failure stays', async () => {
    const { run, path } = await named(['green', 'red']);
    await run.review(path('green'));
    await run.review(path('red'), [blocking]);
    await decided(run);
    const old = run.pull.head.sha;
    await run.pull.push({ message: 'More', files: { [path('green')]: 'other\n' } });
    await run.told();
    await decided(run);
    expect(stage.check(run, nameOf('green'), old)).toMatchObject({ conclusion: 'cancelled' });
    expect(stage.check(run, nameOf('green'), old)?.title).toContain('Superseded by');
    expect(stage.check(run, nameOf('red'), old)?.conclusion).toBe('failure');
    expect(blockNames(run)).toEqual([]);
    await run.sync({ [path('green')]: { block: 'green' }, [path('red')]: { block: 'red' } });
    await run.review(path('green'));
    await decided(run);
    expect(stage.check(run, nameOf('green'))?.conclusion).toBe('success');
  });

  test('PUB-2: a block that owns nothing on this head any more leaves no success behind', async () => {
    const { run, path } = await named(['gives', 'takes']);
    await run.review(path('gives'));
    await run.review(path('takes'));
    await decided(run);
    await run.sync({ [path('gives')]: { block: 'takes' }, [path('takes')]: { block: 'takes' } });
    await decided(run);
    expect(stage.check(run, nameOf('gives'))).toMatchObject({
      conclusion: 'cancelled',
      title: 'No verdict of its own any more',
    });
    expect(stage.check(run, nameOf('takes'))?.title).toBe('Passed: 2 files reviewed, nothing blocks');
  });

  test('case 36: a create of a block’s check run that answers 502 after creating is found again', async () => {
    const { run, path } = await named(['lost']);
    await decided(run);
    await run.review(path('lost'));
    const fault = stage.gh.faults.add({
      on: 'checks/create',
      when: 'after',
      status: 502,
      times: 1,
      match: ({ body }) => (body as { name?: string }).name === nameOf('lost'),
    });
    await decided(run);
    expect(fault.hits).toBe(1);
    await stage.advance(60_000);
    expect(ours(run, 'lost')).toHaveLength(1);
    expect(await rows(run, 'lost')).toMatchObject([{ n: 1, state: 'concluded', dueAtMs: null }]);
  });

  test('case 41: asked for again, it ends in its conclusion again', async () => {
    const { run, path } = await named(['again']);
    await run.review(path('again'));
    await decided(run);
    const check = stage.check(run, nameOf('again'));
    Object.assign(check ?? {}, { status: 'queued', conclusion: null });
    await publishChecks(stage.deps, {
      repository: String(run.repository.id),
      sha: run.pull.head.sha,
      name: nameOf('again'),
      again: true,
    });
    expect(check).toMatchObject({ status: 'completed', conclusion: 'success' });
    expect(ours(run, 'again')).toHaveLength(1);
  });
});
