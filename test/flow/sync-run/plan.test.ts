import { describe, expect, it } from 'vitest';
import { knownBlocks } from '../../../app/domain/block/prior.ts';
import type { RowData } from '../../../app/domain/ledger/row-kinds.ts';
import { entriesOf } from '../../../app/flow/sync-run/plan.ts';

const declares = (...owns: string[]) => ({ declared: { owns } });
const TREE = '040000';
const FILE = '100644';

/** What the rows of a block say of its entries: each head's record went through JSON. */
const told = (...heads: Pick<RowData<'block.opened'>, 'owns' | 'was'>[]) => {
  const data = {
    block: 'b',
    title: '0'.repeat(64),
    attempt: 1,
    kind: 'code' as const,
    level: 'L2' as const,
    named: true,
    identity: '0'.repeat(64),
    commits: [],
    commit_count: 0,
    after: [],
    accept: [],
    accept_human: [],
    notes: [],
  };
  const rows = heads.map((head) => ({
    kind: 'block.opened',
    data: JSON.parse(JSON.stringify({ ...data, ...head })) as unknown,
  }));
  return knownBlocks(rows, new Map())[0]?.entries;
};

describe('OWN-2: what an exact entry was when it was first claimed is kept, from rows', () => {
  it.each(['src', '__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'OWN-2: the first record of %s wins over what it becomes',
    (entry) => {
      const first = entriesOf(declares(entry), undefined, new Map([[entry, FILE]]));
      expect(first).toEqual({ owns: [entry], was: ['file'] });
      // it becomes a folder: what lies in it is not owned
      const later = entriesOf(declares(entry), told(first), new Map([[entry, TREE]]));
      expect(later).toEqual(first);
    },
  );

  it.each(['__proto__', 'lib'])('OWN-2: %s that was a folder goes on owning what lies in it', (entry) => {
    const first = entriesOf(declares(entry), undefined, new Map([[entry, TREE]]));
    expect(first).toEqual({ owns: [`${entry}/`], was: ['directory'] });
    const later = entriesOf(declares(entry), told(first), new Map());
    expect(later).toEqual(first);
  });

  it('OWN-2: a record stays when its entry is not declared for a while; a glob has none', () => {
    const first = entriesOf(declares('__proto__'), undefined, new Map([['__proto__', FILE]]));
    const without = entriesOf(declares('src/*', 'docs/'), told(first), new Map());
    expect(without).toEqual({ owns: ['src/*', 'docs/'], was: [null, null] });
    expect(told(first, without)).toEqual(new Map([['__proto__', 'file']]));
  });
});
