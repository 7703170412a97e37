/** The file set of recorded rows under another policy: what changes, what stays, and what rows cannot tell. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { decideFiles, type PairedFile } from '../../../app/domain/file-set.ts';
import { compileGuard } from '../../../app/domain/ownership/guard.ts';
import { type Policy, parsePolicy } from '../../../app/domain/policy.ts';
import { emptyState, type FileFact, type RunState } from '../../../app/domain/run-state/state.ts';
import { redecideFiles } from '../../../app/domain/simulate/redecide.ts';

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

interface Given {
  readonly path: string;
  readonly status?: 'A' | 'M' | 'D';
  readonly from?: string;
  readonly generated?: boolean;
  readonly trailer?: 'L3';
}

/** The files as the App decides them, with all that only git knows: attributes, lines, clauses. */
function decided(policy: Policy, given: readonly Given[], lines = 10): FileFact[] {
  const guarded = compileGuard(policy);
  const attributes = given.filter((one) => one.generated).map((one) => `/${one.path} linguist-generated`);
  const files = given.map(
    ({ path, status = 'M', from }, i): PairedFile => ({
      path,
      status: from === undefined ? status : 'A',
      modeBase: status === 'A' ? null : '100644',
      modeHead: status === 'D' ? null : '100644',
      blobBase: status === 'A' ? null : oid(i + 1),
      blobHead: status === 'D' ? null : oid(i + 101),
      from: from ?? null,
      pair: from !== undefined ? 'edited' : given.some((one) => one.from === path) ? 'old' : null,
    }),
  );
  const owners = new Map(
    given.map(({ path }) => {
      const twin = given.find((one) => one.from === path || (one.path === path && one.from !== undefined));
      const is = [path, twin?.path, twin?.from].some((one) => one !== undefined && guarded(one));
      return [
        path,
        {
          block: is ? 'guarded' : 'b',
          ownership: is ? ('guarded' as const) : ('owned' as const),
          reason: null,
          claim: null,
        },
      ];
    }),
  );
  const trailer = given.some((one) => one.trailer !== undefined) ? ('L3' as const) : null;
  return decideFiles({
    policy,
    files,
    ownership: { owners, contributions: [] },
    blocks: new Map([['b', { docsOnly: false, trailer, clauses: ['it works'] }]]),
    attributes: [{ folder: '', bytes: Buffer.from(attributes.join('\n')) }],
    lines: new Map(files.map((file) => [file.blobHead ?? '', lines])),
    decided: new Map(),
    promptVersion: '1',
  }).map((file) => ({ ...file, seq: 1 }));
}
function stateOf(files: readonly FileFact[], blocks: readonly string[] = ['b']): RunState {
  const state = emptyState();
  for (const file of files) state.files.set(String(file.path), file);
  for (const id of blocks)
    state.blocks.set(id, {
      id,
      title: '',
      kind: 'mixed',
      level: 'L2',
      named: true,
      attempt: 1,
      after: [],
      acceptHuman: [],
      notes: [],
      ended: null,
    } as never);
  return state;
}
const again = (given: readonly Given[], was: Policy, now: Policy, blocks?: readonly string[]) => {
  const files = decided(was, given);
  const { files: after, unknown } = redecideFiles(stateOf(files, blocks), was, now, '1');
  return { before: new Map(files.map((file) => [String(file.path), file])), after, unknown };
};
const ANY: readonly Given[] = [
  { path: 'src/a.ts' },
  { path: 'docs/x.md' },
  { path: 'gone.ts', status: 'D' },
  { path: 'gen/out.js', generated: true },
  { path: 'new/name.ts', from: 'old/name.ts' },
  { path: 'old/name.ts', status: 'D' },
  { path: 'package-lock.json' },
];

