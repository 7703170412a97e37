/** The pull request of a bot that raises versions: a manifest and its lockfile, from a branch of the repository. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Repository } from '../../sandbox/repository.ts';
import { seen, spent } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

const manifest = (version: string) => `{\n  "dependencies": { "left-pad": "${version}" }\n}\n`;
const lockfile = (version: string) =>
  `{\n  "lockfileVersion": 3,\n  "packages": { "node_modules/left-pad": { "version": "${version}" } }\n}\n`;

async function bump(repository: Repository, files: Readonly<Record<string, string>>) {
  const bot = stage.gh.world.userByLogin('renovate[bot]') ?? stage.gh.createUser('renovate[bot]');
  repository.setCollaborator(bot, 'write');
  await repository.commit({
    branch: 'renovate/left-pad',
    author: bot,
    message: 'Update dependency left-pad to v1.3.0',
    files,
  });
  return repository.openPull({
    head: 'renovate/left-pad',
    user: bot,
    title: 'Update dependency left-pad to v1.3.0',
  });
}

describe("a dependency bot's pull request", () => {
  it('BLK-7: the manifest is reviewed, the lockfile is recorded with it, and it is green without a person', async () => {
    const { repository } = await stage.repository({
      name: 'bumped',
      files: { 'package.json': manifest('1.2.0'), 'package-lock.json': lockfile('1.2.0') },
    });
    const pull = await bump(repository, {
      'package.json': manifest('1.3.0'),
      'package-lock.json': lockfile('1.3.0'),
    });
    const green = await stage.verdict(pull);
    expect(seen(stage, pull)).toEqual({
      state: 'success',
      title: 'Passed: 1 file reviewed, 1 recorded, nothing blocks',
      mergeable: true,
    });
    expect(green.summary).toContain('**Coverage** 1 of 2 changed paths reviewed, 1 recorded without review.');
    expect(green.summary).toContain('- `package-lock.json`: lockfile');
    await stage.settle();
    const rows = await stage.rows(pull);
    const decided = rows.flatMap((row) => (row.kind === 'decision' ? row.data.paths : []));
    expect(decided.map(({ path, level, reason }) => [path, level, reason ?? null])).toEqual([
      ['package-lock.json', 'L0', 'lockfile'],
      ['package.json', 'L2', null],
    ]);
    const allowed = rows.flatMap((row) => (row.kind === 'run.allowed' ? [row.data.rule] : []));
    expect(allowed, 'a branch of this repository is somebody with write').toEqual(['same_repository']);
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 1, tickets: 1, leases: 1, jobs: 1 });
    expect(stage.gh.comments(pull)).toEqual([]);

    // the bot rebases as the base moves on: the same contents are not reviewed again
    await repository.commit({ files: { 'README.md': '# sample\n\nMore words.\n' } });
    const bot = pull.user;
    const rebased = await pull.forcePush({
      author: bot,
      message: 'Update dependency left-pad to v1.3.0',
      files: { 'package.json': manifest('1.3.0'), 'package-lock.json': lockfile('1.3.0') },
    });
    const again = await stage.verdict(pull, { sha: rebased });
    expect(again.title).toBe('Passed: 1 file reviewed, 1 recorded, nothing blocks');
    await stage.settle();
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 1, tickets: 1, leases: 1, jobs: 1 });

    // what a bot writes below its pull request is no command, even when it looks like one
    const said = await pull.comment(bot, '/rerun all\n');
    await stage.settle();
    expect(said.reactions).toEqual([]);
    expect(stage.gh.comments(pull).map((one) => one.author.login)).toEqual(['renovate[bot]']);
  });

  it('BLK-7: a lockfile that changes without its manifest is nothing anybody looked at', async () => {
    const { repository } = await stage.repository({
      name: 'smuggled',
      files: { 'package.json': manifest('1.2.0'), 'package-lock.json': lockfile('1.2.0') },
    });
    const pull = await bump(repository, { 'package-lock.json': lockfile('6.6.6') });
    const red = await stage.verdict(pull);
    expect(seen(stage, pull)).toEqual({
      state: 'failure',
      title: 'Files were not reviewed, and the policy does not let them through · 1 more reason',
      mergeable: false,
    });
    expect(red.summary).toMatch(/`unreviewed_files` [^|]*lockfile 1[^|]*\| `package-lock.json` \|/);
    expect(red.summary).toContain('`nothing_to_review`');
    await stage.settle();
    expect(await spent(stage, repository)).toMatchObject({ dispatches: 0, tickets: 0, jobs: 0 });
  });

  it('BLK-7: a policy that lets no lockfile through says so, with the manifest reviewed all the same', async () => {
    const { repository } = await stage.repository({
      name: 'strict',
      policy: markerPolicy('gate:\n  allow_unreviewed: [moved]\n'),
      files: { 'package.json': manifest('1.2.0'), 'package-lock.json': lockfile('1.2.0') },
    });
    const pull = await bump(repository, {
      'package.json': manifest('1.3.0'),
      'package-lock.json': lockfile('1.3.0'),
    });
    const red = await stage.verdict(pull);
    expect(seen(stage, pull)).toEqual({
      state: 'failure',
      title: 'Files were not reviewed, and the policy does not let them through',
      mergeable: false,
    });
    expect(red.summary).toContain('gate.allow_unreviewed');
    expect(red.summary).toContain('**Coverage** 1 of 2 changed paths reviewed, 1 recorded without review.');
  });
});
