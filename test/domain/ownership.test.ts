/** Owned entries, who owns a path, what is guarded: tables and properties. */
import * as fc from 'fast-check';
import picomatch from 'picomatch';
import { describe, expect, it } from 'vitest';
import { entryFault } from '../../app/domain/ownership/entry.ts';
import { compileGuard } from '../../app/domain/ownership/guard.ts';
import { compileDeclarations } from '../../app/domain/ownership/match.ts';
import {
  claimRefusal,
  decideOwnership,
  foldClaims,
  linkPaths,
  type OwnedFile,
  type OwnershipInput,
} from '../../app/domain/ownership.ts';
import { encodePath, pathKey, type WirePath } from '../../app/domain/path.ts';
import { parsePolicy } from '../../app/domain/policy.ts';
import { cpuNow } from '../helpers/cpu.ts';

const file = (path: WirePath, more: Partial<OwnedFile> = {}): OwnedFile => ({
  path,
  from: null,
  modeBase: '100644',
  modeHead: '100644',
  ...more,
});

function decide(input: Partial<OwnershipInput> & { touch?: Record<string, string[]> }) {
  const { touch = {}, files = Object.keys(touch).map((path) => file(path)), ...rest } = input;
  const owned = decideOwnership({
    mode: 'auto',
    files,
    blocks: [],
    touches: new Map(Object.entries(touch)),
    claims: new Map(),
    guarded: () => false,
    ...rest,
  });
  return {
    ...owned,
    said: Object.fromEntries(
      [...owned.owners].map(([path, owner]) => [
        path,
        `${owner.block} ${owner.ownership}${owner.claim === null ? '' : ` claims ${owner.claim.entry}`}`,
      ]),
    ),
  };
}

const block = (id: string, ...entries: string[]) => ({ id, entries, declares: entries.length > 0 });
const words = (...list: [block: string, claimed: boolean, auto: boolean][]) =>
  new Map(list.map(([id, claimed, auto], seq) => [id, { claimed, auto, seq }]));