describe('GAT-1, BLK-6: recorded files under another policy', () => {
  it('the same policy changes nothing at all, whatever only git knew of them', () => {
    const policy = policyOf('routes: [{when: {lines: {min: 5}}, level: L3}]\n');
    const { before, after } = again([...ANY, { path: 'raised.ts', trailer: 'L3' }], policy, policy);
    expect([...after.values()]).toEqual([...before.values()]);
  });

  it('policies that differ in nothing that files are decided by change nothing either', () => {
    const { before, after, unknown } = again(
      ANY,
      policyOf(),
      policyOf('gate: {block_at: low, deadline: 1h}\nmode: advisory\npeople: {approve: admin}\n'),
    );
    expect([...after.values()]).toEqual([...before.values()]);
    expect([...unknown]).toEqual([]);
  });

  it.each([
    [
      'a route',
      'routes: [{when: {paths: [src/]}, level: L3}]\n',
      'src/a.ts',
      { level: 'L3', ownership: 'owned' },
    ],
    [
      'a route of the old path of a pair',
      'routes: [{when: {paths: [old/]}, level: L3}]\n',
      'new/name.ts',
      { level: 'L3' },
    ],
    [
      'a person',
      'routes: [{when: {paths: [src/]}, human: true}]\n',
      'src/a.ts',
      { human: true, level: 'L2' },
    ],
    ['a class', 'classes: {vendored: [src/]}\n', 'src/a.ts', { level: 'L0', reason: 'vendored', key: null }],
    [
      'a guard',
      'guard: [src/]\n',
      'src/a.ts',
      { level: 'L3', reason: 'guarded', block: 'guarded', ownership: 'guarded' },
    ],
    ['a guard of the old path of a pair', 'guard: [old/]\n', 'new/name.ts', { ownership: 'guarded' }],
    ['a guard of a generated file', 'guard: [gen/]\n', 'gen/out.js', { level: 'L3', ownership: 'guarded' }],
  ])('%s is followed', (_, more, path, what) => {
    expect(again(ANY, policyOf(), policyOf(more)).after.get(path)).toMatchObject(what);
  });

  it('what attributes of the base say stays, whatever routes say', () => {
    const { after } = again(ANY, policyOf(), policyOf('routes: [{when: {paths: ["**"]}, level: L3}]\n'));
    expect(after.get('gen/out.js')).toMatchObject({ level: 'L0', reason: 'generated', key: null });
    expect(after.get('package-lock.json')).toMatchObject({ level: 'L0', reason: 'lockfile' });
    expect(after.get('docs/x.md')).toMatchObject({ level: 'L3' });
  });

  it('TKT-1: a key stays where the question is the same, and is another where it is not', () => {
    const routed = again(ANY, policyOf(), policyOf('routes: [{when: {paths: [src/]}, reviewers: [deep]}]\n'));
    for (const path of ['docs/x.md', 'gone.ts', 'new/name.ts'])
      expect(routed.after.get(path)?.key, path).toBe(routed.before.get(path)?.key);
    expect(routed.after.get('src/a.ts')?.key).not.toBe(routed.before.get('src/a.ts')?.key);
    const lenses = again(ANY, policyOf(), policyOf('review: {lenses: [security]}\n'));
    expect(lenses.after.get('src/a.ts')?.key).not.toBe(lenses.before.get('src/a.ts')?.key);
    const other = again(ANY, policyOf(), policyOf('review: {parallel: 2}\n'));
    expect(other.after.get('src/a.ts')?.key).toBe(other.before.get('src/a.ts')?.key);
  });

  it('a guard that goes leaves a path to its only block, or to one that rows do not name', () => {
    const one = again(ANY, policyOf('guard: [src/a.ts]\n'), policyOf());
    expect(one.after.get('src/a.ts')).toMatchObject({ block: 'b', ownership: 'owned', level: 'L2' });
    expect([...one.unknown]).toEqual([]);
    const two = again(ANY, policyOf('guard: [src/a.ts]\n'), policyOf(), ['b', 'c']);
    expect(two.after.get('src/a.ts')).toMatchObject({ block: 'unowned', ownership: 'owned' });
    expect([...two.unknown]).toEqual(['owner']);
  });

  it('OWN-5: declared ownership makes an orphan of what was claimed by itself, and of nothing else', () => {
    const was = policyOf();
    const files = decided(was, ANY);
    const state = stateOf(files);
    state.claims.set('src/a.ts', { block: 'b', auto: true, seq: 1 });
    state.claims.set('docs/x.md', { block: 'b', auto: false, seq: 1 });
    const { files: after } = redecideFiles(state, was, policyOf('ownership: declared\n'), '1');
    expect(after.get('src/a.ts')).toMatchObject({ block: 'unowned', ownership: 'orphan' });
    expect(after.get('docs/x.md')).toMatchObject({ block: 'b', ownership: 'owned' });
    const orphans = stateOf([...after.values()]);
    const back = redecideFiles(orphans, policyOf('ownership: declared\n'), was, '1').files;
    expect(back.get('src/a.ts')).toMatchObject({ block: 'b', ownership: 'owned' });
  });

  it('a route by lines is named as what rows cannot tell', () => {
    const { unknown, before, after } = again(
      ANY,
      policyOf(),
      policyOf('routes: [{when: {lines: {min: 5}}, level: L3}]\n'),
    );
    expect([...unknown]).toEqual(['lines']);
    expect([...after.values()]).toEqual([...before.values()]);
  });

  it('property: guards, classes and routes come out as if decided afresh, and a policy against itself changes nothing', () => {
    const glob = fc.constantFrom('src/', 'docs/', '**/*.ts', 'gone.ts', 'new/', 'old/', 'gen/', '**');
    const more = fc
      .record({
        guard: fc.array(glob, { maxLength: 2 }),
        generated: fc.array(glob, { maxLength: 2 }),
        routes: fc.array(
          fc.record({
            paths: fc.array(glob, { minLength: 1, maxLength: 2 }),
            level: fc.constantFrom('L1', 'L2', 'L3'),
            human: fc.boolean(),
          }),
          { maxLength: 2 },
        ),
      })
      .map(({ guard, generated, routes }) =>
        stringify({
          guard,
          classes: { generated },
          routes: routes.map(({ paths, level, human }) => ({ when: { paths }, level, human })),
        }),
      );
    fc.assert(
      fc.property(more, more, (one, two) => {
        const [was, now] = [policyOf(one), policyOf(two)];
        const files = decided(was, ANY);
        const there = redecideFiles(stateOf(files), was, now, '1').files;
        expect(there.size).toBe(files.length);
        const guards = compileGuard(now);
        for (const file of there.values()) {
          // BLK-6: a key at every level but L0
          expect(file.key === null).toBe(file.level === 'L0');
          // OWN-8: no guard of the proposed policy is overlooked
          if (guards(file.path)) expect(file.ownership).toBe('guarded');
        }
        const same = redecideFiles(stateOf(files), was, was, '1').files;
        expect([...same.values()]).toEqual(files);
        // levels of a fresh decision under the proposed policy, where attributes said nothing
        const fresh = new Map(decided(now, ANY).map((file) => [String(file.path), file]));
        for (const [path, file] of there)
          if (path !== 'gen/out.js')
            expect([path, file.level, file.ownership, file.human]).toEqual([
              path,
              fresh.get(path)?.level,
              file.ownership === 'guarded' ? file.ownership : fresh.get(path)?.ownership,
              fresh.get(path)?.human,
            ]);
      }),
      { numRuns: 60 },
    );
  });
});
