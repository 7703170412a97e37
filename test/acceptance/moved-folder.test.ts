/** Folders that are renamed, as people do it: hundreds of exact moves, some with edits, some out of a guarded place. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seen, spent, sticky } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

const name = (n: number) => `part-${String(n).padStart(3, '0')}.ts`;
const body = (n: number) =>
  Array.from({ length: 12 }, (_, line) => `export const value${n}_${line} = ${n * 100 + line};\n`).join('');

describe('a folder of 400 files that is renamed', () => {
  it('case 17, OWN-9: 360 exact moves are recorded, 40 edits are reviewed, and n of n are accounted for', async () => {
    const numbers = Array.from({ length: 400 }, (_, n) => n);
    const { repository } = await stage.repository({
      name: 'moved',
      files: Object.fromEntries(numbers.map((n) => [`lib/old/${name(n)}`, body(n)])),
    });
    await repository.commit({
      branch: 'rename',
      author: stage.author,
      message: 'Move lib/old to src/new',
      renames: { 'lib/old': 'src/new' },
      files: Object.fromEntries(
        numbers
          .filter((n) => n % 10 === 0)
          .map((n) => [
            `src/new/${name(n)}`,
            body(n).replace(`value${n}_3 `, n === 70 ? 'BUG ' : `renamed${n} `),
          ]),
      ),
    });
    const pull = await repository.openPull({ head: 'rename', user: stage.author });
    const first = await stage.verdict(pull, { until: () => true });
    expect(first.status, 'a gate is there long before 400 files were looked at').not.toBe('completed');

    const red = await stage.verdict(pull);
    expect(seen(stage, pull)).toEqual({ state: 'failure', title: '1 finding blocks', mergeable: false });
    expect(red.summary).toContain('`src/new/part-070.ts:4`');
    await stage.settle();

    const rows = await stage.rows(pull);
    const decided = rows.flatMap((row) => (row.kind === 'decision' ? row.data.paths : []));
    const count = (level: string, reason: string | null) =>
      decided.filter((one) => one.level === level && (one.reason ?? null) === reason).length;
    expect(decided, 'old and new path of each').toHaveLength(800);
    expect(count('L0', 'moved'), '360 new paths and 400 old ones').toBe(760);
    expect(count('L2', null)).toBe(40);
    expect(new Set(decided.map((one) => one.block)), 'one owner for both sides').toEqual(
      new Set(['move-lib-old-to-src-new']),
    );
    const pairs = decided.filter((one) => String(one.path).startsWith('src/new/'));
    expect(pairs.every((one) => one.from === String(one.path).replace('src/new/', 'lib/old/'))).toBe(true);
    const cost = await spent(stage, repository);
    expect(cost).toMatchObject({ tickets: 40, leases: 40 });
    expect(cost['jobs'], 'a few runners drain all').toBeLessThanOrEqual(4);

    const sha = await pull.push({ message: 'Mend', files: { [`src/new/${name(70)}`]: body(70) } });
    const green = await stage.verdict(pull, { sha });
    // FND-1: mended by taking the edit back: the path is a plain move again, and what was found has left with it
    expect(green.title).toBe('Passed: 39 files reviewed, 761 recorded, nothing blocks');
    expect(green.summary).toContain(
      '**Coverage** 39 of 800 changed paths reviewed, 761 recorded without review.',
    );
    expect(green.summary).toContain('`lib/old/part-001.ts`: moved');
    await stage.settle();
    expect(await spent(stage, repository), 'nothing was read again').toMatchObject({ tickets: 40 });
  });
});

describe('a file that leaves a guarded folder', () => {
  it('case 18: the owner of the old path is asked, whatever the new one is called', async () => {
    const { repository } = await stage.repository({
      name: 'guarded',
      policy: markerPolicy("guard: ['secrets/**']\n"),
      files: { 'secrets/policy.yml': 'allow: nobody\n' },
    });
    await repository.commit({
      branch: 'tidy',
      author: stage.author,
      message: 'Tidy up',
      renames: { 'secrets/policy.yml': 'docs/old.yml' },
    });
    const pull = await repository.openPull({ head: 'tidy', user: stage.author });
    const held = await stage.verdict(pull);
    expect(seen(stage, pull)).toEqual({
      state: 'action_required',
      title: 'Guarded paths changed',
      mergeable: false,
    });
    expect(held.summary).toMatch(
      /\| `guarded` [^|]*\| `docs\/old\.yml`, `secrets\/policy\.yml` \|[^|]*\| maintain or admin, who made none of it \|/,
    );
    await stage.settle();
    expect(
      await spent(stage, repository),
      'read at the highest level, not waved through as a move',
    ).toMatchObject({ tickets: 1 });
    const owned = (await stage.rows(pull)).flatMap((row) => (row.kind === 'decision' ? row.data.paths : []));
    expect(owned.map((one) => [one.path, one.block])).toEqual([
      ['docs/old.yml', 'guarded'],
      ['secrets/policy.yml', 'guarded'],
    ]);
    const claims = await pull.comment(stage.author, '/claim secrets/policy.yml\n/claim docs/old.yml');
    await stage.settle();
    expect(claims.reactions.map((one) => one.content)).toEqual(['eyes', 'confused']);
    expect(
      sticky(stage, pull).match(
        /`\/claim` was not done: that path is guarded: no block owns or claims it\./g,
      ),
    ).toHaveLength(2);
    expect(seen(stage, pull)?.state).toBe('action_required');
  });
});
