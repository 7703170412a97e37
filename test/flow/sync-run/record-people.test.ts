import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BODY_LIMIT } from '../../../app/domain/ledger/canonical.ts';
import type { RowData } from '../../../app/domain/ledger/row-kinds.ts';
import { rowKinds } from '../../../app/domain/ledger/row-kinds.ts';
import { authorsOf } from '../../../app/domain/people/authors.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { hasPeople, recordPeople } from '../../../app/flow/sync-run/record-people.ts';
import type { Change, Commit, PullReading } from '../../../app/github/port/git.ts';
import type { CommitAccounts } from '../../../app/github/port/people.ts';
import { decided, FactList, commit as oid, sha } from '../../helpers/facts.ts';

const change = (path: string): Change => ({
  path,
  status: 'M',
  modeBase: '100644',
  modeHead: '100644',
  blobBase: oid('c'),
  blobHead: oid('d'),
});
const HEAD = sha('head');
const made = (name: string, paths: readonly string[]): Commit => ({
  oid: name,
  parents: [],
  tree: oid('e'),
  authorName: 'a',
  authorEmail: 'a@example.test',
  authorTime: 0,
  committerEmail: 'a@example.test',
  message: 'm',
  trailers: [],
  changes: paths.map(change),
});
const reading = (commits: readonly Commit[], paths: readonly string[]): PullReading => ({
  head: HEAD,
  base: oid('b'),
  mergeBase: oid('b'),
  commits,
  files: paths.map(change),
  renames: [],
});
const record = (read: PullReading, accounts: Map<string, CommitAccounts>) => {
  const rows: RowData<'run.people'>[] = [];
  const append = ((_: string, __: null, data: RowData<'run.people'>) => rows.push(data)) as never;
  recordPeople(append, foldRows([]), read, accounts);
  return rows;
};
const foldOf = (rows: readonly RowData<'run.people'>[], paths: readonly string[]) => {
  const list = new FactList().add('run.opened', {
    pull: '1',
    group_head: null,
    epoch: 1,
    author: { id: '1', login: 'a' },
    reason: 'opened',
  });
  for (const row of rows) list.add('run.people', row);
  return foldRows(
    list.head(
      paths.map((path) => decided(path)),
      { head: HEAD },
    ).rows,
  );
};

describe('rows of who made a head', () => {
  test('LED-2: thousands of paths and commits of hundreds of people fit their rows, and nothing is lost', () => {
    const paths = Array.from(
      { length: 5_000 },
      (_, i) => `src/some/folder/of/a/large/repository/file-${i}.ts`,
    );
    const commits = Array.from({ length: 1_500 }, (_, i) =>
      made(
        sha(`commit ${i}`),
        paths.filter((__, at) => at % 1_500 === i || at === 0),
      ),
    );
    const person = (i: number) => String(10_000_000_000_000_000_000n + BigInt(i % 400));
    const accounts = new Map(
      commits.map((one, i) => [one.oid, { author: person(i), committer: person(i + 1) }] as const),
    );
    const rows = record(reading(commits, paths), accounts);
    for (const row of rows) {
      expect(rowKinds['run.people'].safeParse(row).success).toBe(true);
      expect(Buffer.byteLength(JSON.stringify(row))).toBeLessThan(BODY_LIMIT - 1_500);
    }
    const state = foldOf(rows, [paths[0] ?? '', paths[7] ?? '']);
    expect(hasPeople(state, reading(commits, paths))).toBe(true);
    expect(state.arrivals.size).toBe(1_500);
    const { accounts: some, unattributed } = authorsOf(state, [paths[7] ?? '']);
    expect(some).toEqual(new Set(['1', person(7), person(8)]));
    // its push was told by nobody
    expect(unattributed).toBe(true);
    expect(authorsOf(state, [paths[0] ?? '']).unattributed, 'more people than a row names').toBe(true);
  });

  test('GAT-6: for any history, everybody who changed a path has a part in it', () => {
    const names = fc.constantFrom('a', 'b', 'c', 'd');
    const account = fc.option(fc.constantFrom('2', '3', '4'), { nil: null });
    const history = fc.array(
      fc.record({ paths: fc.uniqueArray(names), author: account, committer: account }),
      {
        maxLength: 8,
      },
    );
    fc.assert(
      fc.property(history, fc.uniqueArray(names, { minLength: 1 }), (told, files) => {
        const commits = told.map((one, i) => made(sha(`commit ${i}`), one.paths));
        const accounts = new Map(
          told.map(({ author, committer }, i) => [sha(`commit ${i}`), { author, committer }]),
        );
        const state = foldOf(record(reading(commits, files), accounts), files);
        for (const path of files) {
          const own = told.filter((one) => one.paths.includes(path));
          const wanted = own.flatMap((one) => [one.author, one.committer]).filter((one) => one !== null);
          expect(authorsOf(state, [path]).accounts).toEqual(new Set(['1', ...wanted]));
          const group = state.people?.byPath.get(path) ?? state.people?.rest;
          const hidden = own.length === 0 || own.some((one) => one.author === null || one.committer === null);
          expect(group?.unattributed).toBe(hidden);
        }
      }),
      { numRuns: 100 },
    );
  });
});
