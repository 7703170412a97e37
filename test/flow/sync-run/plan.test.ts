import { describe, expect, it } from 'vitest';
import { entriesOf } from '../../../app/flow/sync-run/plan.ts';

const declares = (...owns: string[]) => ({ declared: { owns } });
const TREE = '040000';
const FILE = '100644';

/** A record after Postgres's jsonb: the detail of a block goes through JSON. */
const stored = (entries: Readonly<Record<string, string>>) => ({
  detail: JSON.parse(JSON.stringify({ entries })) as Record<string, unknown>,
});

describe('OWN-2: what an exact entry was when it was first claimed is kept', () => {
  it.each(['src', '__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'OWN-2: the first record of %s wins over what it becomes',
    (entry) => {
      const first = entriesOf(declares(entry), undefined, new Map([[entry, FILE]]));
      expect(first.owns).toEqual([entry]);
      expect(Object.entries(first.entries)).toEqual([[entry, 'file']]);
      // it becomes a folder: what lies in it is not owned
      const later = entriesOf(declares(entry), stored(first.entries), new Map([[entry, TREE]]));
      expect(later.owns).toEqual([entry]);
      expect(Object.entries(later.entries)).toEqual([[entry, 'file']]);
    },
  );

  it.each(['__proto__', 'lib'])('OWN-2: %s that was a folder goes on owning what lies in it', (entry) => {
    const first = entriesOf(declares(entry), undefined, new Map([[entry, TREE]]));
    expect(first.owns).toEqual([`${entry}/`]);
    const later = entriesOf(declares(entry), stored(first.entries), new Map());
    expect(later.owns).toEqual([`${entry}/`]);
  });

  it('OWN-2: a record stays when its entry is not declared for a while; a glob has none', () => {
    const first = entriesOf(declares('__proto__'), undefined, new Map([['__proto__', FILE]]));
    const without = entriesOf(declares('src/*', 'docs/'), stored(first.entries), new Map());
    expect(without.owns).toEqual(['src/*', 'docs/']);
    expect(Object.entries(without.entries)).toEqual([['__proto__', 'file']]);
  });
});
