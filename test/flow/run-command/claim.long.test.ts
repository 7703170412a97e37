/** Claims: of paths that the head does not change, what undoes them, and what other pull requests are told. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withRun } from '../../../app/flow/append-rows.ts';
import { decideGate } from '../../../app/flow/decide-gate.ts';
import { publishChecks } from '../../../app/flow/publish-checks.ts';
import { runCommand } from '../../../app/flow/run-command.ts';
import { contentionOf } from '../../../db/store/contention.ts';
import type { User } from '../../../sandbox/model.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import type { Repository } from '../../../sandbox/repository.ts';
import { app as actor, cause } from '../../helpers/ledger.ts';
import { readAll, type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
let maintainer: User;
let stranger: User;
let repository: Repository;
beforeAll(async () => {
  stage = await syncStage();
  maintainer = stage.gh.createUser('mara');
  stranger = stage.gh.createUser('stranger');
  repository = await stage.repository(
    { 'a.ts': 'a\n', 'lib/c.ts': 'c\n', 'lib/d.ts': 'd\n' },
    readAll('guard: ["infra/**"]\n'),
  );
  await repository.commit({ message: 'Link', files: { linked: { content: 'lib', mode: '120000' } } });
  repository.setCollaborator(maintainer, 'write');
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

interface Scene {
  readonly pull: Pull;
  readonly run: string;
}
let serial = 0;

/** A pull request whose commits are named blocks; `files` of each. */
async function scene(
  blocks: Record<string, Record<string, string>>,
  options: { trailers?: Record<string, string>; fork?: Repository } = {},
): Promise<Scene> {
  const source = options.fork ?? repository;
  const branch = `topic-${++serial}`;
  for (const [slug, files] of Object.entries(blocks)) {
    const trailers = { Block: slug, ...options.trailers };
    const author = options.fork === undefined ? {} : { author: stranger };
    await source.commit({ branch, message: slug, trailers, files, ...author });
  }
  const { fork } = options;
  const pull = await repository.openPull({
    head: branch,
    user: fork === undefined ? maintainer : stranger,
    ...(fork === undefined ? {} : { fork }),
  });
  const run = await stage.open(pull);
  await stage.gh.idle();
  await stage.sync(run);
  return { pull, run };
}

/** Says it in a minute of its own and gives what the sticky comment answers. */
async function say({ pull }: Scene, body: string, who = maintainer): Promise<string> {
  await stage.database.moveClock(3_600_000);
  stage.gh.advance(3_600_000);
  const comment = await pull.comment(who, body);
  await runCommand(stage.deps, {
    repository: String(repository.id),
    pull: String(pull.number),
    comment: String(comment.id),
    author: { id: String(who.id), login: who.login, bot: false },
    body,
    createdAt: comment.createdAt,
    reconciled: false,
  });
  return stage.gh.comments(pull).find((one) => one.viaApp !== null)?.body ?? '';
}
async function summary({ pull, run }: Scene): Promise<string> {
  await decideGate(stage.deps, { run });
  const at = { repository: String(repository.id), sha: pull.head.sha, name: 'countersign' };
  await publishChecks(stage.deps, at);
  const checks = stage.gh.checkRuns(repository, pull.head.sha);
  return checks.at(-1)?.summary ?? '';
}
const claimRows = async ({ run }: Scene) =>
  (await stage.rows(run)).flatMap((row) =>
    row.kind === 'block.claimed' || row.kind === 'block.released'
      ? [`${row.kind.slice(6)} ${row.data.block} ${String(row.data.path)}`]
      : [],
  );
const contention = async ({ run }: Scene) =>
  (await contentionOf(stage.database.database.db, await stage.run(run))).map(
    (one) => `#${one.pull} ${one.kind} ${one.paths.map(String).join(' ')}`,
  );

