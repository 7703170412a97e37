/** Kinds, attributes, levels and review keys of a head's files. */
import { describe, expect, it } from 'vitest';
import { compileAttributes } from '../../app/domain/file-set/attributes.ts';
import { kindOf, kindOfBlock } from '../../app/domain/file-set/kind.ts';
import {
  type ChangedFile,
  contentKey,
  decideFiles,
  type FileSetInput,
  filesDigest,
  pairFiles,
} from '../../app/domain/file-set.ts';
import { compileGuard } from '../../app/domain/ownership/guard.ts';
import { decideOwnership } from '../../app/domain/ownership.ts';
import { type Policy, parsePolicy } from '../../app/domain/policy.ts';

function policyOf(more = ''): Policy {
  const parsed = parsePolicy(
    Buffer.from(`version: 1
reviewers:
  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], trusted: true}
  deep: {uses: command, run: [deep, "{path}"], output: sarif, paths: ["**"], deletions: true, trusted: true}
levels: {L1: [lint], L2: [lint], L3: [lint, deep]}
${more}`),
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.policy;
}

const oid = (n: number) => n.toString(16).padStart(40, '0');
const added = (path: string, n = 1): ChangedFile => ({
  path,
  status: 'A',
  modeBase: null,
  modeHead: '100644',
  blobBase: null,
  blobHead: oid(n),
});
const changed = (path: string, base = 1, head = 2): ChangedFile => ({
  ...added(path, head),
  status: 'M',
  modeBase: '100644',
  blobBase: oid(base),
});
const deleted = (path: string, n = 1): ChangedFile => ({
  path,
  status: 'D',
  modeBase: '100644',
  modeHead: null,
  blobBase: oid(n),
  blobHead: null,
});

interface Case {
  files: ChangedFile[];
  renames?: [from: string, to: string][];
  policy?: Policy;
  more?: Partial<FileSetInput>;
  docsOnly?: boolean;
  trailer?: 'L1' | 'L2' | 'L3';
}

function decide({ files, renames = [], policy = policyOf(), more = {}, docsOnly = false, trailer }: Case) {
  const paired = pairFiles(
    files,
    renames.map(([from, to]) => ({ from, to })),
  );
  return decideFiles({
    policy,
    files: paired,
    ownership: decideOwnership({
      mode: 'auto',
      files: paired,
      blocks: [{ id: 'b', entries: [], declares: false }],
      touches: new Map(files.map((file) => [String(file.path), ['b']])),
      claims: new Map(),
      guarded: compileGuard(policy),
    }),
    blocks: new Map([['b', { docsOnly, trailer: trailer ?? null, clauses: [] }]]),
    attributes: [],
    lines: new Map(),
    decided: new Map(),
    promptVersion: '1',
    ...more,
  });
}
const said = (input: Case) =>
  Object.fromEntries(
    decide(input).map((f) => [
      f.path,
      [f.level, f.reason ?? '', f.asked ?? '', f.key === null ? 'no key' : 'key'].join(' '),
    ]),
  );

describe('BLK-6: kinds', () => {
  it.each([
    ['README.md', '100644', 'docs'],
    ['docs/a.txt', '100644', 'docs'],
    ['LICENSE', '100644', 'docs'],
    ['requirements.txt', '100644', 'code'],
    ['CMakeLists.txt', '100644', 'code'],
    ['docs/conf.py', '100644', 'code'],
    ['evil.md', '100755', 'code'],
    ['link.md', '120000', 'code'],
    ['sub.md', '160000', 'code'],
    ['page.mdx', '100644', 'code'],
    ['src/a.test.ts', '100644', 'tests'],
    ['tests/x.py', '100644', 'tests'],
    ['test_x.py', '100644', 'tests'],
    ['package.json', '100644', 'config'],
    ['.npmrc', '100644', 'config'],
    ['.github/workflows/ci.yml', '100644', 'config'],
    ['src/a.ts', '100644', 'code'],
  ])('%s (%s) is %s', (path, mode, kind) => {
    expect(kindOf(path, mode)).toBe(kind);
  });
  it('of a block: one kind, else mixed', () => {
    expect(kindOfBlock(['docs', 'docs'])).toBe('docs');
    expect(kindOfBlock(['docs', 'code'])).toBe('mixed');
    expect(kindOfBlock([])).toBe('mixed');
  });
});

describe('BLK-6: attributes', () => {
  const of = (files: Record<string, string>) =>
    compileAttributes(Object.entries(files).map(([folder, text]) => ({ folder, bytes: Buffer.from(text) })));
  it('the last line of the deepest folder wins; a pattern without a slash is a name at any depth', () => {
    const read = of({
      '': '# note\n*.js linguist-generated\n/dist/** linguist-generated=true\nvendor/** linguist-vendored\n*.bin binary\n*.png -diff\n"a b.ts" linguist-generated\n',
      'src/': '*.js -linguist-generated\nkeep.js linguist-generated\n*.bin diff\n',
    });
    const generated = (path: string) => read(path).generated;
    expect(generated('x/y.js')).toBe(true);
    expect(generated('src/y.js')).toBe(false);
    expect(generated('src/keep.js')).toBe(true);
    expect(generated('dist/a/b')).toBe(true);
    expect(generated('x/dist/a')).toBe(false);
    expect(generated('x/a b.ts')).toBe(true);
    expect(read('vendor/a/b')).toEqual({ generated: false, vendored: true, binary: false });
    expect(read('a.bin').binary).toBe(true);
    expect(read('src/a.bin').binary).toBe(false);
    expect(read('a.png').binary).toBe(true);
  });
  it('what it cannot read makes nothing generated', () => {
    const read = of({
      '': '[attr]mine linguist-generated\n*.ts mine\n!*.ts linguist-generated\n*.c linguist-generated=false\n',
    });
    expect(read('a.ts').generated).toBe(false);
    expect(read('a.c').generated).toBe(false);
  });
});

describe('BLK-6, BLK-7: levels', () => {
  it('standard is L2; docs-only blocks are L1 with what was asked', () => {
    expect(said({ files: [changed('a.ts'), changed('b.md')] })).toEqual({
      'a.ts': 'L2   key',
      'b.md': 'L2   key',
    });
    expect(said({ files: [changed('b.md')], docsOnly: true })).toEqual({ 'b.md': 'L1 docs_floor L2 key' });
    expect(said({ files: [changed('b.md')], docsOnly: true, trailer: 'L3' })).toEqual({
      'b.md': 'L1 docs_floor L3 key',
    });
  });
  it('a trailer raises and never lowers', () => {
    expect(said({ files: [changed('a.ts')], trailer: 'L3' })).toEqual({ 'a.ts': 'L3 raised L2 key' });
    expect(said({ files: [changed('a.ts')], trailer: 'L1' })).toEqual({ 'a.ts': 'L2   key' });
  });
  it('a route decides, also over the floor', () => {
    const policy = policyOf('routes: [{when: {paths: ["*.md"]}, level: L3}]\n');
    expect(said({ files: [changed('b.md')], docsOnly: true, policy })).toEqual({ 'b.md': 'L3   key' });
  });
  it('classes come from the policy and the base', () => {
    const policy = policyOf(
      'classes: {generated: ["gen/"], vendored: ["third/**"], lockfile: ["my.lock"]}\n',
    );
    const files = [changed('gen/a.ts'), changed('third/x.js'), changed('my.lock'), changed('sub/yarn.lock')];
    expect(said({ files, policy })).toEqual({
      'gen/a.ts': 'L0 generated  no key',
      'my.lock': 'L0 lockfile  no key',
      'sub/yarn.lock': 'L0 lockfile  no key',
      'third/x.js': 'L0 vendored  no key',
    });
  });
  it('case 26: a symlink or submodule is a ticket whatever its folder is called', () => {
    const policy = policyOf('classes: {generated: [], vendored: ["vendor/**"], lockfile: []}\n');
    const files = [
      { ...changed('vendor/lib'), modeBase: '160000', modeHead: '160000' },
      { ...added('vendor/link'), modeHead: '120000' },
    ];
    expect(said({ files, policy })).toEqual({ 'vendor/lib': 'L2   key', 'vendor/link': 'L2   key' });
  });
  it('case 18: a move is L0 moved on both sides; with another mode or content it is one ticket', () => {
    expect(
      said({ files: [deleted('old.ts', 5), added('new.ts', 5)], renames: [['old.ts', 'new.ts']] }),
    ).toEqual({
      'new.ts': 'L0 moved  no key',
      'old.ts': 'L0 moved  no key',
    });
    const edited = decide({
      files: [deleted('old.ts', 5), added('new.ts', 6)],
      renames: [['old.ts', 'new.ts']],
    });
    expect(edited).toMatchObject([
      { path: 'new.ts', from: 'old.ts', level: 'L2', blob: { base: oid(5), head: oid(6) } },
      { path: 'old.ts', level: 'L0', reason: 'moved', key: null },
    ]);
    const mode = { ...added('new.ts', 5), modeHead: '100755' };
    expect(said({ files: [deleted('old.ts', 5), mode], renames: [['old.ts', 'new.ts']] })['new.ts']).toBe(
      'L2   key',
    );
  });
  it('what lay in a class is reviewed when it moves out of it', () => {
    const policy = policyOf('classes: {generated: ["gen/"], vendored: [], lockfile: []}\n');
    const move = (from: string, to: string): Case => ({
      files: [deleted(from, 5), added(to, 5)],
      renames: [[from, to]],
      policy,
    });
    expect(said(move('gen/a.ts', 'src/a.ts'))['src/a.ts']).toBe('L2   key');
    expect(said(move('gen/a.ts', 'gen/b.ts'))['gen/b.ts']).toBe('L0 moved  no key');
    const edit = { ...move('src/a.ts', 'gen/a.ts'), files: [deleted('src/a.ts', 5), added('gen/a.ts', 6)] };
    expect(said(edit)['gen/a.ts']).toBe('L2   key');
  });
  it('TKT-5: a deletion that nobody reads is L0 deleted, at L3 somebody does', () => {
    expect(said({ files: [deleted('a.ts')] })).toEqual({ 'a.ts': 'L0 deleted L2 no key' });
    expect(said({ files: [deleted('a.ts')], trailer: 'L3' })).toEqual({ 'a.ts': 'L3 raised L2 key' });
  });
  it('OWN-8: guarded paths are read at the highest level of the policy', () => {
    const files = [changed('.gitattributes'), changed('CLAUDE.md')];
    expect(said({ files, docsOnly: true })).toEqual({
      '.gitattributes': 'L3 guarded  key',
      'CLAUDE.md': 'L3 guarded  key',
    });
    const shallow = policyOf().highest;
    expect(shallow).toBe('L3');
  });
  it('BLK-6: a level decided before is read back, for that content only', () => {
    const [before] = decide({ files: [changed('a.md')], docsOnly: true });
    if (before === undefined) throw new Error('nothing was decided');
    const decided = new Map([
      [
        contentKey(before),
        { level: before.level, asked: 'L2' as const, reason: 'docs_floor', kind: before.kind },
      ],
    ]);
    const more = { decided };
    expect(said({ files: [changed('a.md')], more })).toEqual({ 'a.md': 'L1 docs_floor L2 key' });
    expect(said({ files: [changed('a.md', 1, 3)], more })).toEqual({ 'a.md': 'L2   key' });
  });
});

describe('TKT-1: review keys', () => {
  it('hold the content, the level and at L3 the rest of the block', () => {
    const [a1] = decide({ files: [changed('a.ts'), changed('b.ts', 1, 2)] });
    const [a2] = decide({ files: [changed('a.ts'), changed('b.ts', 1, 3)] });
    expect(a1?.key).toBe(a2?.key);
    const [d1] = decide({ files: [changed('a.ts'), changed('b.ts', 1, 2)], trailer: 'L3' });
    const [d2] = decide({ files: [changed('a.ts'), changed('b.ts', 1, 3)], trailer: 'L3' });
    expect(d1?.key).not.toBe(a1?.key);
    expect(d1?.key).not.toBe(d2?.key);
  });
  it('a path that no reviewer reads has a key, so that its ticket can end route_invalid', () => {
    const policy = policyOf().reviewers;
    expect(policy.size).toBe(2);
    const narrow = parsePolicy(
      Buffer.from(
        'version: 1\nreviewers:\n  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["*.ts"], trusted: true}\n',
      ),
    );
    if (!narrow.ok) throw new Error('no policy');
    expect(said({ files: [changed('a.py')], policy: narrow.policy })).toEqual({ 'a.py': 'L2   key' });
  });
});

it('GIT-4: the digest of a file set is over sorted path bytes', () => {
  expect(filesDigest(['b', 'a'])).toBe(filesDigest(['a', 'b']));
  expect(filesDigest(['a', 'b'])).not.toBe(filesDigest(['ab']));
  expect(filesDigest([{ b64: Buffer.from([0xff]).toString('base64') }])).not.toBe(filesDigest(['ÿ']));
});

it('RND-2: the round of a block at L3 raises what is reviewed at all, and what L3 can read', () => {
  const files = [changed('src/a.ts'), changed('gen/b.ts')];
  const deep = { blocks: new Map([['b', { docsOnly: false, trailer: null, clauses: [], deep: true }]]) };
  const policy = policyOf('classes: {generated: [gen/**]}\n');
  expect(said({ files, policy, more: deep })).toEqual({
    'src/a.ts': 'L3 rounds L2 key',
    'gen/b.ts': 'L0 generated  no key',
  });
  const nobody = policyOf('routes: [{when: {paths: [src/**]}, level: L3}]\n');
  expect(said({ files: [changed('src/a.ts')], policy: nobody, more: deep })).toEqual({
    'src/a.ts': 'L3   key',
  });
});

describe('ADM-3: review.adaptive', () => {
  const on = policyOf('review: {adaptive: on}\n');
  const history = new Set(['a.ts', 'old.ts', 'doc.md', 'gen.ts', 'CLAUDE.md']);
  const levels = (input: Case) => said({ ...input, more: { history, ...input.more } });

  it('a path with a history rises by one, of a pair also the old path, and nothing else does', () => {
    const files = [
      changed('a.ts'),
      changed('b.ts', 3, 4),
      changed('doc.md', 5, 6),
      added('new.ts', 8),
      deleted('old.ts', 7),
    ];
    const given: Case = { files, renames: [['old.ts', 'new.ts']], policy: on };
    expect(levels(given)).toMatchObject({
      'a.ts': 'L3 history L2 key',
      'b.ts': 'L2   key',
      'doc.md': 'L3 history L2 key',
      'new.ts': 'L3 history L2 key',
    });
    expect(levels({ files: [changed('doc.md')], docsOnly: true, policy: on })).toEqual({
      'doc.md': 'L2 history L1 key',
    });
    expect(levels({ ...given, policy: policyOf() })['a.ts'], 'off').toBe('L2   key');
  });

  it('never lowers: L3 stays, what is not reviewed or guarded stays, and a level that nobody reads is none', () => {
    expect(levels({ files: [changed('a.ts')], trailer: 'L3', policy: on })['a.ts']).toBe('L3 raised L2 key');
    const guarded = levels({ files: [changed('CLAUDE.md')], policy: on })['CLAUDE.md'];
    expect(guarded).toBe('L3 guarded  key');
    const generated = policyOf('review: {adaptive: on}\nclasses: {generated: [gen.ts]}\n');
    expect(levels({ files: [changed('gen.ts')], policy: generated })['gen.ts']).toBe('L0 generated  no key');
    const narrow = parsePolicy(
      Buffer.from(`version: 1
reviewers:
  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], trusted: true}
  py: {uses: command, run: [py, "{path}"], output: sarif, paths: ["**/*.py"], trusted: true}
levels: {L1: [lint], L2: [lint], L3: [py]}
review: {adaptive: on}
`),
    );
    if (!narrow.ok) throw new Error('not valid');
    expect(levels({ files: [changed('a.ts')], policy: narrow.policy })['a.ts']).toBe('L2   key');
  });

  it('is asked once for a content: what was decided before stands, with a history or without', () => {
    const file = changed('a.ts');
    const [decided] = decide({ files: [file], policy: on });
    if (decided === undefined) throw new Error('no file');
    const before = new Map([
      [contentKey(decided), { level: 'L2' as const, asked: null, reason: null, kind: decided.kind }],
    ]);
    expect(levels({ files: [file], policy: on, more: { decided: before } })['a.ts']).toBe('L2   key');
    expect(levels({ files: [changed('a.ts', 1, 9)], policy: on, more: { decided: before } })['a.ts']).toBe(
      'L3 history L2 key',
    );
  });
});
