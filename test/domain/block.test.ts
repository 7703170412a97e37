/** Commits to blocks: ids that stay, attempts, joins, trailers. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Block, type BlockCommit, mapBlocks, type PriorBlock, slugOf } from '../../app/domain/block.ts';

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