describe('OWN-7: reserved paths', () => {
  it('OWN-7: an untouched path is reserved, told to other pull requests, and owned once it is changed', async () => {
    const ours = await scene({ one: { 'a.ts': '1\n' }, two: { 'x.ts': '1\n' } });
    const theirs = await scene({ other: { 'lib/c.ts': '2\n' } });
    expect(await say(ours, '/claim lib/c.ts two')).toContain('`lib/c.ts` is reserved for block `two`.');
    const rows = await claimRows(ours);
    expect(rows).toEqual(['claimed two lib/c.ts']);
    expect(await say(ours, '/claim lib/c.ts two')).toContain('already');
    expect(await claimRows(ours)).toEqual(rows);
    expect(await contention(theirs)).toEqual([`#${ours.pull.number} reserves lib/c.ts`]);
    expect(await summary(theirs)).toContain(`Pull request #${ours.pull.number} reserves \`lib/c.ts\``);
    // the first commit to touch it is the other block's, and the claim decides all the same
    await ours.pull.push({ files: { 'lib/c.ts': '3\n' }, message: 'one', trailers: { Block: 'one' } });
    await stage.gh.idle();
    await stage.sync(ours.run);
    expect((await stage.files(ours.run))['lib/c.ts']).toBe('L2 two owned');
    expect(await contention(theirs)).toEqual([`#${ours.pull.number} touches lib/c.ts`]);
    expect(await contention(ours)).toEqual([`#${theirs.pull.number} touches lib/c.ts`]);
    await ours.pull.close(maintainer);
    await stage.sync(ours.run);
    expect(await contention(theirs)).toEqual([]);
  });

  it('OWN-7: /release gives a reservation back, and undoes the last of several claims only', async () => {
    const at = await scene({ one: { 'a.ts': '1\n' }, two: { 'x.ts': '1\n' }, three: { 'y.ts': '1\n' } });
    await say(at, '/claim lib/d.ts one');
    expect(await say(at, '/release lib/d.ts')).toContain('`lib/d.ts` is no longer claimed for block `one`.');
    expect(await say(at, '/release lib/d.ts')).toContain('no block claimed that path');
    await say(at, '/claim a.ts two\n/claim a.ts three\n/release a.ts');
    expect((await claimRows(at)).slice(-6)).toEqual([
      'released one a.ts',
      'claimed two a.ts',
      'released two a.ts',
      'claimed three a.ts',
      'released three a.ts',
      'claimed two a.ts',
    ]);
    await stage.sync(at.run);
    expect((await stage.files(at.run))['a.ts']).toBe('L2 two owned');
  });

  it('case 18, OWN-9: both paths of a rename have their owner, and a claim of either goes to the block that renamed', async () => {
    const branch = `topic-${++serial}`;
    const own = {
      branch,
      message: 'own',
      trailers: { Block: 'own', Owns: 'lib/' },
      files: { 'lib/new.ts': '1\n' },
    };
    await repository.commit(own);
    await repository.commit({
      branch,
      message: 'move',
      trailers: { Block: 'move' },
      renames: { 'lib/c.ts': 'moved/c.ts' },
    });
    const pull = await repository.openPull({ head: branch, user: maintainer });
    const at = { pull, run: await stage.open(pull) };
    await stage.gh.idle();
    await stage.sync(at.run);
    const before = await stage.files(at.run);
    expect(before['lib/c.ts']).toMatch(/^L0 unowned unowned_change/);
    expect(before['moved/c.ts']).toMatch(/^L0 move owned/);
    await say(at, '/claim lib/c.ts\n/claim moved/c.ts');
    await stage.sync(at.run);
    const after = await stage.files(at.run);
    expect([after['lib/c.ts'], after['moved/c.ts']]).toEqual(['L0 move owned moved', 'L0 move owned moved']);
  });

  it('attack 32, OWN-5, OWN-7, OWN-8: each refusal changes nothing and says what would be accepted', async () => {
    const at = await scene({ one: { 'a.ts': '1\n' }, two: { 'x.ts': '1\n' } });
    const before = await claimRows(at);
    const refusals: [string, string][] = [
      ['/claim lib one', 'no directory and no glob'],
      ['/claim lib/ one', 'no directory and no glob'],
      ['/claim lib/*.ts one', 'no directory and no glob'],
      ['/claim new.ts', 'it is not clear for which block'],
      ['/claim new.ts nobody', 'there is no open block'],
      ['/claim infra/new.tf one', 'that path is guarded'],
      ['/claim .github/COUNTERSIGN.yml one', 'that path is guarded'],
      ['/claim sub/claude.MD one', 'that path is guarded'],
      ['/claim .GIT/config one', 'it lies in .git'],
      ['/claim x/.git/hooks/y one', 'it lies in .git'],
      ['/claim a/.CounterSign/x one', 'guarded'],
      ['/claim linked one', 'it is a symlink'],
      ['/claim linked/c.ts one', 'it lies behind a symlink'],
      ['/claim ../x one', 'holds the segment'],
      ['/claim /abs one', 'is absolute'],
      ['/claim a//b one', 'an empty segment'],
    ];
    // ten commands a person an hour
    for (const part of [refusals.slice(0, 8), refusals.slice(8)]) {
      const reply = await say(at, part.map(([body]) => body).join('\n'));
      for (const [body, text] of part) expect(reply, body).toContain(text);
    }
    expect(await claimRows(at)).toEqual(before);
  });

  it('OWN-7: at most 50 a run, and a stranger who is not allowed reserves nothing and is in nobody’s way (RUN-10)', async () => {
    const at = await scene({ one: { 'a.ts': '1\n' } });
    await withRun(stage.deps, at.run, async (unit) => {
      for (let n = 0; n < 50; n++) {
        const data = {
          block: 'one',
          path: `new/${n}.ts`,
          entry: 'absent' as const,
          auto: false,
          reason: 'r',
        };
        unit.append('block.claimed', { block: 'one', actor, cause, data });
      }
    });
    const reply = await say(at, '/claim new/51.ts\n/claim new/7.ts\n/release new/7.ts\n/claim new/51.ts');
    expect(reply).toContain('reserves 50 paths that it does not change already');
    expect(reply).toContain('`new/7.ts` is reserved for block `one` already');
    expect((await claimRows(at)).slice(50)).toEqual(['released one new/7.ts', 'claimed one new/51.ts']);

    const fork = await repository.fork(stranger);
    const theirs = await scene({ bad: { 'a.ts': 'evil\n' } }, { fork });
    expect((await stage.run(theirs.run)).allowedRule).toBeNull();
    expect(await say(theirs, '/claim new/1.ts')).toContain('reserves paths once it may be reviewed');
    expect(await contention(at)).not.toContain(`#${theirs.pull.number} touches a.ts`);
    expect(await contention(theirs)).toEqual([]);
    await say(theirs, `/allow ${theirs.pull.head.sha}`);
    await stage.sync(theirs.run);
    expect(await contention(at)).toContain(`#${theirs.pull.number} touches a.ts`);
  });
});
