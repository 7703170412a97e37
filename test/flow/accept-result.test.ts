import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fingerprint } from '../../app/domain/finding.ts';
import { blockingFindings } from '../../app/domain/run-state/coverage.ts';
import { foldRows } from '../../app/domain/run-state/fold.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { listFindings } from '../../db/store/finding.ts';
import { findRun } from '../../db/store/run.ts';
import { countTickets } from '../../db/store/ticket.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { changedFile, openQueueRun, queueDeps, seedRepository, setFiles, sha } from '../helpers/queue.ts';
import { type TestRunner, testRunner } from '../helpers/runner.ts';

let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database);
  await openQueueRun(deps, 'r', 1);
});
afterEach(() => db.drop());

type Lease = Awaited<ReturnType<TestRunner['lease']>>[number];

const report = (lease: Lease, more: Record<string, unknown> = {}) => ({
  fingerprint: fingerprint({
    path: lease.ticket.path,
    lens: 'security',
    title: 'A hole',
    quote: 'open()',
    ordinal: 0,
  }),
  side: 'head' as const,
  start_line: 3,
  end_line: 3,
  severity: 'critical' as const,
  lens: 'security',
  title: 'A hole',
  body: 'why',
  quote: 'open()',
  suggestion: null,
  grounded: true,
  reviewer: lease.ticket.reviewers[0]?.name ?? '',
  ...more,
});

async function review(findings: (lease: Lease) => ReturnType<typeof report>[]): Promise<void> {
  const runner = await testRunner(deps);
  const [lease] = await runner.lease();
  if (lease === undefined) throw new Error('nothing to lease');
  const found = findings(lease);
  await runner.finish(lease, { verdict: found.length > 0 ? 'findings' : 'approve', findings: found });
}

async function blocking() {
  const run = await findRun(db.database.db, 'r');
  if (run === null) throw new Error('no run');
  return blockingFindings(foldRows((await verifyRun(deps, run)).rows), 'high').map((one) => [
    one.number,
    one.severity,
    one.startLine,
  ]);
}

describe('REV-9: a model raises and never clears', () => {
  test('TKT-4, RND-1: no rerun makes a finding that stands milder or ungrounded', async () => {
    await setFiles(deps, 'r', [changedFile('r', 'a.ts', { level: 'L2' })]);
    await cutTickets(deps, { run: 'r' });
    await review((lease) => [report(lease)]);
    expect(await blocking()).toEqual([[1, 'critical', 3]]);
    await cutTickets(deps, { run: 'r', rerun: { scope: 'all' } });
    await review((lease) => [report(lease, { severity: 'info', start_line: 4, end_line: 4 })]);
    expect(await blocking()).toEqual([[1, 'critical', 4]]);
    await cutTickets(deps, { run: 'r', rerun: { scope: 'all' } });
    await review((lease) => [report(lease, { grounded: false, start_line: 9, end_line: 9 })]);
    expect(await blocking()).toEqual([[1, 'critical', 4]]);
    await cutTickets(deps, { run: 'r', rerun: { scope: 'all' } });
    await review(() => []);
    expect(await blocking()).toEqual([[1, 'critical', 4]]);
    expect(await listFindings(db.database.db, 'r')).toMatchObject([
      { number: 1, state: 'open', severity: 'critical', startLine: 4 },
    ]);
  });

  test('RND-1: a command that reports its own finding again has the last word on how bad it is', async () => {
    await setFiles(deps, 'r', [changedFile('r', 'a.ts')]);
    await cutTickets(deps, { run: 'r' });
    await review((lease) => [report(lease)]);
    await cutTickets(deps, { run: 'r', rerun: { scope: 'all' } });
    await review((lease) => [report(lease, { severity: 'low' })]);
    expect(await blocking()).toEqual([]);
    expect(await listFindings(db.database.db, 'r')).toMatchObject([{ state: 'open', severity: 'low' }]);
  });
});

describe('case 10: a force push back to content that was reviewed', () => {
  test('RUN-4, RND-1: what was found in between is put before the reviewer of the old content, once', async () => {
    const clean = changedFile('r', 'a.ts');
    const broken = { ...clean, blobHead: 'f'.repeat(40), key: sha('broken') };
    await setFiles(deps, 'r', [clean]);
    await cutTickets(deps, { run: 'r' });
    await review(() => []);
    await setFiles(deps, 'r', [broken]);
    await cutTickets(deps, { run: 'r' });
    await review((lease) => [report(lease)]);
    expect(await blocking()).toHaveLength(1);
    await setFiles(deps, 'r', [clean]);
    expect(await cutTickets(deps, { run: 'r' })).toMatchObject({ opened: 1 });
    await review(() => []);
    expect(await blocking(), 'the linter does not find it there').toEqual([]);
    expect(await cutTickets(deps, { run: 'r' })).toMatchObject({ opened: 0 });
    await setFiles(deps, 'r', [broken]);
    expect(await cutTickets(deps, { run: 'r' }), 'its own content needs no second look').toMatchObject({
      opened: 0,
    });
    expect(await countTickets(db.database.db, 'r')).toEqual({ ended: 3 });
  });

  test('RND-1: a model that says nothing new of it leaves the finding open, and is not asked again', async () => {
    const clean = changedFile('r', 'a.ts', { level: 'L2' });
    await setFiles(deps, 'r', [clean]);
    await cutTickets(deps, { run: 'r' });
    await review(() => []);
    await setFiles(deps, 'r', [{ ...clean, blobHead: 'f'.repeat(40), key: sha('broken') }]);
    await cutTickets(deps, { run: 'r' });
    await review((lease) => [report(lease)]);
    await setFiles(deps, 'r', [clean]);
    expect(await cutTickets(deps, { run: 'r' })).toMatchObject({ opened: 1 });
    await review(() => []);
    expect(await blocking()).toHaveLength(1);
    expect(await cutTickets(deps, { run: 'r' })).toMatchObject({ opened: 0 });
  });
});
