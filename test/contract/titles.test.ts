import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

function walk(dir: string): string[] {
  return readdirSync(dir).flatMap((name) => {
    const file = path.posix.join(dir, name);
    if (statSync(file).isDirectory()) return walk(file);
    return file.endsWith('.test.ts') ? [file] : [];
  });
}

const titles = walk('test')
  .filter((file) => !file.startsWith('test/contract/'))
  .flatMap((file) =>
    [
      ...readFileSync(file, 'utf8').matchAll(
        /\b(?:it|test|describe)(?:\.[a-z]+)*(?:\([^)]*\))?\(\s*(['"`])([\s\S]*?)\1/g,
      ),
    ].map((match) => match[2] ?? ''),
  );

/** Numbers that titles give to a word, `case 14` or `attacks 10, 12 and 13` alike. */
function numbers(word: string): Set<number> {
  const found = new Set<number>();
  for (const title of titles)
    for (const match of title.matchAll(
      new RegExp(`\\b${word}s? ((?:\\d+(?:\\s*(?:,|and|–|-)\\s*)?)+)`, 'g'),
    )) {
      const text = match[1] ?? '';
      for (const range of text.matchAll(/(\d+)\s*[–-]\s*(\d+)/g))
        for (let n = Number(range[1]); n <= Number(range[2]); n++) found.add(n);
      for (const one of text.matchAll(/\d+/g)) found.add(Number(one[0]));
    }
  return found;
}

const missing = (word: string, wanted: number[]) => {
  const found = numbers(word);
  return wanted.filter((n) => !found.has(n));
};

describe('what must be proved is named in a title', () => {
  it('failure reports of tools like ours', () => {
    expect(
      missing(
        'case',
        [2, 3, 6, 7, 9, 10, 14, 17, 18, 19, 24, 25, 26, 28, 29, 31, 33, 36, 40, 62, 64, 68, 70],
      ),
    ).toEqual([]);
    // ownership, people and the gate
    expect(missing('case', [11, 12, 13, 22, 35, 38, 41, 42, 43, 44, 46, 47, 48, 49, 52, 53, 77])).toEqual([]);
  });

  it('attacks', () => {
    expect(missing('attack', [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 15, 16, 33, 34, 35, 36, 37])).toEqual([]);
    expect(missing('attack', [20, 21, 22, 23, 25, 26, 28, 29, 32])).toEqual([]);
  });

  it('every rule of runs, blocks and ownership, and of the gate, check runs and commands', () => {
    const rules = [
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((n) => `RUN-${n}`),
      ...[1, 2, 3].map((n) => `POL-${n}`),
      ...[1, 2, 3, 4, 5].map((n) => `GIT-${n}`),
      ...[1, 2, 3, 4, 5, 6, 7].map((n) => `BLK-${n}`),
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `OWN-${n}`),
      ...[1, 2, 3, 4, 5, 6, 7].map((n) => `GAT-${n}`),
      ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `PUB-${n}`),
      ...[1, 2, 3, 4, 5].map((n) => `CMD-${n}`),
      ...[1, 2, 3].map((n) => `ADM-${n}`),
      'CTL-5',
    ];
    const all = titles.join('\n');
    expect(rules.filter((rule) => !new RegExp(`\\b${rule}\\b`).test(all))).toEqual([]);
  });

  it('rules of the main road', () => {
    const rules = [
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((n) => `LED-${n}`),
      ...[1, 2, 3, 5].map((n) => `TKT-${n}`),
      ...[1, 3, 4, 5, 6, 7].map((n) => `LSE-${n}`),
      ...['RID-1', 'ADM-1', 'AUT-1', 'AUT-2', 'AUT-3', 'AUT-4'],
      ...[1, 2, 3, 4, 5, 6].map((n) => `ACT-${n}`),
      ...['REV-1a', 'REV-3', 'REV-4', 'REV-5', 'REV-8', 'REV-9', 'REV-10', 'FND-1', 'RND-1'],
      ...[1, 2, 3, 4, 5].map((n) => `POOL-${n}`),
      ...['OPS-1', 'OPS-2', 'OPS-4', 'OPS-10'],
    ];
    const all = titles.join('\n');
    expect(rules.filter((rule) => !new RegExp(`\\b${rule}\\b`).test(all))).toEqual([]);
  });
});
