import { describe, expect, it } from 'vitest';
import { commitsDigest, knownBlocks } from '../../../app/domain/block/prior.ts';
import { readDeclared } from '../../../app/domain/block/trailers.ts';
import { rowKinds } from '../../../app/domain/ledger/row-kinds.ts';
import type { PlannedBlock } from '../../../app/flow/sync-run/plan.ts';
import type { Append } from '../../../app/flow/sync-run/record.ts';
import { sayBlocks } from '../../../app/flow/sync-run/record-blocks.ts';

const oid = (n: number) => n.toString(16).padStart(64, 'a');

/** A block that declares as much as one can, in a repository of long ids. */
function planned(commits: number): PlannedBlock {
  const trailers = [
    ...Array.from({ length: 400 }, (_, i) => ({ key: 'Owns', value: `${'d'.repeat(20)}/${i}` })),
    ...Array.from({ length: 400 }, (_, i) => ({ key: 'Owns', value: `x${i}` })),
    ...Array.from({ length: 80 }, (_, i) => ({ key: 'After', value: `a${i}`.padEnd(64, 'b') })),
    ...Array.from({ length: 50 }, (_, i) => ({ key: 'Accept', value: `clause ${i}` })),
    ...Array.from({ length: 50 }, (_, i) => ({ key: 'Accept-Human', value: `clause ${i}` })),
    ...Array.from({ length: 50 }, () => ({ key: 'Level', value: '🐧'.repeat(200) })),
  ];
  const declared = readDeclared([trailers]);
  const list = Array.from({ length: commits }, (_, i) => oid(i));
  return {
    block: {
      id: 'b'.repeat(63),
      identity: 'c'.repeat(64),
      title: 't'.repeat(5000),
      named: true,
      slug: 'b',
      merge: false,
      attempt: 1,
      commits: list,
      seed: { oid: oid(0), diff: 'd'.repeat(64), author: 'e'.repeat(64) },
      declared,
      known: 'new',
    },
    kind: 'mixed',
    level: 'L3',
    detail: {
      owns: declared.owns,
      was: declared.owns.map(() => 'submodule' as const),
      after: declared.after,
      accept: declared.accept,
      accept_human: declared.acceptHuman,
      declares: true,
      level: 'L3',
      notes: declared.notes,
      brief: '',
    },
    keptClaims: 0,
    known: null,
  };
}

function say(...blocks: PlannedBlock[]) {
  const rows: { kind: string; data: unknown }[] = [];
  const append: Append = (kind, _, data) => rows.push({ kind, data: rowKinds[kind].parse(data) });
  sayBlocks(append, { blocks, dropped: [] });
  return rows;
}

describe('the rows of blocks', () => {
  it('BLK-3: whatever a block declares, its row fits into 32 KiB with room for its envelope', () => {
    const [row] = say(planned(500));
    expect(Buffer.byteLength(JSON.stringify(row?.data))).toBeLessThan(31_000);
  });

  it('BLK-4: a list of commits that its row cannot hold is taken only where the row’s digest proves it', () => {
    const block = planned(150);
    const [row] = say(block);
    const { commits } = block.block;
    const read = (list: readonly string[]) =>
      knownBlocks([row ?? { kind: '', data: null }], new Map([[block.block.id, list]]))[0];
    expect(read(commits)).toMatchObject({ commits, commitCount: 150, commitsDigest: commitsDigest(commits) });
    const [first, ...rest] = commits;
    for (const lie of [rest, [oid(999), ...rest], [...commits, oid(999)], []])
      expect(read(lie)?.commits).toEqual(commits.slice(0, 100));
    expect(first).toBe(oid(0));
    // and what is known whole is not said again
    const known = read(commits);
    expect(
      known === undefined ? null : say({ ...block, known, block: { ...block.block, known: 'open' } }),
    ).toEqual([]);
  });

  it('BLK-4: rows of before seeds were written name their first commit, and nothing else of it', () => {
    const [row] = say(planned(2));
    const { seed: _seed, was: _was, ...old } = (row?.data ?? {}) as Record<string, unknown>;
    expect(knownBlocks([{ kind: 'block.opened', data: old }], new Map())[0]).toMatchObject({
      seed: { oid: oid(0), diff: null, author: null },
      entries: new Map(),
    });
  });
});
