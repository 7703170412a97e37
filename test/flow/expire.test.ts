import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { expire } from '../../app/flow/expire.ts';
import { heartbeat } from '../../app/flow/heartbeat.ts';
import { noteWorkflow } from '../../app/flow/note-workflow.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { findRun } from '../../db/store/run.ts';
import { listLiveRunners } from '../../db/store/runner.ts';
import { countTickets } from '../../db/store/ticket.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import {
  changedFile,
  openQueueRun,
  queueDeps,
  REPOSITORY,
  seedRepository,
  setFiles,
} from '../helpers/queue.ts';
import { testRunner } from '../helpers/runner.ts';

let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database);
  await openQueueRun(deps, 'r', 1);
});
afterEach(async () => {
  await db.drop();
});

async function files(n: number): Promise<void> {
  await setFiles(
    deps,
    'r',
    Array.from({ length: n }, (_, i) => changedFile('r', `f${i}`)),
  );
  await cutTickets(deps, { run: 'r' });
}

const LEASE = 5 * 60_000 + 1;

test('case 57: a runner killed after 2 of 5: two results kept, three leases expire and go to another, late submits refused', async () => {
  await files(5);
  const dead = await testRunner(deps);
  const leases = await dead.lease(5);
  for (const lease of leases.slice(0, 2)) await dead.finish(lease);
  await db.moveClock(LEASE);
  await expire(deps);
  expect(await countTickets(db.database.db, 'r')).toEqual({ ended: 2, pending: 3 });
  await db.moveClock(60_000);
  await expire(deps);
  const ids = new Set<string>();
  for (let i = 0; i < 3; i++) {
    const runner = await testRunner(deps);
    const got = await runner.lease(5);
    // suspects are worked one at a time (TKT-6)
    expect(got).toHaveLength(1);
    for (const lease of got) {
      ids.add(lease.ticket.id);
      await runner.finish(lease);
    }
  }
  expect(ids).toEqual(new Set(leases.slice(2).map((lease) => lease.ticket.id)));
  const late = leases[4];
  if (late === undefined) throw new Error('no lease');
  await expect(dead.claim(late)).rejects.toMatchObject({ code: 'unauthorized' });
  const run = await findRun(db.database.db, 'r');
  expect(run !== null && (await verifyRun(deps, run)).verdict.kind).toBe('intact');
});

test('LSE-3: heartbeats keep a lease for 70 minutes (case 59)', async () => {
  await files(1);
  const runner = await testRunner(deps);
  const [lease] = await runner.lease();
  if (lease === undefined) throw new Error('no lease');
  for (let s = 0; s < 70 * 60; s += 30) {
    await db.moveClock(30_000);
    if (s % 600 === 0) await expire(deps);
    expect((await heartbeat(deps, await runner.claim(lease))).control).toBe('none');
  }
  await runner.finish(lease);
  expect(await countTickets(db.database.db, 'r')).toEqual({ ended: 1 });
});

test('TKT-6: three lost grants of one ticket are final; its companions were never counted', async () => {
  await files(3);
  const first = await testRunner(deps);
  expect(await first.lease(3)).toHaveLength(3);
  const { rows: guilty } = await db.database.db.execute<{ id: string }>(
    sql`select id from ticket order by id limit 1`,
  );
  const bad = guilty[0]?.id;
  await db.moveClock(LEASE);
  await expire(deps);
  const losses = async () =>
    (await db.database.db.execute<{ n: number }>(sql`select losses as n from ticket where id = ${bad}`))
      .rows[0]?.n;
  expect(await losses()).toBe(0);
  for (let round = 0; round < 12; round++) {
    await db.moveClock(16 * 60_000);
    await expire(deps);
    const runner = await testRunner(deps);
    const [lease] = await runner.lease(3);
    if (lease === undefined) break;
    if (lease.ticket.id !== bad) await runner.finish(lease);
    else {
      await db.moveClock(LEASE);
      await expire(deps);
    }
  }
  const { rows } = await db.database.db.execute<{ end_code: string; n: number }>(
    sql`select end_code, count(*)::int as n from ticket where state = 'ended' group by end_code order by end_code`,
  );
  expect(rows).toEqual([
    { end_code: 'lost_runner', n: 1 },
    { end_code: 'reviewed', n: 2 },
  ]);
  expect(await losses()).toBe(3);
});

test('LSE-6: a workflow run that completed ends its runner’s leases at once', async () => {
  await files(2);
  const runner = await testRunner(deps);
  await runner.lease(2);
  await db.database.db.execute(
    sql`update runner set workflow_run = 31700000003, attempt = 1 where id = ${runner.id}`,
  );
  const note = { repository: REPOSITORY, workflowRun: '31700000003', attempt: 1, job: null, title: '' };
  expect(await noteWorkflow(deps, { ...note, completed: false, conclusion: null })).toBe('ignored');
  await noteWorkflow(deps, { ...note, completed: true, conclusion: 'cancelled' });
  expect(await countTickets(db.database.db, 'r')).toEqual({ pending: 2 });
  const { rows } = await db.database.db.execute(sql`select distinct state from lease`);
  expect(rows).toEqual([{ state: 'expired' }]);
  // said twice, nothing happens twice
  expect(await noteWorkflow(deps, { ...note, completed: true, conclusion: 'cancelled' })).toBe('ignored');
});

test('case 78: a clock that steps back while leases are open lengthens none by as much, and none lives longer than a lease', async () => {
  await files(1);
  const runner = await testRunner(deps);
  const [lease] = await runner.lease();
  if (lease === undefined) throw new Error('no lease');
  const left = async () => {
    const { rows } = await db.database.db.execute<{ ms: number }>(
      sql`select (extract(epoch from expires_at - cs_now()) * 1000)::int as ms from lease where id = ${lease.id}`,
    );
    return rows[0]?.ms ?? 0;
  };
  await db.moveClock(4 * 60_000);
  expect(await left()).toBeLessThan(61_000);
  await db.moveClock(-5 * 60_000);
  expect(await left()).toBeGreaterThan(5 * 60_000);
  await expire(deps);
  const after = await left();
  expect(after).toBeLessThanOrEqual(5 * 60_000);
  expect(after - 60_000).toBeLessThan(5 * 60_000);
  // it is a lease like the others: it ends in its time, and until then its result counts
  await runner.finish(lease);
  expect(await countTickets(db.database.db, 'r')).toEqual({ ended: 1 });
});

test('LSE-6: a runner that only submits, one short ticket after another, is alive: nobody is started in its place, and it is not ended', async () => {
  await files(9);
  const busy = await testRunner(deps);
  // reviews are over before the first heartbeat, and there is always a next ticket
  for (let n = 0; n < 8; n++) {
    const [lease] = await busy.lease();
    if (lease === undefined) throw new Error('nothing was leased');
    await db.moveClock(50_000);
    await expire(deps);
    expect(await listLiveRunners(db.database.db, REPOSITORY, 60_000)).toMatchObject([{ id: busy.id }]);
    await busy.finish(lease);
  }
});
