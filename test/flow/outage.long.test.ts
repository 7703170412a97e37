import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { expire } from '../../app/flow/expire.ts';
import { sweepProviders } from '../../app/flow/sweep-providers.ts';
import { listReasons } from '../../db/store/reason.ts';
import { countTickets } from '../../db/store/ticket.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { changedFile, openQueueRun, queueDeps, seedRepository, setFiles } from '../helpers/queue.ts';
import { testRunner } from '../helpers/runner.ts';

let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database);
});
afterEach(async () => {
  await db.drop();
});

/** Runs the cut-tickets jobs that were queued, as the worker would. */
async function work(): Promise<void> {
  const { rows } = await db.database.db.execute<{ run: string }>(sql`
    select distinct payload ->> 'run' as run from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = 'cut-tickets'`);
  await db.database.db.execute(
    sql`select graphile_worker.remove_job(key) from graphile_worker.jobs where key like 'cut-tickets:%'`,
  );
  for (const row of rows) await cutTickets(deps, { run: row.run });
}

async function sweep(): Promise<void> {
  await expire(deps);
  await sweepProviders(deps);
  await work();
}

const provider = async (name: string) =>
  (
    await db.database.db.execute<{ settled: boolean; rounds: number }>(
      sql`select settled_until is not null as settled, rounds from provider where name = ${name}`,
    )
  ).rows[0];

test('POOL-3: a two-hour outage: three ends over two tickets settle, one probe an expiry, the first good end revives all', async () => {
  await openQueueRun(deps, 'r', 1);
  await setFiles(
    deps,
    'r',
    Array.from({ length: 8 }, (_, i) => changedFile('r', `f${i}`, { level: 'L2' })),
  );
  // no fallback in service: the other provider is down as well
  await cutTickets(deps, { run: 'r' });
  await db.database.db.execute(sql`update ticket set providers = '["openai"]'`);
  const runner = await testRunner(deps);
  const first = await runner.lease(3);
  for (const lease of first) await runner.finish(lease, { end: 'provider_error' });
  expect(await provider('openai')).toMatchObject({ settled: true, rounds: 0 });
  await work();
  const [reason] = await listReasons(db.database.db, 'r');
  expect(reason).toMatchObject({ code: 'provider_down' });
  expect(reason?.detail).toContain('8 files waiting');
  expect(reason?.dueAtMs).toBeGreaterThan(Date.now() + 5 * 3_600_000);
  const patient = await testRunner(deps);
  expect(await patient.lease(8)).toHaveLength(0);

  let probes = 0;
  let minutes = 0;
  for (; minutes < 120; minutes += 5) {
    await db.moveClock(5 * 60_000);
    await sweep();
    const alive = await testRunner(deps);
    const got = await alive.lease(8);
    expect(got.length).toBeLessThanOrEqual(1);
    for (const lease of got) {
      probes++;
      await alive.finish(lease, { end: 'rate_limited' });
      await work();
    }
  }
  // 5 + 10 + 20 + 40 + 60 minutes apart, not one per minute and ticket
  expect(probes).toBeGreaterThanOrEqual(3);
  expect(probes).toBeLessThanOrEqual(5);
  expect(await countTickets(db.database.db, 'r')).toEqual({ pending: 8 });

  // the provider is back: the next probe revives it and everything goes on without a command
  for (; (await provider('openai'))?.settled === true && minutes < 300; minutes += 5) {
    await db.moveClock(5 * 60_000);
    await sweep();
    const alive = await testRunner(deps);
    for (const lease of await alive.lease(8)) await alive.finish(lease);
  }
  expect(minutes).toBeLessThanOrEqual(120 + 65);
  await sweep();
  expect(await listReasons(db.database.db, 'r')).toEqual([]);
  for (let round = 0; round < 5; round++) {
    const alive = await testRunner(deps);
    for (const lease of await alive.lease(8)) await alive.finish(lease);
  }
  expect(await countTickets(db.database.db, 'r')).toEqual({ ended: 8 });
  await sweep();
  const { rows } = await db.database.db.execute<{ kind: string }>(
    sql`select kind from ledger_row where run_id like 'i/%' order by seq`,
  );
  expect(rows.map((row) => row.kind)).toEqual(
    expect.arrayContaining(['provider.changed', 'provider.changed']),
  );
});

