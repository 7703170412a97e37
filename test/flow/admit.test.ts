import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bookSpend } from '../../app/flow/book-spend.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { expire } from '../../app/flow/expire.ts';
import { recallLease } from '../../db/store/lease.ts';
import { updateRun } from '../../db/store/run.ts';
import { leaseModels } from '../helpers/admit.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { openQueueRun, queueDeps, seedRepository } from '../helpers/queue.ts';

let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
});
afterEach(() => db.drop());

async function stage(slots: number): Promise<void> {
  await seedRepository(db.database, { slots, providers: ['command', 'openai', 'xai'] });
  await openQueueRun(deps, 'r', 1);
}

const slots = async () => {
  const { rows } = await db.database.db.execute<{ provider: string; held: number; all: number }>(sql`
    select provider, count(session_id)::int as held, count(*)::int as all from slot group by provider order by provider`);
  return Object.fromEntries(rows.map((row) => [row.provider, `${row.held} of ${row.all}`]));
};
const states = async () => {
  const { rows } = await db.database.db.execute<{ reviewer: string; state: string }>(
    sql`select reviewer, state from session order by turn`,
  );
  return rows.map((row) => `${row.reviewer} ${row.state}`);
};
const capacity = { outcome: 'provider_capacity' };

describe('ADM-1: capacity is counted once', () => {
  test("the lease's slot is its first session's; a second reviewer, a fallback and a repair take their own", async () => {
    await stage(2);
    const [lease] = await leaseModels(deps, 'r', ['a.ts']);
    if (lease === undefined) throw new Error('no lease');
    expect(await slots()).toEqual({ openai: '1 of 2', xai: '0 of 2' });
    const first = await lease.admit();
    expect(first).toEqual({ outcome: 'admitted', session: lease.session });
    const second = await lease.admit({ reviewer: 'second' });
    expect(await slots()).toEqual({ openai: '1 of 2', xai: '1 of 2' });
    await lease.end(lease.session ?? '', 10);
    expect(await slots(), 'free when its session ended').toEqual({ openai: '0 of 2', xai: '1 of 2' });
    const repair = await lease.admit({ purpose: 'repair' });
    expect(repair.outcome).toBe('admitted');
    expect(repair).not.toEqual(first);
    expect((await lease.admit({ reviewer: 'other', purpose: 'fallback' })).outcome).toBe('admitted');
    expect(await slots()).toEqual({ openai: '1 of 2', xai: '2 of 2' });
    if (second.outcome === 'admitted') await lease.end(second.session, 10);
    expect(await slots()).toEqual({ openai: '1 of 2', xai: '1 of 2' });
  });

  test('two asks at once for one reviewer share no slot', async () => {
    await stage(4);
    const [lease] = await leaseModels(deps, 'r', ['a.ts']);
    const both = await Promise.all([lease?.admit(), lease?.admit()]);
    expect(new Set(both.map((one) => (one?.outcome === 'admitted' ? one.session : null))).size).toBe(2);
    expect(await slots()).toEqual({ openai: '2 of 4', xai: '0 of 4' });
  });

  test('who waits is served in the order of asking, before any new lease, and holds nothing meanwhile', async () => {
    await stage(2);
    const leases = await leaseModels(deps, 'r', ['a.ts', 'b.ts']);
    const [a, b] = leases;
    if (a === undefined || b === undefined) throw new Error('no leases');
    const held = await Promise.all([a.admit(), b.admit()]);
    const sessions = held.map((one) => (one.outcome === 'admitted' ? one.session : ''));
    // both want a second session of a provider that is full: b first, then a
    expect(await b.admit({ purpose: 'repair' })).toMatchObject(capacity);
    expect(await a.admit({ purpose: 'repair' })).toMatchObject(capacity);
    expect(await states()).toEqual(['model admitted', 'model admitted', 'model waiting', 'model waiting']);
    await a.end(sessions[0] ?? '', 1);
    expect(await leaseModels(deps, 'r', ['c.ts']), 'the slot is on its way to b').toEqual([]);
    expect(await a.admit({ purpose: 'repair' }), 'asked again, and no sooner for it').toMatchObject(capacity);
    const next = await b.admit({ purpose: 'repair' });
    expect(next.outcome).toBe('admitted');
    expect(await slots()).toEqual({ openai: '2 of 2', xai: '0 of 2' });
    if (next.outcome === 'admitted') await b.end(next.session, 1);
    expect((await a.admit({ purpose: 'repair' })).outcome).toBe('admitted');
  });

  test('a slot handed to somebody who does not ask any more, or whose lease ended, goes on to the next', async () => {
    await stage(1);
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    if (a === undefined) throw new Error('no lease');
    const first = await a.admit();
    expect(await a.admit({ purpose: 'repair' })).toMatchObject(capacity);
    await db.moveClock(30_000);
    expect(await a.admit({ reviewer: 'model', purpose: 'fallback' })).toMatchObject(capacity);
    await db.moveClock(31_000);
    // the first has not asked for a minute
    if (first.outcome === 'admitted') await a.end(first.session, 1);
    expect((await a.admit({ purpose: 'fallback' })).outcome).toBe('admitted');
    await bookSpend(deps);
    expect(await states()).toEqual(['model ended', 'model admitted']);
    expect(await a.admit({ purpose: 'repair' })).toMatchObject(capacity);
    await db.moveClock(300_001);
    await expire(deps);
    expect(await states(), 'nobody waits under a lease that is over').toEqual(['model ended', 'model ended']);
    expect(await slots()).toEqual({ openai: '0 of 1', xai: '0 of 1' });
  });

  test('a handed slot whose owner fell silent is taken back', async () => {
    await stage(1);
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    const first = await a?.admit();
    await a?.admit({ purpose: 'repair' });
    if (first?.outcome === 'admitted') await a?.end(first.session, 1);
    expect(await slots()).toEqual({ openai: '1 of 1', xai: '0 of 1' });
    await db.moveClock(61_000);
    await bookSpend(deps);
    expect(await slots()).toEqual({ openai: '0 of 1', xai: '0 of 1' });
  });

  test('ADM-1, CTL-2: lease and generation are looked at again after the wait', async () => {
    await stage(1);
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    if (a === undefined) throw new Error('no lease');
    const first = await a.admit();
    expect(await a.admit({ purpose: 'repair' })).toMatchObject(capacity);
    if (first.outcome === 'admitted') await a.end(first.session, 1);
    await db.database.transaction((tx) => updateRun(tx, 'r', { generation: 2 }));
    await expect(a.admit({ purpose: 'repair' })).rejects.toMatchObject({ code: 'fenced' });
    await db.database.transaction((tx) => updateRun(tx, 'r', { generation: 1 }));
    await db.moveClock(300_001);
    await expect(a.admit({ purpose: 'repair' })).rejects.toMatchObject({ code: 'expired' });
  });

  test('TKT-3: a lease that only waits for a slot is still recalled', async () => {
    await stage(2);
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    if (a === undefined) throw new Error('no lease');
    await db.database.db.execute(sql`update slot set session_id = 'busy' || no where provider = 'xai'`);
    expect(await a.admit({ reviewer: 'second' })).toMatchObject(capacity);
    expect(await db.database.transaction((tx) => recallLease(tx, a.id))).toBe(true);
    await expect(a.admit()).rejects.toMatchObject({ code: 'fenced' });
  });

  test('a reviewer that the ticket does not name is refused, and nothing is kept of it', async () => {
    await stage(1);
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    await expect(a?.admit({ reviewer: 'nobody' })).rejects.toMatchObject({ code: 'bad_request' });
    expect(await states()).toEqual([]);
  });
});
