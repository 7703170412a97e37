import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clausesDigest, type ReviewKeyInput, reviewKey, ticketId } from '../../app/domain/ticket.ts';

const base: ReviewKeyInput = {
  path: 'src/a.ts',
  blob: { head: 'a'.repeat(40), base: null },
  mode: { head: '100644', base: null },
  level: 'L2',
  lenses: ['security', 'tests'],
  reviewers: [{ name: 'lint', entry: { uses: 'command', run: ['lint', '{path}'] } }],
  fallbacks: [],
  promptVersion: '1',
  clauses: [],
  others: [],
};

describe('review key', () => {
  it('TKT-1: each thing a review depends on changes the key', () => {
    const changes: Partial<ReviewKeyInput>[] = [
      { path: 'src/b.ts' },
      { path: { b64: Buffer.from('src/a.ts').toString('base64') } },
      { blob: { head: 'b'.repeat(40), base: null } },
      { blob: { head: null, base: 'a'.repeat(40) } },
      { mode: { head: '100755', base: null } },
      { level: 'L1' },
      { level: 'L3' },
      { lenses: ['tests', 'security'] },
      { reviewers: [{ name: 'lint2', entry: base.reviewers[0]?.entry }] },
      { reviewers: [{ name: 'lint', entry: { uses: 'command', run: ['lint', '-v', '{path}'] } }] },
      { reviewers: [], fallbacks: [...base.reviewers] },
      { promptVersion: '2' },
      { clauses: ['it compiles'] },
    ];
    const keys = [{}, ...changes].map((change) => reviewKey({ ...base, ...change }));
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}$/);
  });

  it('TKT-1: what is not in the rule is not in the key: the order of keys, and other files below L3', () => {
    const other = { path: 'src/x.ts', base: null, head: 'c'.repeat(40) };
    expect(reviewKey({ ...base, others: [other] })).toBe(reviewKey(base));
    const turned = { run: ['lint', '{path}'], uses: 'command' };
    expect(reviewKey({ ...base, reviewers: [{ name: 'lint', entry: turned }] })).toBe(reviewKey(base));
  });

  it('TKT-1: at L3 the other files of the block count, in no order', () => {
    const one = { path: 'x', base: null, head: 'c'.repeat(40) };
    const two = { path: 'y', base: 'd'.repeat(40), head: null };
    const key = (others: ReviewKeyInput['others']) => reviewKey({ ...base, level: 'L3', others });
    expect(key([one, two])).toBe(key([two, one]));
    expect(key([one])).not.toBe(key([one, two]));
    expect(key([{ ...one, head: 'e'.repeat(40) }, two])).not.toBe(key([one, two]));
  });

  it('TKT-1: no two different lists of clauses share a digest', () => {
    const clause = fc.array(fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()));
    fc.assert(
      fc.property(clause, clause, (a, b) => {
        const same = JSON.stringify(a) === JSON.stringify(b);
        expect(clausesDigest(a) === clausesDigest(b)).toBe(same);
      }),
    );
  });
});

describe('ticket id', () => {
  it('TKT-1: (run, block, key, round) and nothing else; the same again is the same', () => {
    const one = { run: 'r1', block: 'b', key: 'k', round: 0 };
    const ids = [
      one,
      { ...one, run: 'r2' },
      { ...one, block: 'c' },
      { ...one, key: 'l' },
      { ...one, round: 1 },
    ];
    expect(new Set(ids.map(ticketId)).size).toBe(5);
    expect(ticketId({ ...one })).toBe(ticketId(one));
    // pinned: a runner computes it too, so it must not change by accident
    expect(ticketId(one)).toBe('c465dadea5dfa2fb037f84c3a3e211ed26c8d5690cfa8fd68e1dcd46a569e29f');
  });
});