describe('OWN-1: entries', () => {
  it.each([
    ['src/a.ts', null],
    ['src/', null],
    ['src/**/*.ts', null],
    ['docs/{a,b}.md', null],
    ['', 'is empty'],
    ['/abs', 'is absolute'],
    ['!src', 'is negated'],
    ['a/!(b)', 'is negated'],
    ['a//b', 'empty segment'],
    ['a/../b', '".."'],
    ['./a', '"."'],
    ['a\\b', 'backslash'],
    ['a\u0000b', 'control character'],
    ['a\nb', 'control character'],
    ['a /b', 'space'],
    [' a', 'space'],
    ['x'.repeat(4097), '4,096'],
    ['**/*a*a*a*b', 'too many wildcards'],
    ['**/**/**/a', 'too many wildcards'],
    ['{a,aa}{a,aa}{a,aa}b', 'too many wildcards'],
    ['a**b', 'inside a segment'],
  ])('attack 32: %j %s', (entry, fault) => {
    if (fault === null) expect(entryFault(entry)).toBeNull();
    else expect(entryFault(entry)).toContain(fault);
  });

  it('attack 32: twins of a path by case, normal form or white space are other paths', () => {
    const owners = compileDeclarations([{ block: 'b', entries: ['src/é.ts', 'Src/a'] }]);
    expect(owners('src/é.ts')).toEqual(['b']);
    expect(owners('src/é.ts'.normalize('NFD'))).toEqual([]);
    expect(owners('src/a')).toEqual([]);
    expect(owners('Src/a ')).toEqual([]);
    expect(owners('Src/a.')).toEqual([]);
  });

  it('attack 32: a line feed in a name does not slip past a glob', () => {
    const owners = compileDeclarations([{ block: 'b', entries: ['src/**', 'lib/*.{ts,js}'] }]);
    expect(owners('src/a\nb/c')).toEqual(['b']);
    expect(owners('lib/a\nb.ts')).toEqual(['b']);
  });

  it('OWN-2: a file owns only itself, a directory only what lies in it', () => {
    const owners = compileDeclarations([
      { block: 'f', entries: ['src'] },
      { block: 'd', entries: ['src/'] },
    ]);
    expect(owners('src')).toEqual(['f']);
    expect(owners('src/x')).toEqual(['d']);
    expect(owners('srcx')).toEqual([]);
  });

  it('OWN-1: the automaton finds what picomatch finds', () => {
    const segment = fc.constantFrom(
      'a',
      'b',
      'ab',
      '*',
      '*.ts',
      'a*',
      '*b',
      'a*b',
      '?',
      '[ab]',
      '{a,b}',
      '*.{ts,b}',
      '.a',
      '*a*',
      '*a*b',
      'a*b*',
      '{a*,*b}',
      '{a,b}{b,.ts}',
      '*.*',
    );
    const pattern = fc
      .array(fc.oneof({ weight: 4, arbitrary: segment }, { weight: 1, arbitrary: fc.constant('**') }), {
        minLength: 1,
        maxLength: 5,
      })
      .map((list) => list.join('/'))
      .filter((text) => !text.includes('**/**'));
    const path = fc
      .array(fc.constantFrom('a', 'b', 'ab', 'aab', 'x.ts', '.ts', '.a', 'c', 'a.b'), {
        minLength: 1,
        maxLength: 5,
      })
      .map((list) => list.join('/'));
    fc.assert(
      fc.property(fc.array(pattern, { minLength: 1, maxLength: 8 }), path, (entries, text) => {
        const owners = compileDeclarations(entries.map((entry, i) => ({ block: `${i}`, entries: [entry] })));
        const want = entries.flatMap((entry, i) =>
          picomatch(entry, { dot: true, noextglob: true, nonegate: true })(text) ? [`${i}`] : [],
        );
        expect(owners(text)).toEqual(want);
      }),
      { numRuns: 3000 },
    );
  });

  it('OWN-1: what reaches over a slash is matched whole', () => {
    const owners = compileDeclarations([{ block: 'b', entries: ['{src/a,lib}/x.ts', 'p/{q,r/s}/**'] }]);
    expect(owners('src/a/x.ts')).toEqual(['b']);
    expect(owners('lib/x.ts')).toEqual(['b']);
    expect(owners('p/r/s/t')).toEqual(['b']);
    expect(owners('p/r/t')).toEqual([]);
  });

  it('attack 32: the worst allowed glob on the worst path ends soon', () => {
    const entry = '**/*a*b';
    expect(entryFault(entry)).toBeNull();
    const owners = compileDeclarations([{ block: 'b', entries: [entry] }]);
    const start = cpuNow();
    expect(owners('a'.repeat(4096))).toEqual([]);
    expect(owners('a/'.repeat(2047))).toEqual([]);
    expect(cpuNow() - start).toBeLessThan(2000);
  });
});

