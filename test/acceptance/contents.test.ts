/** Contents that are no plain text, deletions, and a fork whose commits arrive late: what becomes of each, in one pull request. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pathKey } from '../../app/domain/path.ts';
import { eventually, seen } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

/** Case 19. The last is no UTF-8. */
const NAMES: readonly (string | Buffer)[] = [
  ...['naïve.ts', 'a b/c d.md', 'x b/y.txt', 'tab\t🐧".sh', '-n.txt', 'ends in a space '],
  Buffer.from([0x62, 0x61, 0x64, 0xff, 0xfe, 0x2e, 0x74, 0x73]),
];

describe('odd contents', () => {
  // that a `/fix` of a submodule or pointer is refused waits for `/fix` (case 26)
  it('case 28, case 26, case 25, case 24, case 19: the good file is reviewed whatever lies beside it; what was not read is named with its reason, and deletions are said', async () => {
    const { repository } = await stage.repository({
      name: 'odd',
      files: {
        'old/auth.ts': 'export const old = 1;\n',
        'b.ts': 'b\n',
        'vendor/lib': { submodule: 'a'.repeat(40) },
      },
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
        // GitHub gives no patch for these three (case 25)
        'anim.json': `{"frames":"${'x'.repeat(374_000)}"}\n`,
        'logo.png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 1]),
        'big.sql': 'insert into t values (1);\n'.repeat(30_000),
        'vendor/lib': { submodule: 'b'.repeat(40) },
        'vendor/new': { submodule: 'c'.repeat(40) },
      },
    });
    await repository.commit({
      branch: 'topic',
      author,
      message: 'Add odd names',
      files: NAMES.map((name) => [name, 'one\n// BUG two\n'] as const),
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
      /\| `ticket_unavailable` Files could not be reviewed: content\\_unread 6, too\\_large 1 \|/,
    );
    const blobAt = async (path: string) =>
      (await repository.git.run(['rev-parse', `${pull.head.sha}:${path}`])).toString().trim();
    expect(red.summary, 'and why').toMatch(/- `model\.bin`: content\\_unread: [^\n]*LFS/i);
    for (const why of [
      /- `logo\.png`: content\\_unread: binary/,
      /- `big\.sql`: too\\_large: 30000 lines, the limit is 3000/,
      new RegExp(`- \`vendor/lib\`: content\\\\_unread: submodule: ${'a'.repeat(40)} to ${'b'.repeat(40)}`),
      new RegExp(`- \`vendor/new\`: content\\\\_unread: submodule: none to ${'c'.repeat(40)}`),
    ])
      expect(red.summary).toMatch(why);
    expect(red.summary).toContain('- `old/auth.ts`: deleted');
    expect(red.summary, 'what came and went is nothing').not.toContain('temporary.ts');
    await stage.settle();
    const ended = (await stage.rows(pull)).flatMap((row) => (row.kind === 'ticket.ended' ? [row.data] : []));
    const odd = (end: string) =>
      ended.flatMap((one) => (one.end === end && typeof one.path === 'string' ? [one.path] : [])).sort();
    expect(odd('content_unread')).toEqual([
      ...['latin1.py', 'logo.png', 'model.bin', 'utf16.txt', 'vendor/lib', 'vendor/new'],
    ]);
    expect(odd('too_large')).toEqual(['big.sql']);
    expect(odd('reviewed').filter((path) => !NAMES.includes(path))).toEqual(['anim.json', 'bom.ts', 'ok.ts']);
    const decided = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'decision' ? row.data.paths : [],
    );
    // case 28: what the ledger holds is the hash of the raw bytes
    for (const path of ['latin1.py', 'bom.ts'])
      expect(decided.find((one) => one.path === path)?.blob.head, path).toBe(await blobAt(path));
    // case 19: the bytes of each name went to the runner and back
    const keys = new Set(ended.map((one) => pathKey(one.path)));
    for (const name of NAMES) expect(keys, String(name)).toContain(Buffer.from(name).toString('latin1'));
    const blocks = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'block.opened' ? [row.data.block] : [],
    );
    expect(blocks, 'all commits stay on the record').toEqual([
      ...['add-odd-files', 'add-odd-names', 'remove-what-is-not-needed'],
    ]);
    const annotated = stage.gh.governing(repository, pull.head.sha, 'countersign / findings', stage.app);
    expect(annotated?.annotations.map(({ path, start_line }) => [path, start_line]).sort()).toEqual(
      ['bom.ts', ...NAMES.filter((name) => typeof name === 'string')].sort().map((path) => [path, 2]),
    );
    expect(
      annotated?.summary,
      'a name that is no text cannot be annotated, and is said all the same',
    ).toContain('bad\\xff\\xfe.ts:2');
    const claim = await pull.comment(author, '/claim "a b/c d.md"');
    await stage.settle();
    expect(claim.reactions.map((one) => one.content)).toEqual(['eyes', 'rocket']);

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
    const red = await stage.verdict(pull, { until: (run) => run.status === 'completed' });
    expect(red.conclusion).toBe('failure');
    expect(red.summary).toContain('**Coverage** 1 of 1 changed path reviewed.');
    expect(stage.gh.comments(pull), 'no comment about an error that was none').toEqual([]);
  });
});
