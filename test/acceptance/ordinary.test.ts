import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

describe('an ordinary pull request of a person', () => {
  it('three commits, no trailers, one of them "fix lint": pending at once, reviewed without a command, red, mended, green', async () => {
    const { repository } = await stage.repository({ name: 'ordinary' });
    const { author } = stage;
    await repository.commit({
      branch: 'topic',
      author,
      message: 'Add greeting',
      files: { 'src/greet.ts': 'export const hi = 1; // BUG\n' },
    });
    await repository.commit({
      branch: 'topic',
      author,
      message: 'Add farewell',
      files: { 'src/bye.ts': 'export const bye = 2;\n' },
    });
    await repository.commit({
      branch: 'topic',
      author,
      message: 'fix lint',
      files: { 'src/greet.ts': 'export const hi = 1; // BUG still\n' },
    });
    const pull = await repository.openPull({ head: 'topic', user: author });

    const first = await stage.verdict(pull, { until: () => true });
    expect(first.status, 'seconds after opening the gate is there and undecided').not.toBe('completed');
    expect(stage.gh.mergeable(pull, 'countersign', stage.app)).toBe(false);

    const red = await stage.verdict(pull);
    expect(red.conclusion).toBe('failure');
    expect(red.title).toContain('1 finding');
    expect(red.summary).toContain('2 of 2');
    await stage.settle();
    const findings = stage.gh.governing(repository, pull.head.sha, 'countersign / findings', stage.app);
    expect(findings?.annotations.map(({ path, start_line }) => [path, start_line])).toEqual([
      ['src/greet.ts', 1],
    ]);

    // nobody declared a block: no commit is blamed for touching what another one touched first
    const rows = await stage.rows(pull);
    expect(rows.filter((row) => row.kind === 'block.opened').map((row) => row.data.block)).toEqual([
      'add-greeting',
      'add-farewell',
      'fix-lint',
    ]);
    expect(red.summary).not.toContain('unowned_change');

    const sha = await pull.push({
      message: 'Mend the greeting',
      files: { 'src/greet.ts': 'export const hi = 1;\n' },
    });
    const green = await stage.verdict(pull, { sha });
    expect(green.conclusion).toBe('success');
    expect(stage.gh.mergeable(pull, 'countersign', stage.app)).toBe(true);
    await stage.settle();
    const ended = (await stage.rows(pull)).filter((row) => row.kind === 'ticket.ended');
    expect(ended, 'the untouched file was not reviewed again').toHaveLength(3);
    expect(stage.gh.comments(pull), 'nobody is spoken to without having asked').toEqual([]);
  });

  it('BLK-5, LSE-1: a block that comes after another is reviewed once that one passed, by itself', async () => {
    const { repository } = await stage.repository({ name: 'after' });
    const { author } = stage;
    const commit = (slug: string, text: string, trailers: Record<string, string> = {}) =>
      repository.commit({
        branch: 'topic',
        author,
        message: `Work on ${slug}`,
        trailers: { Block: slug, ...trailers },
        files: { [`${slug}.ts`]: text },
      });
    await commit('api', 'export const api = 1; // BUG\n');
    await commit('page', 'export const page = 1;\n', { After: 'api' });
    const pull = await repository.openPull({ head: 'topic', user: author });
    const red = await stage.verdict(pull);
    expect(red.conclusion, 'what waits is under no review: nobody waits for a deadline').toBe('failure');
    expect(red.summary).toContain('waits for another');
    await stage.settle();
    const reviewed = async () =>
      (await stage.rows(pull)).flatMap((row) =>
        row.kind === 'ticket.ended'
          ? [String(row.data.path)]
          : row.kind === 'block.ended'
            ? [`${row.data.block} ${row.data.status}`]
            : [],
      );
    expect(await reviewed()).toEqual(['api.ts', 'api failed']);

    const sha = await pull.push({
      message: 'Mend it',
      trailers: { Block: 'api' },
      files: { 'api.ts': 'export const api = 1;\n' },
    });
    expect((await stage.verdict(pull, { sha })).conclusion).toBe('success');
    await stage.settle();
    expect((await reviewed()).slice(2)).toEqual(['api.ts', 'api passed', 'page.ts', 'page passed']);
  });
});
