/** Contents that are no plain text, deletions, and a fork whose commits arrive late: what becomes of each, in one pull request. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, seen } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

describe('odd contents', { timeout: 120_000 }, () => {
  it('case 28, case 26, case 24: the good file is reviewed whatever lies beside it; what was not read is named with its reason, and deletions are said', async () => {
    const { repository } = await stage.repository({
      name: 'odd',
      files: { 'old/auth.ts': 'export const old = 1;\n', 'b.ts': 'b\n' },
    });
    const { author } = stage;
    await repository.commit({
      branch: 'topic',
      author,
      message: 'Add odd files',
      files: {
        'ok.ts': 'export const ok = 1;\n',
        'latin1.py': Buffer.from([0x23, 0x20, 0xe9, 0x0a]),
        'bom.ts': Buffer.from([0xef, 0xbb, 0xbf, ...Buffer.from('// one\n// BUG two\n')]),
        'utf16.txt': Buffer.from('\uFEFFtext\n', 'utf16le'),
        'model.bin':
          'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n',
        'temporary.ts': 'temporary\n',
      },
    });
    await repository.commit({
      branch: 'topic',
      author,
      message: 'Remove what is not needed',
      files: { 'temporary.ts': null, 'old/auth.ts': null },
    });
    const pull = await repository.openPull({ head: 'topic', user: author });
    const red = await stage.verdict(pull);
    expect(seen(stage, pull)).toMatchObject({ state: 'failure', mergeable: false });
    expect(red.summary, 'a byte order mark moves no line').toContain('`bom.ts:2`');
    expect(red.summary).toMatch(
      /\| `ticket_unavailable` Files could not be reviewed: content\\_unread 3 \| `latin1\.py`, `model\.bin`, `utf16\.txt` \|/,
    );
    expect(red.summary, 'and why').toMatch(/- `model\.bin`: content\\_unread: [^\n]*LFS/i);
    expect(red.summary).toContain('- `old/auth.ts`: deleted');
    expect(red.summary, 'what came and went is nothing').not.toContain('temporary.ts');
    await stage.settle();
    const ends = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' ? [[String(row.data.path), row.data.end]] : [],
    );
    expect(ends.sort()).toEqual([
      ['bom.ts', 'reviewed'],
      ['latin1.py', 'content_unread'],
      ['model.bin', 'content_unread'],
      ['ok.ts', 'reviewed'],
      ['utf16.txt', 'content_unread'],
    ]);
    const blocks = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'block.opened' ? [row.data.block] : [],
    );
    expect(blocks, 'both commits stay on the record').toEqual(['add-odd-files', 'remove-what-is-not-needed']);
    const annotated = stage.gh.governing(repository, pull.head.sha, 'countersign / findings', stage.app);
    expect(annotated?.annotations.map(({ path, start_line }) => [path, start_line])).toEqual([['bom.ts', 2]]);

    // case 40: nothing of ours is on any other commit than the head
    const ours = stage.gh.world.checkRuns.filter(
      (run) => run.app === stage.app && run.repositoryId === repository.id,
    );
    expect(new Set(ours.map((run) => run.headSha))).toEqual(new Set([pull.head.sha]));
  });

  it('case 7: the event of a fork comes before its commits: undecided until they are here, never decided on less', async () => {
    const { repository } = await stage.repository({ name: 'lagging', policy: markerPolicy() });
    const friend = stage.gh.createUser('friend');
    repository.setCollaborator(friend, 'write');
    const fork = await repository.fork(friend);
    repository.propagation = 'manual';
    await fork.commit({ branch: 'fix', author: friend, files: { 'a.ts': '// BUG\n' } });
    const pull = await repository.openPull({ head: 'fix', fork, user: friend });
    // first the creation, then the look for what became of it (PUB-2)
    const refused = () => stage.gh.requests.filter((one) => one.status === 422).length;
    await eventually(
      () => refused() >= 1,
      () => 'the gate was not tried',
    );
    await stage.settle();
    await stage.advance(3_000);
    await stage.settle();
    expect(refused(), 'tried again after two seconds').toBeGreaterThanOrEqual(2);
    expect(stage.gate(pull), 'GitHub does not know the commit yet').toBeNull();
    expect(stage.gh.mergeable(pull, 'countersign', stage.app)).toBe(false);
    await pull.propagate();
    await stage.advance(5_000);
    const red = await stage.verdict(pull, { until: (run) => run.status === 'completed', timeoutMs: 60_000 });
    expect(red.conclusion).toBe('failure');
    expect(red.summary).toContain('**Coverage** 1 of 1 changed path reviewed.');
    expect(stage.gh.comments(pull), 'no comment about an error that was none').toEqual([]);
  });
});
