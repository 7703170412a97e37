import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RowData } from '../../../app/domain/ledger/row-kinds.ts';
import type { WirePath } from '../../../app/domain/path.ts';
import { type FindingState, listBlockedPaths, projectRaised } from '../../../db/store/finding.ts';
import { insertRun } from '../../../db/store/run.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import { REPOSITORY, seedRepository, seedRun, sha } from '../../helpers/queue.ts';

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
  await seedRepository(db.database);
  await seedRun(db.database, 'r', 1);
  await db.database.transaction((tx) =>
    insertRun(tx, {
      id: 'elsewhere',
      installationId: '1',
      repositoryId: '2',
      pull: '1',
      epoch: 1,
      status: 'open',
      toldHead: 'a'.repeat(40),
      baseRef: 'main',
      headAt: sql`cs_now()` as unknown as Date,
      openedAt: sql`cs_now()` as unknown as Date,
    }),
  );
});
afterAll(() => db.drop());

let number = 0;
async function raise(
  run: string,
  path: WirePath,
  severity: 'critical' | 'high' | 'low',
  state: FindingState = 'open',
  more: Partial<RowData<'finding.raised'>> = {},
): Promise<void> {
  const n = ++number;
  const data = {
    finding: n,
    fingerprint: sha(`f${n}`),
    path,
    side: 'head',
    start_line: 1,
    end_line: 1,
    severity,
    lens: 'security',
    state: 'open',
    reviewer: 'model',
    command: false,
    ticket: sha('t'),
    key: sha('k'),
    blob: null,
    title: sha('x'),
    body: sha('x'),
    quote: sha('x'),
    suggestion: null,
    ...more,
  } as RowData<'finding.raised'>;
  await db.database.transaction((tx) => projectRaised(tx, run, data, state, n));
}

test('ADM-3: the history of a path is its blocking findings of 90 days in this repository, less what was none', async () => {
  const odd: WirePath = { b64: Buffer.from([0xff, 0x2f, 0x61]).toString('base64') };
  await raise('r', 'a.ts', 'high');
  await raise('r', 'fixed.ts', 'critical', 'fixed');
  await raise('r', odd, 'high', 'answered');
  await raise('r', 'low.ts', 'low');
  await raise('r', 'dismissed.ts', 'high', 'dismissed');
  await raise('r', 'withdrawn.ts', 'high', 'withdrawn');
  await raise('r', 'ungrounded.ts', 'high', 'ungrounded');
  await raise('r', 'again.ts', 'high', 'open', { read_before: true });
  await raise('elsewhere', 'b.ts', 'high');
  const paths = [
    'a.ts',
    'fixed.ts',
    odd,
    'low.ts',
    'dismissed.ts',
    'withdrawn.ts',
    'ungrounded.ts',
    'again.ts',
    'b.ts',
    'never.ts',
  ];
  const ask = () => listBlockedPaths(db.database.db, REPOSITORY, paths, ['critical', 'high'], 90);
  expect([...(await ask())].sort()).toEqual([
    'a.ts',
    'fixed.ts',
    Buffer.from([0xff, 0x2f, 0x61]).toString('latin1'),
  ]);
  await db.moveClock(91 * 86_400_000);
  expect([...(await ask())]).toEqual([]);
});
