/** Which tickets get the lanes that come free where others of the same path are held behind them (TKT-3, LSE-1). */
import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type NewTicket, putTickets } from '../../../db/store/ticket.ts';
import { settleLease, takeLeases } from '../../../db/store/turn.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import {
  INSTALLATION,
  plainTicket,
  REPOSITORY,
  seedLogin,
  seedRepository,
  seedRun,
  seedTickets,
  tokenHash,
} from '../../helpers/queue.ts';

let db: TestDatabase;
let runner: string;
beforeEach(async () => {
  db = await testDatabase();
  await seedRepository(db.database);
  await seedRun(db.database, 'r1', 1);
  runner = (await seedLogin(db.database)).id;
});
afterEach(async () => {
  await db.drop();
});

async function take() {
  const id = randomBytes(8).toString('hex');
  const [got] = await takeLeases(db.database.db, {
    runnerId: runner,
    installationId: INSTALLATION,
    repositoryId: REPOSITORY,
    request: null,
    names: [{ id, tokenHash: tokenHash(id), sessionId: `s${id}` }],
    ttlMs: 300_000,
  });
  return got;
}

/** Ends a lease as reviewed. */
const end = (leaseId: string) =>
  db.database.transaction((tx) =>
    settleLease(tx, leaseId, {
      leaseState: 'ended',
      ticketState: 'ended',
      front: false,
      notBeforeMs: null,
      losses: 0,
      timeouts: 0,
      transients: 0,
      suspect: false,
      end: 'reviewed',
      verdict: 'approve',
      partial: false,
      result: null,
      reason: null,
      seq: 1,
    }),
  );

/** Leases the only ticket there is, queues `waiting` and holds `held` behind it, ends it; then what is leased, one after another. */
async function orderAfter(
  first: NewTicket,
  waiting: readonly NewTicket[],
  held: readonly NewTicket[],
): Promise<string[]> {
  await seedTickets(db.database, [first]);
  const got = await take();
  expect(got?.ticketId).toBe(first.id);
  await seedTickets(db.database, waiting);
  await db.database.transaction((tx) =>
    putTickets(
      tx,
      held.map((one) => ({ ...one, path: first.path, state: 'held' as const })),
    ),
  );
  const order: string[] = [];
  for (let next = got; next !== undefined; next = await take()) {
    if (next !== got) order.push(next.ticketId);
    await end(next.leaseId);
  }
  return order;
}

const one = (name: string, turn: number, more: Partial<NewTicket> = {}) =>
  plainTicket('r1', name, { parallel: 1, turn, ...more });

test('TKT-3, LSE-1: what comes forward takes its own place among what waits for the lane', async () => {
  const [a, b, c] = [one('b', 2), one('c', 4), one('later', 3)];
  expect(await orderAfter(one('a', 1), [a, b], [c])).toEqual([a.id, c.id, b.id]);
});

test('TKT-3, LSE-1: what comes forward and was first is leased before what came after it', async () => {
  const [waits, held] = [one('b', 3), one('sooner', 2)];
  expect(await orderAfter(one('a', 1), [waits], [held])).toEqual([held.id, waits.id]);
});

test('TKT-3: what comes forward for another provider goes into the window of that one', async () => {
  const [waits, held] = [one('b', 2), one('elsewhere', 3, { provider: 'openai' })];
  const order = await orderAfter(one('a', 1), [waits], [held]);
  expect([...order].sort()).toEqual([held.id, waits.id].sort());
});

test('TKT-2, TKT-3: what comes forward waits out its time', async () => {
  const held = one('due', 2);
  await seedTickets(db.database, [one('a', 1)]);
  const got = await take();
  await db.database.transaction((tx) => putTickets(tx, [{ ...held, path: one('a', 1).path, state: 'held' }]));
  await db.database.db.execute(
    sql`update ticket set not_before = cs_now() + interval '1 hour' where id = ${held.id}`,
  );
  await end(got?.leaseId ?? '');
  expect(await take()).toBeUndefined();
  const { rows } = await db.database.db.execute(sql`select state, lane from ticket where id = ${held.id}`);
  expect(rows).toEqual([{ state: 'pending', lane: null }]);
});
