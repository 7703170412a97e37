import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fingerprint } from '../../../app/domain/finding.ts';
import { blockingFindings, gaps } from '../../../app/domain/run-state/coverage.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { withRun } from '../../../app/flow/append-rows.ts';
import { cutTickets } from '../../../app/flow/cut-tickets.ts';
import type { Deps } from '../../../app/flow/deps.ts';
import { verifyRun } from '../../../app/flow/verify-run.ts';
import type { GitHub } from '../../../app/github/port.ts';
import { connect } from '../../../db/client.ts';
import { endFinding, listFindings } from '../../../db/store/finding.ts';
import { storePolicy } from '../../../db/store/policy.ts';
import { findRun, updateRun } from '../../../db/store/run.ts';
import { countTickets } from '../../../db/store/ticket.ts';
import { asOwner, type TestDatabase, testDatabase } from '../../helpers/database.ts';
import {
  changedFile,
  openQueueRun,
  POLICY,
  queueDeps,
  seedRepository,
  setFiles,
} from '../../helpers/queue.ts';
import { type TestRunner, testRunner } from '../../helpers/runner.ts';

let db: TestDatabase;
let deps: Deps;
let n = 0;
/** Summaries of our own check runs as GitHub keeps them. */
let kept: string[] = [];
const SHOWN = {
  id: '1',
  name: 'countersign',
  headSha: '',
  externalId: '',
  status: 'completed',
  conclusion: 'success',
  annotations: 0,
  appId: '7',
};
/** Two pull requests of this test alone, with content of their own. */
let one = '';
let two = '';

beforeAll(async () => {
  db = await testDatabase();
  const github = { listCheckRuns: async () => kept.map((note) => ({ ...SHOWN, summary: note })) };
  deps = queueDeps(db.database);
  deps = { ...deps, github: { ...deps.github, installation: async () => github as unknown as GitHub } };
  await seedRepository(db.database);
});
beforeEach(async () => {
  kept = [];
  await db.database.db.execute(sql`update run set status = 'closed'`);
  n += 3;
  one = `one-${n}`;
  two = `two-${n}`;
  await openQueueRun(deps, one, n);
  await openQueueRun(deps, two, n + 1);
});
afterAll(() => db.drop());

type Lease = Awaited<ReturnType<TestRunner['lease']>>[number];

const hole = (lease: Lease, title = 'A hole') => ({
  fingerprint: fingerprint({ path: lease.ticket.path, lens: 'security', title, quote: 'open()', ordinal: 0 }),
  side: 'head' as const,
  start_line: 3,
  end_line: 3,
  severity: 'critical' as const,
  lens: 'security',
  title,
  body: 'why',
  quote: 'open()',
  suggestion: null,
  grounded: true,
  reviewer: lease.ticket.reviewers[0]?.name ?? '',
});

/** A runner takes what is next and says this of it. */
async function review(findings: (lease: Lease) => ReturnType<typeof hole>[] = () => []): Promise<void> {
  const runner = await testRunner(deps);
  const [lease] = await runner.lease();
  if (lease === undefined) throw new Error('nothing to lease');
  const found = findings(lease);
  await runner.finish(lease, { verdict: found.length > 0 ? 'findings' : 'approve', findings: found });
}

async function state(id: string) {
  const run = await findRun(db.database.db, id);
  if (run === null) throw new Error('no run');
  return foldRows((await verifyRun(deps, run)).rows);
}
const blocking = async (id: string) => blockingFindings(await state(id), 'high').map((one) => one.number);
const wants = (id: string, ...paths: string[]) =>
  setFiles(
    deps,
    id,
    paths.map((path) => changedFile(id, `${n}/${path}`, { level: 'L2' })),
  );
const cut = (run: string) => cutTickets(deps, { run });
const tickets = (id: string) => countTickets(db.database.db, id);
/** Runs that a result asked to look again. */
async function woken(): Promise<string[]> {
  const { rows } = await db.database.db.execute<{ run: string }>(
    sql`select payload->>'run' as run from graphile_worker._private_jobs j
        join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = 'cut-tickets' order by 1`,
  );
  return rows.map((row) => row.run);
}