describe('OWN-3, OWN-4, OWN-5: owners', () => {
  it('OWN-4: without Owns the first block owns, later ones contribute', () => {
    const { said, contributions } = decide({
      blocks: [block('one'), block('two')],
      touch: { a: ['one', 'two'], b: ['two'] },
    });
    expect(said).toEqual({ a: 'one owned', b: 'two owned' });
    expect(contributions).toEqual([{ block: 'two', to: 'one', paths: ['a'] }]);
  });

  it('OWN-4: changed by one, declared by another: unowned change, even when both change it', () => {
    const { said } = decide({
      blocks: [block('one', 'src/'), block('two')],
      touch: { 'src/a': ['two'], 'src/b': ['one', 'two'], 'src/c': ['one'] },
    });
    expect(said).toEqual({
      'src/a': 'unowned unowned_change',
      'src/b': 'unowned unowned_change',
      'src/c': 'one owned',
    });
  });

  it('OWN-3: two declarations of a changed path overlap; of an unchanged one they do not matter', () => {
    const { said } = decide({
      blocks: [block('one', 'src/**'), block('two', 'src/a', 'src/b')],
      touch: { 'src/a': ['two'], 'src/c': ['one'] },
    });
    expect(said).toEqual({ 'src/a': 'unowned overlap', 'src/c': 'one owned' });
  });

  it('OWN-5: outside of the declared entries it is claimed, unless it must not be', () => {
    const touch = {
      x: ['one'],
      '.Git/x': ['one'],
      'a/.countersign/x': ['one'],
      link: ['one'],
      'link/below': ['one'],
      sub: ['one'],
      gone: ['one'],
    };
    const files = Object.keys(touch).map((path) =>
      file(path, {
        ...(path === 'link' ? { modeBase: '120000', modeHead: null } : {}),
        ...(path === 'sub' ? { modeHead: '160000' } : {}),
        ...(path === 'gone' ? { modeHead: null } : {}),
      }),
    );
    const { said } = decide({ blocks: [block('one', 'src/')], touch, files });
    expect(said).toEqual({
      x: 'one owned claims file',
      '.Git/x': 'unowned unowned_change',
      'a/.countersign/x': 'unowned unowned_change',
      link: 'unowned unowned_change',
      'link/below': 'unowned unowned_change',
      sub: 'unowned unowned_change',
      gone: 'one owned claims absent',
    });
  });

  it('OWN-4: ownership declared makes it an orphan', () => {
    const { said } = decide({ mode: 'declared', blocks: [block('one', 'src/')], touch: { x: ['one'] } });
    expect(said).toEqual({ x: 'unowned orphan' });
  });

  it('OWN-5: what another open block owns is not claimed', () => {
    const { said } = decide({ blocks: [block('one'), block('two', 'src/')], touch: { x: ['one', 'two'] } });
    expect(said).toEqual({ x: 'unowned unowned_change' });
  });

  it('OWN-3: a change that no commit leads to is named', () => {
    expect(decide({ blocks: [block('one')], touch: { x: [] } }).said).toEqual({ x: 'unowned orphan' });
  });

  it('OWN-6, OWN-7: a claim of a person settles, an own one is kept, a release ends it', () => {
    const blocks = [block('one', 'src/'), block('two')];
    const touch = { 'src/a': ['two'] };
    const claimed = (claims: OwnershipInput['claims']) => decide({ blocks, touch, claims }).said['src/a'];
    expect(claimed(new Map([['src/a', words(['one', false, false], ['two', true, false])]]))).toBe(
      'two owned',
    );
    expect(claimed(new Map([['src/a', words(['two', true, true])]]))).toBe('unowned overlap');
    expect(claimed(new Map([['src/a', words(['dropped', true, false])]]))).toBe('unowned unowned_change');
    expect(claimed(new Map([['src/a', words(['one', false, false], ['two', false, false])]]))).toBe(
      'unowned unowned_change',
    );
    // a release takes a path out of what its block declares (OWN-6)
    const released = new Map([['src/a', words(['one', false, false])]]);
    expect(claimed(released)).toBe('two owned');
    expect(decide({ blocks, touch: { 'src/a': ['one'] }, claims: released }).said['src/a']).toBe(
      'unowned unowned_change',
    );
    const kept = decide({
      blocks: [block('one', 'src/'), block('two')],
      touch: { x: ['one', 'two'] },
      claims: new Map([['x', words(['one', true, true])]]),
    });
    expect(kept.said).toEqual({ x: 'one owned' });
    expect(kept.contributions).toEqual([{ block: 'two', to: 'one', paths: ['x'] }]);
  });

  it('OWN-1, OWN-5: a claim that is read back is held to its rules again: what became a link or a guarded path is not owned by it', () => {
    const blocks = [block('one', 'src/'), block('two')];
    const said = (auto: boolean, more: Partial<OwnedFile>, guarded = false) =>
      decide({
        blocks,
        files: [file('lib/a', more)],
        touch: { 'lib/a': ['one'] },
        claims: new Map([['lib/a', words(['one', true, auto])]]),
        guarded: () => guarded,
      }).said['lib/a'];
    for (const auto of [true, false]) {
      expect(said(auto, {})).toBe('one owned');
      expect(said(auto, { modeHead: '120000' })).toBe('unowned unowned_change');
      expect(said(auto, { modeHead: '160000' })).toBe('unowned unowned_change');
      expect(said(auto, {}, true)).toBe('guarded guarded');
    }
    const behind = decide({
      blocks,
      files: [file('lib/a'), file('lib', { modeHead: '120000' })],
      touch: { 'lib/a': ['two'], lib: ['two'] },
      claims: new Map([['lib/a', words(['one', true, false])]]),
    });
    expect(behind.said).toEqual({ 'lib/a': 'two owned', lib: 'two owned' });
  });

  it('OWN-6: the last row of each block and path counts', () => {
    const claims = foldClaims([
      {
        kind: 'block.claimed',
        seq: 1,
        data: { block: 'a', path: 'x', entry: 'file', auto: true, reason: 'r' },
      },
      { kind: 'decision', seq: 2, data: {} },
      { kind: 'block.released', seq: 3, data: { block: 'a', path: 'x', reason: 'r' } },
      {
        kind: 'block.claimed',
        seq: 4,
        data: { block: 'b', path: 'x', entry: 'file', auto: false, reason: 'r' },
      },
    ]);
    expect([...(claims.get('x') ?? [])]).toEqual([
      ['a', { claimed: false, auto: false, seq: 3 }],
      ['b', { claimed: true, auto: false, seq: 4 }],
    ]);
  });

  it('OWN-9: a guard of the old path guards the pair', () => {
    const { said } = decide({
      blocks: [block('one')],
      touch: { new: ['one'] },
      files: [file('new', { from: 'secret' })],
      guarded: (path) => path === 'secret',
    });
    expect(said).toEqual({ new: 'guarded guarded' });
  });

  it('OWN-9: what becomes a guarded path is guarded where it was, and each side keeps its own owner', () => {
    const renamed = [file('docs/x', { modeHead: null }), file('CLAUDE.md', { from: 'docs/x' })];
    const blocks = [block('one', 'docs/'), block('two')];
    const touch = { 'docs/x': ['two'], 'CLAUDE.md': ['two'] };
    const guarded = (path: WirePath) => path === 'CLAUDE.md';
    expect(decide({ blocks, touch, files: renamed, guarded }).said).toEqual({
      'docs/x': 'guarded guarded',
      'CLAUDE.md': 'guarded guarded',
    });
    // no guard: the old path is still declared by another block, the new one by nobody
    expect(decide({ blocks, touch, files: renamed }).said).toEqual({
      'docs/x': 'unowned unowned_change',
      'CLAUDE.md': 'two owned',
    });
  });

  it('OWN-3: every changed path has exactly one owner or a name for why not', () => {
    const paths = ['a', 'src/a', 'src/b/c', 'docs/x.md', '.git/x', 'lib/y', 'lib'];
    const entries = fc.subarray(['src/', 'src/**', 'lib', '**/*.md', 'docs/x.md', 'a']);
    const ids = ['one', 'two', 'three'];
    const input = fc.record({
      mode: fc.constantFrom('auto' as const, 'declared' as const),
      entries: fc.tuple(entries, entries, entries),
      touches: fc.array(fc.subarray(ids), { minLength: paths.length, maxLength: paths.length }),
      modes: fc.array(fc.constantFrom('100644', '120000', '160000', null), {
        minLength: paths.length,
        maxLength: paths.length,
      }),
      claims: fc.array(
        fc.tuple(fc.constantFrom(...paths), fc.constantFrom(...ids, 'gone'), fc.boolean(), fc.boolean()),
      ),
      guards: fc.subarray(paths),
    });
    fc.assert(
      fc.property(input, ({ mode, entries: lists, touches, modes, claims, guards }) => {
        const blocks = ids.map((id, i) => block(id, ...(lists[i] ?? [])));
        const folded = new Map<string, Map<string, { claimed: boolean; auto: boolean; seq: number }>>();
        claims.forEach(([path, id, claimed, auto], seq) => {
          const known = folded.get(path) ?? new Map();
          folded.set(path, known.set(id, { claimed, auto: claimed && auto, seq }));
        });
        const files = paths.map((path, i) => file(path, { modeHead: modes[i] ?? null }));
        const { owners } = decideOwnership({
          mode,
          files,
          blocks,
          touches: new Map(paths.map((path, i) => [path, touches[i] ?? []])),
          claims: folded,
          guarded: (path) => guards.includes(String(path)),
        });
        expect([...owners.keys()].sort()).toEqual([...paths].sort());
        for (const [path, owner] of owners) {
          expect(owner.ownership === 'owned').toBe(ids.includes(owner.block));
          expect(owner.ownership === 'guarded').toBe(guards.includes(path));
          expect(owner.reason === null).toBe(owner.block !== 'unowned');
          if (owner.claim !== null) {
            // never on the grounds of OWN-5, and never twice
            expect(claimRefusal(files[paths.indexOf(path)] as OwnedFile, linkPaths(files))).toBeNull();
            expect(folded.get(path)?.get(owner.block)?.claimed).not.toBe(true);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('OWN-8: guards', () => {
  const parsed = parsePolicy(
    Buffer.from(`version: 1
guard: ["infra/**", "schema.sql"]
pools: [{kind: workflow, workflow: review.yml}]
reviewers:
  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], config: [tools/lint.cfg], trusted: true}
`),
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const guarded = compileGuard(parsed.policy);
  it.each([
    ['.github/countersign.yml', true],
    ['.github/Countersign.yaml', true],
    ['.github/workflows/review.yml', true],
    ['.github/workflows/other.yml', false],
    ['CODEOWNERS', true],
    ['docs/CODEOWNERS', true],
    ['CLAUDE.md', true],
    ['pkg/claude.MD', true],
    ['AGENTS.md', true],
    ['.claude/settings.json', true],
    ['x/.codex/y', true],
    ['.mcp.json', true],
    ['.gitattributes', true],
    ['web/.eslintrc.cjs', true],
    ['eslint.config.mjs', true],
    ['biome.json', true],
    ['tools/lint.cfg', true],
    ['infra/a\nb', true],
    ['infra/x/y', true],
    ['schema.sql', true],
    ['src/schema.sql', false],
    ['src/agents.ts', false],
    // case, and what file systems drop, make no other path
    ['Infra/x', true],
    ['SCHEMA.SQL', true],
    ['.GitHub/Workflows/Review.YML', true],
    ['.github/COUNTERSIGN.YML', true],
    ['CodeOwners', true],
    ['pkg/Claude.md. ', true],
    ['.Claude\u200d/settings.json', true],
    ['AGENTS.md:stream', true],
    ['tools/LINT.cfg', true],
    // AI tools
    ['GEMINI.md', true],
    ['.cursor/rules/a.mdc', true],
    ['.cursorrules', true],
    ['.windsurf/rules', true],
    ['.clinerules/one.md', true],
    ['.aider.conf.yml', true],
    ['.github/copilot-instructions.md', true],
    ['.github/instructions/ts.instructions.md', true],
    ['.github/prompts/fix.prompt.md', true],
    ['.claude-plugin/plugin.json', true],
    ['.vscode/mcp.json', true],
    ['opencode.json', true],
    ['.kiro/steering/x.md', true],
    ['.coderabbit.yaml', true],
    // linters and scanners
    ['.golangci.yml', true],
    ['.stylelintrc.json', true],
    ['.markdownlint-cli2.jsonc', true],
    ['rust/clippy.toml', true],
    ['.clang-tidy', true],
    ['phpstan.neon', true],
    ['.semgrep/rules.yml', true],
    ['.gitleaks.toml', true],
    ['.pre-commit-config.yaml', true],
    // near misses
    ['docs/instructions/x.md', false],
    ['src/claude.ts', false],
    ['claude.md/x', false],
    ['my.cursorrules', false],
    ['infrared/x', false],
    ['package.json', false],
    ['README.md', false],
  ])('%j is guarded: %s', (path, want) => {
    expect(guarded(path)).toBe(want);
  });
  it('OWN-8, attack 32: no case of letters and no dropped character takes a path out from under its guard', () => {
    const drops = ['', '\u200c', '\u200d', '\ufeff', '\u202e'];
    const twist = fc
      .array(fc.tuple(fc.boolean(), fc.constantFrom(...drops)), { minLength: 40, maxLength: 40 })
      .map(
        (list) => (path: string) =>
          [...path]
            .map((char, i) => `${list[i % 40]?.[0] ? char.toUpperCase() : char}${list[i % 40]?.[1] ?? ''}`)
            .join(''),
      );
    const paths = ['CLAUDE.md', 'x/.claude/y', '.github/workflows/review.yml', 'infra/a/b', 'schema.sql'];
    fc.assert(
      fc.property(twist, fc.constantFrom(...paths), (turn, path) => {
        expect(guarded(turn(path))).toBe(true);
      }),
    );
  });
  it('OWN-5, attack 32: .git in any spelling that a file system takes for it is never claimed', () => {
    for (const text of [
      '.git/x',
      '.GIT/x',
      'a/.Git',
      '.g\u200cit/config',
      '.git. /x',
      '.git::$INDEX/x',
      'GIT~1/x',
    ]) {
      expect(claimRefusal(file(text), new Set()), text).toBe('it lies in .git or .countersign');
    }
    for (const text of ['.gitignore', 'git/x', '.github/x', 'a.git/x', '.gitx/y'])
      expect(claimRefusal(file(text), new Set()), text).toBeNull();
  });
  it('a name that is no UTF-8 is guarded by its folder', () => {
    const path = encodePath(Buffer.concat([Buffer.from('infra/'), Buffer.from([0xff])]));
    expect(typeof path).toBe('object');
    expect(guarded(path)).toBe(true);
    expect(pathKey(path)).toBe('infra/\u00ff');
  });
});
