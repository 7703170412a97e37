import { describe, expect, test } from 'vitest';
import { fingerprint } from '../../../app/domain/finding.ts';
import type { DecidedPath } from '../../../app/domain/ledger/row-fields.ts';
import type { RowData } from '../../../app/domain/ledger/row-kinds.ts';
import { carryFindings, comparable, movesOf } from '../../../app/domain/run-state/carry-findings.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { commit, decided, FactList, HEAD, sha } from '../../helpers/facts.ts';

const texts = new Map([
  [sha('on bad'), 'on bad'],
  [sha('bad'), 'bad'],
]);
const printAt = (path: string, ordinal = 0) =>
  fingerprint({ path, lens: 'correctness', title: 'on bad', quote: 'bad', ordinal });
const file = (path: string, content: string | null, more: Partial<DecidedPath> = {}) =>
  decided(path, {
    status: 'A',
    blob: { base: null, head: content === null ? null : sha(content).slice(0, 40) },
    ...more,
  });
const bad = (path: string, ordinal = 0): Partial<RowData<'finding.raised'>> => ({
  fingerprint: printAt(path, ordinal),
  title: sha('on bad'),
  quote: sha('bad'),
});
/** What the files come to: `F1 a.ts → b.ts`, and whether a report there would meet it. */
function carried(
  list: FactList,
  files: readonly DecidedPath[],
  similar: readonly { from: string; to: string }[] = [],
  stored: ReadonlyMap<string, string | null> = texts,
): string[] {
  const { findings, files: before } = foldRows(list.rows);
  const moves = movesOf({ findings, before, files, similar, known: new Map() });
  const rows = carryFindings(moves, findings, stored);
  for (const one of rows) list.add('finding.carried', { ...one, head: HEAD });
  expect(foldRows(list.rows).anomalies).toEqual([]);
  return rows.map(({ finding, from, path, fingerprint: print }) => {
    const ordinal = [0, 1, 2].find((n) => print === printAt(String(path), n));
    return `F${finding} ${String(from)} → ${String(path)}${ordinal === undefined ? ' aside' : ''}`;
  });
}
const on = (...files: DecidedPath[]) => new FactList().policy().head(files);
const end = (
  list: FactList,
  finding: number,
  state: 'fixed' | 'dismissed',
  severity: 'high' | 'low' = 'high',
) => {
  if (state === 'dismissed')
    list.add('human.acted', {
      act: 'dismiss',
      head: HEAD,
      permission: 'write',
      clause: `F${finding}`,
      paths: [],
      self: false,
      text: null,
      severity,
    });
  return list.add('finding.ended', { finding, state, reason: 'because', head: HEAD, text: null });
};