describe('TKT-4: a review counts wherever the same is wanted', () => {
  test('TKT-4: another pull request with the same content needs no runner, and its record names the row', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    await review();
    await wants(two, 'a.ts', 'b.ts');
    expect(await cut(two)).toMatchObject({ opened: 2, reused: 1 });
    expect(await tickets(two)).toEqual({ skipped: 1, pending: 1 });
    const there = await state(one);
    const here = await state(two);
    const key = changedFile(two, `${n}/a.ts`, { level: 'L2' }).key ?? '';
    expect(here.keys.get(key)).toMatchObject({ counted: true });
    const run = await findRun(db.database.db, two);
    if (run === null) throw new Error('no run');
    const { rows } = await verifyRun(deps, run);
    expect(rows.find((row) => row.kind === 'ticket.reused')?.data).toMatchObject({
      run: one,
      seq: there.keys.get(key)?.countedSeq,
      findings: [],
    });
    expect(await cut(two), 'once').toMatchObject({ opened: 0, reused: 0 });
  });

  test('TKT-4: the findings come along, with numbers of this run and the same fingerprints', async () => {
    await wants(two, 'z.ts');
    await cut(two);
    await review((lease) => [hole(lease)]);
    await wants(one, 'a.ts');
    await cut(one);
    await review((lease) => [hole(lease)]);
    await wants(two, 'a.ts', 'z.ts');
    expect(await cut(two)).toMatchObject({ reused: 1 });
    expect(await blocking(two)).toEqual([1, 2]);
    const [there] = await listFindings(db.database.db, one);
    const [, here] = await listFindings(db.database.db, two);
    expect(here).toMatchObject({ number: 2, state: 'open', key: there?.key, title: there?.title });
    expect(here?.fingerprint).toBe(there?.fingerprint);
    expect(gaps(await state(two)).filter((gap) => gap.includes('finding'))).toEqual([]);
  });

  test('TKT-4: no second pull request is a lottery: what any round of any of them found stands in all', async () => {
    await wants(one, 'a.ts');
    await wants(two, 'a.ts');
    await cut(one);
    await cut(two);
    // both were under way before either had ended
    const [first, second] = [await testRunner(deps), await testRunner(deps)];
    const [a] = await first.lease();
    const [b] = await second.lease();
    if (a === undefined || b === undefined) throw new Error('nothing to lease');
    await first.finish(a, { verdict: 'approve', findings: [] });
    expect(await woken()).toContain(b.ticket.run);
    await second.finish(b, { verdict: 'findings', findings: [hole(b)] });
    await cut(a.ticket.run);
    expect(await blocking(a.ticket.run)).toEqual([1]);
    // a rerun there finds more
    await cutTickets(deps, { run: b.ticket.run, rerun: { scope: 'all' } });
    await review((lease) => [hole(lease, 'Another hole')]);
    await cut(a.ticket.run);
    expect(await blocking(a.ticket.run)).toEqual([1, 2]);
    // and a third that comes later, of two results of which the last was clean
    await cutTickets(deps, { run: b.ticket.run, rerun: { scope: 'all' } });
    await review();
    await openQueueRun(deps, `three-${n}`, n + 2);
    await wants(`three-${n}`, 'a.ts');
    expect(await cut(`three-${n}`)).toMatchObject({ reused: 1 });
    expect(await blocking(`three-${n}`)).toEqual([1, 2]);
  });

  test('TKT-4: what waits here while it is reviewed there is not reviewed again; a rerun by a person is', async () => {
    await wants(one, 'a.ts');
    await wants(two, 'a.ts');
    await cut(one);
    await review();
    await cut(two);
    expect(await tickets(two)).toEqual({ skipped: 1 });
    expect(await cutTickets(deps, { run: two, rerun: { scope: 'failed' } })).toMatchObject({ opened: 0 });
    expect(await cutTickets(deps, { run: two, rerun: { scope: 'all' } })).toMatchObject({ opened: 1 });
    await cut(two);
    expect(await tickets(two)).toEqual({ skipped: 1, pending: 1 });
    await review((lease) => [hole(lease)]);
    expect(await blocking(two)).toEqual([1]);
    await cut(one);
    expect(await blocking(one), 'it counts for both').toEqual([1]);
  });

  test('TKT-4, FND-2: a dismissal there closes nothing here, and one here stands', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    await review((lease) => [hole(lease)]);
    await withRun(deps, one, async (unit) => {
      const seq = unit.append('finding.ended', {
        block: null,
        actor: { kind: 'person', id: '5', via: 'comment' },
        cause: { kind: 'comment', id: '9', sha256: null },
        data: { finding: 1, state: 'dismissed', reason: 'false alarm', head: 'a'.repeat(40), text: null },
      });
      await endFinding(unit.tx, one, 1, 'dismissed', seq);
    });
    expect(await blocking(one)).toEqual([]);
    await wants(two, 'a.ts');
    await cut(two);
    expect(await blocking(two)).toEqual([1]);
    // two found it too: that word does not undo the dismissal in one
    await cut(one);
    expect(await blocking(one)).toEqual([]);
  });

  test('RND-1: a finding of other content still waits for its reviewer, though the key is known', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    await review();
    await setFiles(deps, two, [
      changedFile(two, `${n}/a.ts`, { level: 'L2', key: 'e'.repeat(64), blobHead: 'e'.repeat(40) }),
    ]);
    await cut(two);
    await review((lease) => [hole(lease)]);
    await wants(two, 'a.ts');
    expect(await cut(two)).toMatchObject({ opened: 1, reused: 1 });
    expect(await tickets(two)).toEqual({ ended: 1, pending: 1 });
  });
});

