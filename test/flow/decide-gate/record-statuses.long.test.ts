/** Statuses of blocks and what waits for another: real git, real rows, real tickets. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pathKey } from '../../../app/domain/path.ts';
import { withRun } from '../../../app/flow/append-rows.ts';
import { cutTickets } from '../../../app/flow/cut-tickets.ts';
import { decideGate } from '../../../app/flow/decide-gate.ts';
import { listBlocks } from '../../../db/store/block.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import type { Repository } from '../../../sandbox/repository.ts';
import { app as actor, cause } from '../../helpers/ledger.ts';
import { sha } from '../../helpers/queue.ts';
import { type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
beforeAll(async () => {
  stage = await syncStage();
});
afterAll(() => stage.close());

interface Scene {
  readonly repository: Repository;
  readonly pull: Pull;
  readonly run: string;
}
type Commit = readonly [slug: string, files: Record<string, string>, trailers?: Record<string, string>];

async function scene(...commits: Commit[]): Promise<Scene> {
  const repository = await stage.repository({ 'README.md': '#\n' });
  for (const one of commits) await push(repository, one);
  const pull = await repository.openPull({ head: 'topic' });
  return { repository, pull, run: await stage.open(pull) };
}
async function push(repository: Repository, [slug, files, trailers = {}]: Commit): Promise<void> {
  await repository.commit({
    branch: 'topic',
    message: `Work on ${slug}`,
    trailers: { Block: slug, ...trailers },
    files,
  });
  await stage.gh.idle();
}

/** The arrows that a worker would run, until none asks for another. */
async function settle({ run }: Scene): Promise<string> {
  await stage.sync(run);
  let conclusion = '';
  for (let turn = 0; turn < 2; turn++) {
    await cutTickets(stage.deps, { run });
    const decided = await decideGate(stage.deps, { run });
    conclusion = decided.kind === 'over' ? 'over' : decided.conclusion;
  }
  return conclusion;
}

/** A complete review of a path under its present key, as its rows say it. */
async function review({ run }: Scene, path: string, finding = false): Promise<void> {
  const file = (await stage.state(run)).files.get(pathKey(path));
  if (file?.key == null) throw new Error(`${path} has no key`);
  const { key, level, block } = file;
  const by = { block, actor, cause };
  const fingerprint = sha(`finding of ${path}`);
  const [title, body, quote] = [sha('title'), sha('body'), sha('quote')];
  await withRun(stage.deps, run, async (unit) => {
    if (finding) {
      const at = { path, side: 'head' as const, start_line: 1, end_line: 1, blob: file.blob.head };
      unit.append('finding.raised', {
        ...by,
        data: {
          ...at,
          finding: 1,
          fingerprint,
          severity: 'high',
          lens: 'correctness',
          state: 'open',
          reviewer: 'lint',
          command: true,
          ticket: sha(`ticket ${key}`),
          key,
          title,
          body,
          quote,
          suggestion: null,
        },
      });
    }
    unit.append('ticket.ended', {
      ...by,
      data: {
        ticket: sha(`ticket ${key}`),
        key,
        path,
        block,
        round: 0,
        grant: 1,
        level,
        policy: null,
        end: 'reviewed',
        final: true,
        verdict: finding ? 'findings' : 'approve',
        partial: false,
        runner: null,
        sessions: [],
        findings: finding ? [fingerprint] : [],
        brief: null,
        result: null,
        ms: 1,
      },
    });
    await unit.tx.execute(`update ticket set state = 'ended', lane = null where key = '${key}'`);
  });
}

const tickets = async ({ run }: Scene) => {
  const { rows } = await stage.database.database.pool.query<{ path: string; state: string }>(
    `select convert_from(path, 'UTF8') as path, state from ticket where run_id = $1 and state not in ('superseded', 'cancelled') order by 1`,
    [run],
  );
  return Object.fromEntries(rows.map((row) => [row.path, row.state]));
};
const statuses = async ({ run }: Scene) =>
  Object.fromEntries(
    (await listBlocks(stage.database.database.db, run)).map((block) => [block.id, block.status]),
  );