test('POOL-3: while a provider is settled its tickets go to the fallback in service, and come back by a probe', async () => {
  await openQueueRun(deps, 'r', 1);
  await setFiles(
    deps,
    'r',
    Array.from({ length: 6 }, (_, i) => changedFile('r', `f${i}`, { level: 'L2' })),
  );
  await cutTickets(deps, { run: 'r' });
  const runner = await testRunner(deps);
  for (const lease of await runner.lease(3)) await runner.finish(lease, { end: 'quota' });
  await work();
  const { rows } = await db.database.db.execute(sql`select distinct provider from ticket`);
  expect(rows).toEqual([{ provider: 'xai' }]);
  expect(await listReasons(db.database.db, 'r')).toEqual([]);
  const [lease] = await runner.lease(1);
  expect(lease?.ticket.reviewers.map((one) => one.name)).toEqual(['other']);
  if (lease !== undefined) await runner.finish(lease);
  await db.moveClock(5 * 60_000 + 1);
  await sweep();
  const again = await testRunner(deps);
  const got = await again.lease(8);
  const probe = got.filter((one) => one.ticket.reviewers[0]?.name === 'model');
  expect(probe).toHaveLength(1);
  for (const one of probe) await again.finish(one);
  expect(await provider('openai')).toMatchObject({ settled: false });
});

test('LED-4: sweeps that meet say a change once, and one that comes too late begins no chain', async () => {
  await db.database.db.execute(
    sql`update provider set settled_until = cs_now() + interval '5 minutes', noted = false where name = 'openai'`,
  );
  await Promise.all([1, 2, 3].map(() => sweepProviders(deps)));
  const heads = () =>
    db.database.db.execute<{ run_id: string; rows: number }>(
      sql`select h.run_id, (select count(*)::int from ledger_row r where r.run_id = h.run_id) as rows from ledger_head h`,
    );
  expect((await heads()).rows).toMatchObject([{ rows: 1 }]);
});

test('POOL-3: ends of one ticket alone, or with a good one between, settle nothing', async () => {
  await openQueueRun(deps, 'r', 1);
  await setFiles(deps, 'r', [changedFile('r', 'a', { level: 'L2' }), changedFile('r', 'b', { level: 'L2' })]);
  await cutTickets(deps, { run: 'r' });
  const fail = async () => {
    const runner = await testRunner(deps);
    const [lease] = await runner.lease();
    if (lease === undefined) throw new Error('no lease');
    await runner.finish(lease, { end: 'rate_limited', retry_after_ms: 1000 });
    return lease.ticket.id;
  };
  await fail();
  const runner = await testRunner(deps);
  const [good] = await runner.lease();
  if (good !== undefined) await runner.finish(good);
  for (let i = 0; i < 4; i++) {
    // from the fourth on a provider's word is not enough: the back-off is the least
    await db.moveClock(15 * 60_000 + 1);
    await sweep();
    await fail();
  }
  expect(await provider('openai')).toMatchObject({ settled: false });
});

test('TKT-2: a transient end waits retry-after, else 30 s doubling to 15 min; time-outs are final at the third', async () => {
  await openQueueRun(deps, 'r', 1);
  await setFiles(deps, 'r', [changedFile('r', 'a', { level: 'L2' })]);
  await cutTickets(deps, { run: 'r' });
  const waited: number[] = [];
  for (const end of ['timeout', 'timeout', 'timeout'] as const) {
    const runner = await testRunner(deps);
    const [lease] = await runner.lease();
    if (lease === undefined) throw new Error('no lease');
    await runner.finish(lease, { end });
    const { rows } = await db.database.db.execute<{ s: string | null }>(
      sql`select round(extract(epoch from not_before - cs_now()))::text as s from ticket`,
    );
    if (rows[0]?.s != null) waited.push(Number(rows[0].s));
    await db.moveClock(16 * 60_000);
    await sweep();
  }
  expect(waited).toEqual([30, 60]);
  const { rows } = await db.database.db.execute(sql`select state, end_code from ticket`);
  expect(rows).toEqual([{ state: 'ended', end_code: 'timeout' }]);
});