describe('TKT-4: what gives nothing', () => {
  const nothing = async () => {
    await wants(two, 'a.ts');
    expect(await cut(two)).toMatchObject({ opened: 1, reused: 0 });
    expect(await tickets(two)).toEqual({ pending: 1 });
  };

  test('TKT-4, attack 34: a run that does not verify', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    await review();
    await asOwner(db.url, async (owner) => {
      await owner.query('alter table ledger_row disable trigger user');
      await owner.query(
        "update ledger_row set mac = decode(repeat('00', 32), 'hex') where run_id = $1 and seq = 1",
        [one],
      );
      await owner.query('alter table ledger_row enable trigger user');
    });
    // another process: this one still has the rows it verified in its memory
    const mine = deps;
    deps = { ...deps, database: await connect(db.url, { max: 2 }) };
    await nothing();
    await deps.database.close();
    deps = mine;
  });

  /** A round that found something is published, and its rows are cut from the end in the database. */
  async function cutBack(id: string): Promise<void> {
    const before = await headOf(id);
    await cutTickets(deps, { run: id, rerun: { scope: 'all' } });
    await review((lease) => [hole(lease)]);
    const after = await headOf(id);
    kept = [`\`\`\`text\n${deps.signer.signHead(after)}\`\`\`\n`];
    await asOwner(db.url, async (owner) => {
      await owner.query('alter table ledger_row disable trigger user');
      await owner.query('alter table ledger_head disable trigger user');
      await owner.query('delete from ledger_row where run_id = $1 and seq > $2', [id, before.seq]);
      await owner.query('update ledger_head set seq = $2, hash = $3 where run_id = $1', [
        id,
        before.seq,
        before.hash,
      ]);
      await owner.query('alter table ledger_head enable trigger user');
      await owner.query('alter table ledger_row enable trigger user');
      await owner.query('update ticket set result = null where run_id = $1 and round > 0', [id]);
    });
  }
  const headOf = async (id: string) => {
    const run = await findRun(db.database.db, id);
    if (run === null) throw new Error('no run');
    const { verdict } = await verifyRun(deps, run);
    if (verdict.kind !== 'intact') throw new Error(verdict.kind);
    return { log: deps.signer.logOf(run.installationId), run: id, ...verdict.head };
  };

  test('TKT-4, LED-9, attack 35: a run whose tail was cut, back to before what was found, gives no clean review', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    await review();
    await cutBack(one);
    const mine = deps;
    deps = { ...deps, database: await connect(db.url, { max: 2 }) };
    try {
      await nothing();
      const reasons = await db.database.db.execute<{ code: string; detail: string }>(
        sql`select code, detail from reason where run_id = ${one}`,
      );
      expect(reasons.rows, 'and it is known from here on').toEqual([
        { code: 'ledger_invalid', detail: expect.stringContaining('truncated') },
      ]);
    } finally {
      await deps.database.close();
      deps = mine;
    }
  });

  test('TKT-4: a partial result, one that could not review, and one that came after its lease', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    const runner = await testRunner(deps);
    const [lease] = await runner.lease();
    if (lease === undefined) throw new Error('nothing to lease');
    await runner.finish(lease, { verdict: 'approve', findings: [], partial: true });
    await nothing();
  });

  test('TKT-4: `review.reuse: off`', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    await review((one) => [hole(one)]);
    await db.database.transaction(async (tx) => {
      const bytes = Buffer.concat([POLICY, Buffer.from('review: {reuse: off}\n')]);
      await updateRun(tx, two, { policyHash: await storePolicy(tx, bytes) });
    });
    await nothing();
  });

  test('TKT-4: another installation or another repository', async () => {
    await wants(one, 'a.ts');
    await cut(one);
    await review();
    await openQueueRun(deps, `${two}-away`, n + 2);
    await db.database.db.execute(sql`update ticket set installation_id = 999 where run_id = ${one}`);
    await nothing();
    two = `${two}-away`;
    await db.database.db.execute(
      sql`update ticket set installation_id = run.installation_id, repository_id = 999 from run
          where run.id = run_id and run_id = ${one}`,
    );
    await nothing();
  });
});