const ends = async ({ run }: Scene) =>
  (await stage.rows(run)).flatMap((row) =>
    row.kind === 'block.ended'
      ? [`${row.data.block} ${row.data.status}`]
      : row.kind === 'block.reopened'
        ? [`${row.data.block} open`]
        : [],
  );
const reasons = async ({ run }: Scene) =>
  (await stage.state(run)).gate?.reasons.map((reason) => `${reason.code} ${reason.class}`);

describe('BLK-5, LSE-1: blocks that wait for another', () => {
  it('LSE-1, BLK-5: what a block comes after has to pass before its tickets can be leased', async () => {
    const at = await scene(
      ['schema', { 'schema.ts': '1\n' }],
      ['api', { 'api.ts': '1\n' }, { After: 'schema' }],
      ['page', { 'page.ts': '1\n' }, { After: 'api' }],
    );
    expect(await settle(at)).toBe('in_progress');
    expect(await tickets(at)).toEqual({ 'api.ts': 'held', 'page.ts': 'held', 'schema.ts': 'pending' });
    expect(await statuses(at)).toEqual({ schema: 'open', api: 'waiting', page: 'waiting' });
    expect(await reasons(at)).toEqual(['reviews_pending machine', 'dependency_open machine']);

    await review(at, 'schema.ts', true);
    // nothing is under way any more: the finding holds all three, and nobody waits for a deadline
    expect(await settle(at)).toBe('failure');
    expect(await reasons(at)).toEqual(['open_findings wrong', 'dependency_open wrong']);
    expect(await tickets(at)).toMatchObject({ 'api.ts': 'held', 'page.ts': 'held' });

    await push(at.repository, ['schema', { 'schema.ts': '2\n' }]);
    expect(await settle(at)).toBe('in_progress');
    expect(await tickets(at)).toMatchObject({ 'schema.ts': 'pending', 'api.ts': 'held' });
    await review(at, 'schema.ts');
    await withRun(stage.deps, at.run, async (unit) => {
      unit.append('finding.ended', {
        block: 'schema',
        actor,
        cause,
        data: { finding: 1, state: 'fixed', reason: 'gone', head: at.pull.head.sha, text: null },
      });
    });
    expect(await settle(at)).toBe('in_progress');
    expect(await statuses(at)).toEqual({ schema: 'passed', api: 'open', page: 'waiting' });
    expect(await tickets(at)).toMatchObject({ 'api.ts': 'pending', 'page.ts': 'held' });
    await review(at, 'api.ts');
    await settle(at);
    expect(await tickets(at)).toMatchObject({ 'page.ts': 'pending' });
    await review(at, 'page.ts');
    expect(await settle(at)).toBe('success');
    expect(await ends(at)).toEqual(['schema failed', 'schema passed', 'api passed', 'page passed']);
    expect(await statuses(at)).toEqual({ schema: 'passed', api: 'passed', page: 'passed' });
  });

  it('BLK-5: a push on a waiting block reopens it, and one on what had passed lets the others wait again', async () => {
    const at = await scene(['one', { a: '1\n' }], ['two', { b: '1\n' }, { After: 'one' }]);
    await settle(at);
    expect(await statuses(at)).toEqual({ one: 'open', two: 'waiting' });
    await review(at, 'a');
    await settle(at);
    expect(await statuses(at)).toEqual({ one: 'passed', two: 'open' });
    await push(at.repository, ['one', { a: '2\n' }]);
    await stage.sync(at.run);
    // before anything is decided: nothing of it can be leased in between
    expect(await statuses(at)).toEqual({ one: 'open', two: 'waiting' });
    await settle(at);
    expect(await tickets(at)).toMatchObject({ b: 'held' });
    // its own trailers say what it waits for: without `After` it waits for nothing
    await at.repository.commit({
      branch: 'topic',
      parents: [at.pull.base.sha],
      message: 'Work on one',
      trailers: { Block: 'one' },
      files: { a: '2\n' },
    });
    await push(at.repository, ['two', { b: '1\n' }]);
    await settle(at);
    expect(await statuses(at)).toEqual({ one: 'open', two: 'open' });
    expect(await tickets(at)).toMatchObject({ b: 'pending' });
  });

  it('BLK-5: unknown, itself and a circle are broken, named, and hold their tickets', async () => {
    const at = await scene(
      ['one', { a: '1\n' }, { After: 'two' }],
      ['two', { b: '1\n' }, { After: 'one' }],
      ['three', { c: '1\n' }, { After: 'nobody' }],
      ['four', { d: '1\n' }, { After: 'four' }],
    );
    expect(await settle(at)).toBe('failure');
    const { gate } = await stage.state(at.run);
    expect(gate?.reasons.slice(0, 2)).toMatchObject([
      {
        code: 'bad_after',
        class: 'broken',
        blocks: ['four', 'three'],
        detail: 'After: nobody is no block of this head',
      },
      { code: 'dependency_cycle', class: 'broken', blocks: ['one', 'two'], detail: 'one → two → one' },
    ]);
    expect(await tickets(at)).toMatchObject({ a: 'held', b: 'held' });
  });

  it('BLK-5: only a person is missing, then the others wait; a block that owns nothing has no verdict', async () => {
    const at = await scene(
      ['one', { a: '1\n' }, { 'Accept-Human': 'it looks right' }],
      ['two', { b: '1\n' }, { After: 'one' }],
      ['echo', { a: '2\n' }],
    );
    await settle(at);
    await review(at, 'a');
    expect(await settle(at)).toBe('action_required');
    expect(await statuses(at)).toEqual({ one: 'awaiting_human_check', two: 'waiting', echo: 'open' });
    expect(await reasons(at)).toEqual(['human_check person', 'dependency_open person']);
    expect(await ends(at)).toEqual([]);
  });

  it('GAT-7, BLK-5: an override lets the run pass and none of its blocks', async () => {
    const at = await scene(['one', { a: '1\n' }], ['two', { b: '1\n' }, { After: 'one' }]);
    await at.repository.commit({
      message: 'Let somebody override',
      files: {
        '.github/countersign.yml': `version: 1\npeople: {override: maintain}\nreviewers:\n  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], trusted: true}\n`,
      },
    });
    await settle(at);
    await review(at, 'a', true);
    expect(await settle(at)).toBe('failure');
    await withRun(stage.deps, at.run, async (unit) => {
      unit.append('human.acted', {
        block: null,
        actor: { kind: 'person', id: '424242', via: 'comment' },
        cause,
        data: {
          act: 'override',
          head: at.pull.head.sha,
          permission: 'maintain',
          clause: null,
          paths: [],
          self: false,
          text: sha('why'),
        },
      });
    });
    expect(await settle(at)).toBe('success');
    const { gate } = await stage.state(at.run);
    expect(gate).toMatchObject({ reasons: [], overridden: { seq: expect.any(Number) }, blocking: [1] });
    expect(await statuses(at)).toEqual({ one: 'failed', two: 'waiting' });
    expect(await ends(at), 'two never began, and its ticket is still held').toEqual(['one failed']);
    expect(await tickets(at)).toMatchObject({ b: 'held' });
  });

  it('BLK-5: another policy opens a block again without a push, on the record', async () => {
    const at = await scene(['one', { a: '1\n' }]);
    await settle(at);
    await review(at, 'a');
    expect(await settle(at)).toBe('success');
    await at.repository.commit({
      message: 'Another lens',
      files: {
        '.github/countersign.yml': `version: 1\nreview: {lenses: [security]}\nreviewers:\n  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], trusted: true}\n`,
      },
    });
    await settle(at);
    expect(await ends(at)).toEqual(['one passed', 'one open']);
    expect((await stage.state(at.run)).blocks.get('one')?.ended).toBeNull();
    expect(await statuses(at)).toEqual({ one: 'open' });
  });
});
