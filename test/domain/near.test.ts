import { describe, expect, it } from 'vitest';
import { nearestOf } from '../../app/domain/near.ts';

describe('REV-2: the files of a block nearest to one', () => {
  const paths = ['src/a/x.ts', 'src/a/y.ts', 'src/a/z.ts', 'src/b/x.ts', 'test/a/x.test.ts'];

  it('REV-2: those of its own folder first, itself never, no more than asked for', () => {
    const near = nearestOf(paths, 3);
    expect(near('src/a/y.ts')).toEqual(['src/a/x.ts', 'src/a/z.ts', 'src/b/x.ts']);
    expect(near('test/a/x.test.ts')).toEqual(['src/b/x.ts', 'src/a/z.ts', 'src/a/y.ts']);
    expect(nearestOf(paths, 9)('src/a/x.ts')).toHaveLength(4);
    expect(near('elsewhere.ts')).toEqual([]);
  });

  it('REV-2: 4,000 files cost one sort', () => {
    const many = Array.from({ length: 4000 }, (_, i) => `src/${i % 40}/f${i}.ts`);
    const from = performance.now();
    const near = nearestOf(many, 12);
    for (const path of many) expect(near(path)).toHaveLength(12);
    expect(performance.now() - from).toBeLessThan(3000);
  });
});
