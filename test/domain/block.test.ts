/** Commits to blocks: ids that stay, attempts, joins, trailers. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Block, type BlockCommit, mapBlocks, type PriorBlock, slugOf } from '../../app/domain/block.ts';
import { cpuNow } from '../helpers/cpu.ts';

let serial = 0;
function commit(
  message: string,
  more: Partial<BlockCommit> & { files?: string[]; block?: Record<string, string[]> } = {},
): BlockCommit {
  const { files = [`f${serial}`], block = {}, ...rest } = more;
  serial++;
  return {
    oid: serial.toString(16).padStart(40, '0'),
    parents: ['0'.repeat(40)],
    authorEmail: 'a@x.test',
    authorTime: 1000 + serial,
    message,
    trailers: Object.entries(block).flatMap(([key, values]) => values.map((value) => ({ key, value }))),
    changes: files.map((path) => ({
      path,
      modeBase: null,
      modeHead: '100644',
      blobBase: null,
      blobHead: path,
    })),
    ...rest,
  };
}

const prior = (blocks: readonly Block[], open = true): PriorBlock[] =>
  blocks.map((b) => ({ ...b, open, seed: b.seed }));
const ids = (blocks: readonly Block[]) => blocks.map((b) => `${b.id}:${b.commits.length}`);

describe('BLK-2: identity', () => {
  it('one commit is one block, named by its subject', () => {
    expect(
      ids(mapBlocks([commit('Add login page'), commit('Ünïcode: ok?'), commit('🐧'), commit('guarded')], [])),
    ).toEqual(['add-login-page:1', 'unicode-ok:1', expect.stringMatching(/^[0-9a-f]{7}:1$/), 'guarded-2:1']);
  });

  it('a Block trailer groups; its name is chosen before subjects take it', () => {
    const blocks = mapBlocks(
      [
        commit('login'),
        commit('a', { block: { Block: ['login'] } }),
        commit('b', { block: { Block: ['login'] } }),
      ],
      [],
    );
    expect(ids(blocks)).toEqual(['login-2:1', 'login:2']);
    expect(blocks[1]).toMatchObject({ named: true, title: 'a' });
  });

  it('fixup!, squash!, amend! and reverts join their target, also through each other', () => {
    const one = commit('One');
    const two = commit('Two');
    const blocks = mapBlocks(
      [
        one,
        two,
        commit('fixup! One'),
        commit('squash! fixup! One'),
        commit(`amend! ${two.oid.slice(0, 40)}`),
        commit(`Revert "Two"\n\nThis reverts commit ${two.oid}.`),
        commit('fixup! Unknown'),
        commit(`Revert "Old"\n\nThis reverts commit ${'f'.repeat(40)}`),
      ],
      [],
    );
    expect(ids(blocks)).toEqual(['one:3', 'two:3', 'fixup-unknown:1', 'revert-old:1']);
  });

  it('a rebase keeps ids by diff, a reworded edit by author and time, in that order', () => {
    const a = commit('A', { files: ['a'] });
    const b = commit('B', { files: ['b'] });
    const first = mapBlocks([a, b], []);
    const rebased = mapBlocks(
      [
        // same diff, other subject and time
        commit('A, better said', { files: ['a'] }),
        // same author, time and subject, other diff
        { ...commit('B', { files: ['b', 'c'] }), authorTime: b.authorTime },
      ],
      prior(first),
    );
    expect(rebased.map((x) => [x.id, x.identity, x.attempt])).toEqual(
      first.map((x) => [x.id, x.identity, 2]),
    );
    expect(rebased[0]?.title).toBe('A, better said');
  });

  it('two commits of one author, second and subject keep their order', () => {
    const twins = () => [1, 2].map((n) => commit('wip', { authorTime: 5, files: [`t${serial}-${n}`] }));
    const first = mapBlocks(twins(), []);
    expect(ids(first)).toEqual(['wip:1', 'wip-2:1']);
    expect(mapBlocks(twins(), prior(first)).map((x) => x.id)).toEqual(['wip', 'wip-2']);
  });

  it('an id that was taken stays taken', () => {
    const first = mapBlocks([commit('Same', { files: ['x'] })], []);
    const next = mapBlocks([commit('Same', { files: ['y'], authorEmail: 'b@x.test' })], prior(first, false));
    expect(ids(next)).toEqual(['same-2:1']);
  });
});

describe('BLK-4: attempts', () => {
  const [one, two, three] = [commit('1'), commit('2'), commit('3')];
  const named = (...list: BlockCommit[]) =>
    list.map((c) => ({ ...c, trailers: [{ key: 'block', value: 'x' }] }));
  const first = mapBlocks(named(one, two), []);
  it.each([
    ['the same commits', [one, two], 1],
    ['a commit on top', [one, two, three], 1],
    ['a commit dropped', [one], 1],
    ['a commit replaced', [one, three], 2],
  ])('%s', (_, list, attempt) => {
    expect(mapBlocks(named(...list), prior(first))[0]).toMatchObject({ id: 'x', attempt, known: 'open' });
  });
  it('a dropped block comes back as itself', () => {
    expect(mapBlocks(named(one, two), prior(first, false))[0]).toMatchObject({
      id: 'x',
      attempt: 1,
      known: 'dropped',
    });
  });
});

describe('BLK-2, BLK-4: rewrites', () => {
  const known = (blocks: readonly Block[], ...before: (readonly Block[])[]): PriorBlock[] =>
    prior(blocks).map((one) => ({
      ...one,
      past: [...before, blocks].flatMap((list) =>
        list.flatMap((b) => (b.identity === one.identity ? [...b.commits] : [])),
      ),
    }));
  const again = (one: BlockCommit, more: Partial<BlockCommit> = {}): BlockCommit => ({
    ...one,
    ...more,
    oid: commit('').oid,
  });
  const shown = (blocks: readonly Block[]) => blocks.map((b) => `${b.id}:${b.commits.length} #${b.attempt}`);
  const a = commit('Add a', { files: ['a'] });
  const b = commit('Add b', { files: ['b'] });
  const c = commit('Add c', { files: ['c'] });
  const first = mapBlocks([a, b, c], []);
  const both = [...a.changes, ...b.changes];

  it.each<[string, BlockCommit[], string[]]>([
    [
      'a rebase: the same diffs under other ids',
      [again(a), again(b), again(c)],
      ['add-a:1 #2', 'add-b:1 #2', 'add-c:1 #2'],
    ],
    ['a reorder', [again(c), again(a), again(b)], ['add-c:1 #2', 'add-a:1 #2', 'add-b:1 #2']],
    [
      'an amend of one',
      [a, again(b, { changes: [...b.changes, ...c.changes] }), again(c)],
      ['add-a:1 #1', 'add-b:1 #2', 'add-c:1 #2'],
    ],
    [
      'a reword of one',
      [a, b, again(c, { message: 'Say c better' })],
      ['add-a:1 #1', 'add-b:1 #1', 'add-c:1 #2'],
    ],
    [
      'a squash of two keeps the first',
      [again(a, { changes: both }), again(c)],
      ['add-a:1 #2', 'add-c:1 #2'],
    ],
    [
      'a split keeps the half that kept its words',
      [
        again(a, { changes: [] }),
        again(a, { authorTime: 9, message: 'Rest of a', changes: both }),
        again(b),
        again(c),
      ],
      ['add-a:1 #2', 'rest-of-a:1 #1', 'add-b:1 #2', 'add-c:1 #2'],
    ],
    ['one dropped', [a, c], ['add-a:1 #1', 'add-c:1 #1']],
    ['all replaced by others', [commit('New', { files: ['n'] })], ['new:1 #1']],
    [
      'a fixup squashed into its target',
      [a, again(b, { changes: [] }), again(c)],
      ['add-a:1 #1', 'add-b:1 #2', 'add-c:1 #2'],
    ],
  ])('BLK-2, BLK-4: %s', (_, commits, want) => {
    expect(shown(mapBlocks(commits, known(first)))).toEqual(want);
  });

  it('BLK-2: a revert names an id of before the rebase, and joins its target’s block all the same', () => {
    const undo = commit(`Revert "Add b"\n\nThis reverts commit ${b.oid}.`, { files: ['b undone'] });
    const before = mapBlocks([a, b, undo], known(first));
    expect(shown(before)).toEqual(['add-a:1 #1', 'add-b:2 #1']);
    const after = mapBlocks([again(a), again(b), again(undo)], known(before, first));
    expect(shown(after)).toEqual(['add-a:1 #2', 'add-b:2 #2']);
    expect(after[1]?.identity).toBe(before[1]?.identity);
    // its commits stay in the order of the head, whichever comes first
    const turned = mapBlocks([again(undo), again(a), again(b)], known(before, first));
    expect(shown(turned)).toEqual(['add-b:2 #2', 'add-a:1 #2']);
    // without its target it is a block of its own
    expect(shown(mapBlocks([again(a), again(undo)], known(before, first)))).toEqual([
      'add-a:1 #2',
      'revert-add-b:1 #1',
    ]);
  });

  it('BLK-2: fixup! by an id of before a rebase joins, one of a commit that was never here does not', () => {
    const fix = commit(`fixup! ${c.oid.slice(0, 40)}`, { files: ['c'] });
    expect(shown(mapBlocks([again(a), again(c), fix], known(first)))).toEqual(['add-a:1 #2', 'add-c:2 #2']);
    const other = commit(`fixup! ${'e'.repeat(40)}`);
    expect(shown(mapBlocks([a, other], known(first)))).toEqual([
      'add-a:1 #1',
      expect.stringMatching(/^fixup-e+:1 #1$/),
    ]);
  });

  it('BLK-2: a named commit joins nothing, whatever its subject says; what fixes it up joins it', () => {
    const named = commit('fixup! Add a', { block: { Block: ['mine'] } });
    expect(shown(mapBlocks([a, named, commit('fixup! fixup! Add a')], []))).toEqual([
      'add-a:2 #1',
      'mine:1 #1',
    ]);
  });

  it('BLK-2: a slug that is taken or reserved gets a number, for ever, and a note', () => {
    const guarded = commit('x', { block: { Block: ['guarded'] } });
    const taken = commit('y', { block: { Block: ['add-a'] } });
    const blocks = mapBlocks([a, guarded, taken], known(mapBlocks([a], [])));
    expect(shown(blocks)).toEqual(['add-a:1 #1', 'guarded-2:1 #1', 'add-a-2:1 #1']);
    expect(blocks[1]?.declared.notes).toEqual([
      { code: 'slug_taken', detail: 'Block: guarded is guarded-2 here' },
    ]);
    expect(blocks[2]).toMatchObject({ slug: 'add-a', declared: { notes: [{ code: 'slug_taken' }] } });
    // the one that had the name goes: nobody inherits it
    expect(shown(mapBlocks([again(taken)], known(blocks)))).toEqual(['add-a-2:1 #2']);
  });

  it('BLK-3: of several names the first that is valid counts, the others are notes', () => {
    const [made] = mapBlocks([commit('x', { block: { Block: ['Not It', 'core', 'core', 'other'] } })], []);
    expect(made).toMatchObject({ id: 'core' });
    expect(made?.declared.notes.map((note) => note.detail)).toEqual(['Block: Not It', 'Block: other']);
  });
});

describe('BLK-3: trailers', () => {
  it('are read only beside Block, whatever their case', () => {
    const [withBlock, without] = mapBlocks(
      [
        commit('x', {
          block: {
            Block: ['core'],
            owns: ['src/', 'src/', 'lib/*.ts'],
            After: ['other'],
            Accept: ['it works'],
            'Accept-Human': ['it looks right'],
            LEVEL: ['L2', 'L3', 'L1'],
            Kind: ['code'],
          },
        }),
        commit('y', { block: { Owns: ['everything/**'], Level: ['L3'] } }),
      ],
      [],
    );
    expect(withBlock?.declared).toMatchObject({
      owns: ['src/', 'lib/*.ts'],
      after: ['other'],
      accept: ['it works'],
      acceptHuman: ['it looks right'],
      level: 'L3',
      notes: [],
    });
    expect(without?.declared).toMatchObject({ owns: [], level: null });
  });

  it('a malformed one is a note, never a refusal', () => {
    const [made] = mapBlocks(
      [
        commit('x', {
          block: {
            Block: ['core'],
            Owns: ['../x', '/abs', '!a', ''],
            Level: ['L9', 'L0'],
            After: ['Not A Slug'],
            Kind: ['poem'],
            Accept: [' ', 'y'.repeat(1001)],
          },
        }),
      ],
      [],
    );
    expect(made?.declared).toMatchObject({ owns: [], after: [], accept: [], level: null, kinds: [] });
    expect(made?.declared.notes.map((note) => note.code)).toEqual([
      ...Array(4).fill('bad_owned'),
      ...Array(6).fill('bad_trailer'),
    ]);
  });

  it('a bad Block name leaves the commit its own block, with a note', () => {
    const [made] = mapBlocks([commit('Subject', { block: { Block: ['Not Valid'] } })], []);
    expect(made).toMatchObject({ id: 'subject', named: false });
    expect(made?.declared.notes).toEqual([{ code: 'bad_trailer', detail: 'Block: Not Valid' }]);
  });
});

describe('properties', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 90, unit: 'binary' }),
    fc.constantFrom('fix', 'fixup! fix', 'Revert', 'guarded', 'unowned', ''),
  );
  const list = fc.array(
    fc.record({ message: text, block: fc.option(fc.constantFrom('a', 'b', 'guarded', 'Bad One')) }),
    { maxLength: 12 },
  );
  it('BLK-2: every commit is in exactly one block, ids are valid, distinct and never reserved', () => {
    fc.assert(
      fc.property(list, (items) => {
        const commits = items.map(({ message, block }) =>
          commit(message, block === null ? {} : { block: { Block: [block] } }),
        );
        const blocks = mapBlocks(commits, []);
        expect(blocks.flatMap((b) => b.commits).sort()).toEqual(commits.map((c) => c.oid).sort());
        const names = blocks.map((b) => b.id);
        expect(new Set(names).size).toBe(names.length);
        for (const name of names) {
          expect(name).toMatch(/^[a-z0-9][a-z0-9-]{0,63}$/);
          expect(['guarded', 'unowned']).not.toContain(name);
        }
        // the same head again is the same blocks
        const again = mapBlocks(commits, prior(blocks));
        expect(again.map((b) => [b.id, b.identity, b.attempt])).toEqual(
          blocks.map((b) => [b.id, b.identity, b.attempt]),
        );
      }),
      { numRuns: 500 },
    );
  });
  it('BLK-2: a slug is empty or valid', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (subject) => {
        expect(slugOf(subject)).toMatch(/^(?:|[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?)$/);
      }),
    );
  });
});

it('BLK-2: thousands of reverts of commits that nobody has cost no walk over all commits each', () => {
  const many = Array.from({ length: 6000 }, (_, i) =>
    commit(`Revert ${i}\n\nThis reverts commit ${'abcdef0'.padEnd(40, String(i % 10))}.`, { files: [] }),
  );
  const start = cpuNow();
  const blocks = mapBlocks(many, []);
  expect(mapBlocks(many, prior(blocks))).toHaveLength(6000);
  expect(cpuNow() - start).toBeLessThan(4000);
});