describe('REV-5: where a rename carries findings', () => {
  const a = file('a.ts', 'one');

  test('the same content, nearest by name; a copy of what is still there takes nothing', () => {
    expect(carried(on(a).finding(1, a, bad('a.ts')), [file('b.ts', 'one'), file('c/a.ts', 'one')])).toEqual([
      'F1 a.ts → c/a.ts',
    ]);
    expect(carried(on(a).finding(1, a, bad('a.ts')), [a, file('b.ts', 'one')])).toEqual([]);
    expect(carried(on(a).finding(1, a, bad('a.ts')), [file('b.ts', 'two')])).toEqual([]);
    expect(carried(on(a).finding(1, a, bad('a.ts', 2)), [file('b.ts', 'one')])).toEqual(['F1 a.ts → b.ts']);
  });

  test('a pair with the base, a pair with the same old path, the old path again, or what git calls similar', () => {
    const old = file('old.ts', null, { status: 'D', level: 'L0', reason: 'moved' });
    const x = file('x.ts', 'one', { from: 'old.ts' });
    const list = () => on(x, old).finding(1, x, bad('x.ts'));
    expect(carried(list(), [file('y.ts', 'two', { from: 'old.ts' }), old])).toEqual(['F1 x.ts → y.ts']);
    expect(carried(list(), [file('old.ts', 'two', { status: 'M' })])).toEqual(['F1 x.ts → old.ts']);
    expect(carried(list(), [file('z.ts', 'two', { from: 'x.ts' })])).toEqual(['F1 x.ts → z.ts']);
    expect(carried(list(), [file('z.ts', 'two')], [{ from: 'x.ts', to: 'z.ts' }])).toEqual([
      'F1 x.ts → z.ts',
    ]);
  });

  test('a path that left with an earlier head is known by the content that it was found on', () => {
    const list = end(on(a).finding(1, a, bad('a.ts')).head([]), 1, 'fixed');
    expect(carried(list, [file('b.ts', 'two')])).toEqual([]);
    expect(carried(list, [file('b.ts', 'one')])).toEqual(['F1 a.ts → b.ts']);
    // a copy that was there before has had a review of its own
    const copied = end(
      on(a)
        .finding(1, a, bad('a.ts'))
        .head([file('b.ts', 'one')]),
      1,
      'fixed',
    );
    expect(carried(copied, [file('b.ts', 'one')])).toEqual([]);
    const open = on(a, file('b.ts', 'one')).finding(1, a, bad('a.ts'));
    expect(carried(open, [file('b.ts', 'one')])).toEqual(['F1 a.ts → b.ts']);
  });

  test('what was found on a deletion goes where the base side went', () => {
    const gone = file('a.ts', null, { status: 'D', blob: { base: commit('c'), head: null } });
    const list = on(gone).finding(1, gone, { ...bad('a.ts'), side: 'base', blob: commit('c') });
    expect(carried(list, [gone])).toEqual([]);
    expect(carried(list, [file('b.ts', 'two', { from: 'a.ts' }), gone])).toEqual(['F1 a.ts → b.ts']);
  });

  test('git is asked of what is gone and of what came, not of what is the same or no file', () => {
    const list = on(a, file('same.ts', 's'), file('moved.ts', 'm')).finding(1, a, bad('a.ts'));
    const { findings, files: before } = foldRows(list.rows);
    const link = file('link', 'l', { mode: { base: null, head: '120000' } });
    const files = [file('same.ts', 's'), file('b.ts', 'two'), file('to.ts', 'm'), link];
    expect(comparable({ findings, before, files })).toEqual({
      gone: [{ path: 'a.ts', blob: a.blob.head }],
      came: [
        { path: 'b.ts', blob: files[1]?.blob.head },
        { path: 'to.ts', blob: files[2]?.blob.head },
      ],
    });
    const many = Array.from({ length: 1001 }, (_, i) => file(`m${i}`, `${i}`));
    const full = new Map(many.map((one) => [String(one.path), one]));
    const one = foldRows(on().finding(1, many[7] ?? a, bad('m7')).rows).findings;
    expect(comparable({ findings: one, before: full, files: [a] }).gone).toEqual([
      { path: 'm7', blob: many[7]?.blob.head },
    ]);
  });

  test('an erased text does not lose it: only no report can meet it any more', () => {
    const list = on(a).finding(1, a, bad('a.ts'));
    expect(carried(list, [file('b.ts', 'one')], [], new Map([[sha('bad'), null]]))).toEqual([
      'F1 a.ts → b.ts aside',
    ]);
    expect(carried(list, [a])).toEqual(['F1 b.ts → a.ts aside']);
  });
});

describe('REV-5: a name that is taken at the new path', () => {
  const a = file('a.ts', 'one');
  const b = file('b.ts', 'two');
  const both = (severity: 'critical' | 'high' | 'low' = 'high') =>
    on(a, b)
      .finding(1, a, bad('a.ts'))
      .finding(2, b, { ...bad('b.ts'), severity });
  const to = [file('b.ts', 'one')];

  test.each<[string, FactList, string[]]>([
    ['of one that stands and is as bad: that one stands for both', both(), []],
    ['of one that stands and is worse: likewise', both('critical'), []],
    ['of a milder one: both stand', both('low'), ['F2 b.ts → b.ts aside', 'F1 a.ts → b.ts']],
    [
      'of one that was fixed: a report meets the one that stands',
      end(both(), 2, 'fixed'),
      ['F2 b.ts → b.ts aside', 'F1 a.ts → b.ts'],
    ],
    ['of one that people dismissed as bad as this: it sticks', end(both(), 2, 'dismissed'), []],
    [
      'of one that was dismissed as milder: both, and this one stands',
      end(both('low'), 2, 'dismissed', 'low'),
      ['F2 b.ts → b.ts aside', 'F1 a.ts → b.ts'],
    ],
    ['by a dismissed one, of one that stands: that one stands', end(both(), 1, 'dismissed'), []],
    [
      'by a dismissed one, of one that was fixed: the dismissal sticks',
      end(end(both(), 1, 'dismissed'), 2, 'fixed').head([a]),
      ['F2 b.ts → b.ts aside', 'F1 a.ts → b.ts'],
    ],
    ['by a fixed one: it stays where it was', end(both(), 1, 'fixed'), []],
  ])('%s', (_, list, rows) => expect(carried(list, to)).toEqual(rows));
});
