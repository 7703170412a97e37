import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RowData } from '../../../app/domain/ledger/row-kinds.ts';
import { endFinding, projectRaised } from '../../../db/store/finding.ts';
import { sha } from '../../helpers/queue.ts';
import { readAll, type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
beforeAll(async () => {
  stage = await syncStage();
});
afterAll(() => stage.close());

test('ADM-3: a blocking finding in one pull request raises its path in the next, once a content', async () => {
  const repo = await stage.repository({ 'a.ts': 'a\n', 'b.ts': 'b\n' }, readAll('review: {adaptive: on}\n'));
  const change = async (branch: string, text: string) =>
    repo.commit({ branch, message: 'Change it', files: { 'a.ts': text, 'b.ts': text } });
  await change('first', 'one\n');
  const first = await stage.open(await repo.openPull({ head: 'first' }));
  await stage.sync(first);
  expect(await stage.files(first)).toEqual({ 'a.ts': 'L2 change-it owned', 'b.ts': 'L2 change-it owned' });
  const data = {
    finding: 1,
    fingerprint: sha('f'),
    path: 'a.ts',
    side: 'head',
    start_line: 1,
    end_line: 1,
    severity: 'high',
    lens: 'security',
    state: 'open',
    reviewer: 'lint',
    command: true,
    ticket: sha('t'),
    key: sha('k'),
    blob: null,
    title: sha('x'),
    body: sha('x'),
    quote: sha('x'),
    suggestion: null,
  } as RowData<'finding.raised'>;
  const { database } = stage.deps;
  await database.transaction((tx) => projectRaised(tx, first, data, 'open', 1));
  await stage.sync(first);
  expect((await stage.files(first))['a.ts'], 'decided once for this content').toBe('L2 change-it owned');
  await change('second', 'two\n');
  const second = await stage.open(await repo.openPull({ head: 'second' }));
  await stage.sync(second);
  const raised = { 'a.ts': 'L3 change-it owned history', 'b.ts': 'L2 change-it owned' };
  expect(await stage.files(second)).toEqual(raised);
  // found to be none: what was decided stands, and new content is as before
  await database.transaction((tx) => endFinding(tx, first, 1, 'dismissed', 2));
  await stage.sync(second);
  expect(await stage.files(second)).toEqual(raised);
  await change('third', 'three\n');
  const third = await stage.open(await repo.openPull({ head: 'third' }));
  await stage.sync(third);
  expect((await stage.files(third))['a.ts']).toBe('L2 change-it owned');
});
