/** Heads that are replaced while somebody reads them, and put back again (case 10). */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, holdingPolicy, seen, spent } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
let folder: string;
beforeAll(async () => {
  stage = await testStage();
  folder = mkdtempSync(join(tmpdir(), 'countersign-hold-'));
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true });
});

describe('a force push in the middle of reviews', () => {
  it('case 10, RUN-4, PUB-2: the old head says nothing of the new one, and back on it its own findings stand', async () => {
    const { repository } = await stage.repository({ name: 'forced', policy: holdingPolicy(folder) });
    const { author } = stage;
    const first = { message: 'Add a', files: { 'src/a.ts': '// HOLD one\n// BUG of the first head\n' } };
    const c1 = await repository.commit({ branch: 'topic', author, ...first });
    const pull = await repository.openPull({ head: 'topic', user: author });
    await eventually(
      () => existsSync(join(folder, 'one.begun')),
      () => `c1 is not read: ${JSON.stringify(seen(stage, pull))}`,
    );
    expect(seen(stage, pull)).toMatchObject({ state: 'in_progress', mergeable: false });

    // c2 is a sibling of c1: other content at the same path, while somebody still reads c1's
    const c2 = await pull.forcePush({ message: 'Add a', files: { 'src/a.ts': 'export const a = 2;\n' } });
    await stage.verdict(pull, { sha: c2, until: () => true });
    await eventually(
      () => stage.gate(pull, c1)?.conclusion === 'cancelled',
      () => `the check of c1: ${stage.gate(pull, c1)?.conclusion} ${stage.gate(pull, c1)?.title}`,
    );
    expect(stage.gate(pull, c1)?.title).toBe(`Superseded by ${c2.slice(0, 10)}`);
    await eventually(
      async () => (await stage.query("select 1 from ticket where state = 'held'")).length === 1,
      () => 'one runner a file: the new content waits for the old one',
    );
    await stage.advance(6_000); // titles of a wait are written every five seconds
    await stage.verdict(pull, { sha: c2, until: (run) => run.title?.startsWith('Reviews') === true });
    expect(seen(stage, pull)).toEqual({
      state: 'in_progress',
      title: 'Reviews are under way · 0 of 1 file done',
      mergeable: false,
    });

    // the worker ends with c1 now: kept in the ledger against c1, and nothing to c2
    writeFileSync(join(folder, 'one.go'), '');
    const green = await stage.verdict(pull, { sha: c2 });
    expect(seen(stage, pull)).toEqual({
      state: 'success',
      title: 'Passed: 1 file reviewed, nothing blocks',
      mergeable: true,
    });
    expect(green.summary, 'no finding of the other head is listed').not.toContain('Marked line');
    expect(green.summary).toContain('| L2 | 1 of 1 | ✅ passed | none |');
    await stage.settle();
    const rows = await stage.rows(pull);
    const late = rows.flatMap((row) => (row.kind === 'ticket.late' ? [row.data] : []));
    expect(late).toHaveLength(1);
    const heads = rows.flatMap((row) =>
      row.kind === 'run.head' ? [[row.data.head, row.data.ancestor]] : [],
    );
    expect(heads).toEqual([
      [c1, null],
      [c2, false],
    ]);
    expect(stage.gh.governing(repository, c2, 'countersign / findings', stage.app)).toBeNull();
    const before = await spent(stage, repository);
    expect(before).toMatchObject({ tickets: 2, leases: 2 });

    // back on c1: what was found there stands, nobody reads it a second time, and c2's green is no way in
    await pull.forcePush(c1);
    const back = await stage.verdict(pull, { sha: c1, until: (run) => run.conclusion === 'failure' });
    expect(seen(stage, pull)).toEqual({ state: 'failure', title: '1 finding blocks', mergeable: false });
    expect(back.summary).toContain('`src/a.ts:2`');
    await stage.settle();
    const names = stage.gh.checkRuns(repository, c1).filter((run) => run.name === 'countersign');
    expect(
      names.map((run) => run.conclusion),
      'a concluded check is never set back: a new one',
    ).toEqual(['cancelled', 'failure']);
    expect(names.map((run) => run.externalId.split(':').at(-1))).toEqual(['1', '2']);
    const ofC2 = stage.gh.checkRuns(repository, c2).filter((run) => run.name === 'countersign');
    expect(
      ofC2.map((run) => [run.conclusion, run.title]),
      'a green on nobody’s head is taken back',
    ).toEqual([['cancelled', `Superseded by ${c1.slice(0, 10)}`]]);
    expect(await spent(stage, repository)).toEqual(before);

    // and forth again: whoever read c2 had not heard of what was found on c1, and hears of it once
    await pull.forcePush(c2);
    await stage.verdict(pull, { sha: c2, until: (run) => run.conclusion === 'success' });
    expect(seen(stage, pull)).toMatchObject({ state: 'success', mergeable: true });
    await stage.settle();
    const after = await spent(stage, repository);
    expect(after['leases']).toBeLessThanOrEqual(3);
    for (const sha of [c1, c2, c1, c2]) await pull.forcePush(sha);
    await stage.verdict(pull, { sha: c2, until: (run) => run.conclusion === 'success' });
    await stage.settle();
    expect(await spent(stage, repository), 'from then on both are known').toEqual(after);
    expect(seen(stage, pull)).toMatchObject({ state: 'success', mergeable: true });
    expect(stage.gh.comments(pull)).toEqual([]);
  });

  it('TKT-3: a burst of pushes costs one review of each file, of the last content', async () => {
    const { repository } = await stage.repository({ name: 'burst', policy: holdingPolicy(folder) });
    const { author } = stage;
    await repository.commit({ branch: 'topic', author, files: { 'src/a.ts': '// HOLD two\n' } });
    const pull = await repository.openPull({ head: 'topic', user: author });
    await eventually(
      () => existsSync(join(folder, 'two.begun')),
      () => `not read: ${JSON.stringify(seen(stage, pull))}`,
    );
    let last = '';
    for (const n of [1, 2, 3, 4])
      last = await pull.push({ message: `Try ${n}`, files: { 'src/a.ts': `export const a = ${n};\n` } });
    await stage.verdict(pull, { sha: last, until: () => true });
    writeFileSync(join(folder, 'two.go'), '');
    const green = await stage.verdict(pull, { sha: last });
    expect(green.title).toBe('Passed: 1 file reviewed, nothing blocks');
    await stage.settle();
    expect(await spent(stage, repository), 'the one that was under way, and one').toMatchObject({
      leases: 2,
    });
  });
});
