import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readDependencies, waitingBlocks } from '../../../app/domain/block/dependency.ts';

const block = (id: string, after: string[] = [], slug: string | null = id) => ({ id, slug, after });
const read = (...blocks: ReturnType<typeof block>[]) =>
  Object.fromEntries(
    [...readDependencies(blocks)].map(([id, { after, notes }]) => [
      id,
      [after.join(' '), ...notes.map((note) => `${note.code} ${note.detail}`)],
    ]),
  );

describe('BLK-5: what blocks come after', () => {
  it('BLK-5: a name is the block that commits call so, else the block of that id; twice is once', () => {
    expect(
      read(
        block('login', [], null),
        block('login-2', [], 'login'),
        block('x', ['login', 'login-2', 'login']),
      ),
    ).toEqual({ login: [''], 'login-2': [''], x: ['login-2'] });
    expect(read(block('fix', [], null), block('x', ['fix']))).toMatchObject({ x: ['fix'] });
    // a reserved name is another id here, and its own name to others
    expect(read(block('guarded-2', [], 'guarded'), block('x', ['guarded']))).toMatchObject({
      x: ['guarded-2'],
    });
  });

  it('BLK-5: unknown and itself are bad_after; what is right stays', () => {
    expect(read(block('a'), block('b', ['nobody', 'b', 'a']))).toEqual({
      a: [''],
      b: ['a', 'bad_after After: nobody is no block of this head', 'bad_after After: b is the block itself'],
    });
  });

  it('BLK-5: a circle is named from each block on it; who only waits for it is not on it', () => {
    const found = read(block('a', ['c']), block('b', ['a']), block('c', ['b']), block('d', ['a']));
    expect(found).toEqual({
      a: ['c', 'dependency_cycle a → c → b → a'],
      b: ['a', 'dependency_cycle b → a → c → b'],
      c: ['b', 'dependency_cycle c → b → a → c'],
      d: ['a'],
    });
    expect(read(block('a', ['b']), block('b', ['a']), block('x', ['y']), block('y', ['x']))).toMatchObject({
      a: ['b', 'dependency_cycle a → b → a'],
      y: ['x', 'dependency_cycle y → x → y'],
    });
  });

  it('BLK-5: a circle of a thousand blocks is cut to what a row holds, and soon', () => {
    const many = Array.from({ length: 1000 }, (_, i) => block(`block-${i}`, [`block-${(i + 1) % 1000}`]));
    const found = readDependencies(many);
    for (const { notes } of found.values()) {
      expect(notes[0]?.code).toBe('dependency_cycle');
      expect(notes[0]?.detail.length).toBeLessThanOrEqual(200);
    }
  });

  it('BLK-5: whatever the trailers, blocks that can never go on are on a circle that is named or behind one', () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const graph = fc.array(fc.subarray([...ids, 'nobody']), { minLength: ids.length, maxLength: ids.length });
    fc.assert(
      fc.property(graph, (lists) => {
        const found = readDependencies(ids.map((id, i) => block(id, lists[i] ?? [])));
        const blocks = [...found].map(([id, { after }]) => ({ id, after }));
        // work through: what waits for nothing that is left passes
        const passed = new Set<string>();
        for (let n = 0; n <= ids.length; n++)
          for (const { id, after } of blocks) if (after.every((one) => passed.has(one))) passed.add(id);
        const stuck = ids.filter((id) => !passed.has(id));
        const named = ids.filter((id) => found.get(id)?.notes.some((one) => one.code === 'dependency_cycle'));
        expect(named.every((id) => stuck.includes(id))).toBe(true);
        expect(stuck.length === 0).toBe(named.length === 0);
        const behind = waitingBlocks(blocks, (id) => !named.includes(id));
        for (const id of stuck) expect(behind.has(id) || named.includes(id), id).toBe(true);
        // a dependency is an open block, never itself
        for (const { id, after } of blocks)
          expect(after.every((one) => ids.includes(one) && one !== id)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('LSE-1: a block waits while anything before it has not passed, however far before', () => {
    const chain = [block('a'), block('b', ['a']), block('c', ['b']), block('d')];
    const waits = (...open: string[]) => [...waitingBlocks(chain, (id) => !open.includes(id))].sort();
    expect(waits()).toEqual([]);
    expect(waits('a')).toEqual(['b', 'c']);
    expect(waits('b')).toEqual(['c']);
    expect(waits('c', 'd')).toEqual([]);
  });
});
