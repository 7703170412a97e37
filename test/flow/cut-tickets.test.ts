import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { lockForAdmission, markAdmitted } from '../../db/store/lease.ts';
import { storePolicy } from '../../db/store/policy.ts';
import { updateRun } from '../../db/store/run.ts';
import { countTickets, findTicket, listActiveTickets } from '../../db/store/ticket.ts';
import { settleLease, takeLeases } from '../../db/store/turn.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import {
  changedFile,
  INSTALLATION,
  openQueueRun,
  POLICY,
  queueDeps,
  REPOSITORY,
  seedLogin,
  seedRepository,
  setFiles,
  sha,
  tokenHash,
} from '../helpers/queue.ts';

let db: TestDatabase;
let deps: Deps;
let n = 0;

beforeAll(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database);
});
afterAll(async () => {
  await db.drop();
});

/** A run of its own; the runs of other tests are closed so that leases are this one's. */
async function run(): Promise<string> {
  await db.database.db.execute(sql`update run set status = 'closed'`);
  const id = `cut-${++n}`;
  await openQueueRun(deps, id, n);
  return id;
}

async function lease(): Promise<{
  id: string;
  ticketId: string;
  admit(): Promise<boolean>;
  end(): Promise<boolean>;
}> {
  const login = await seedLogin(db.database);
  const id = randomUUID();
  const [got] = await takeLeases(db.database.db, {
    runnerId: login.id,
    installationId: INSTALLATION,
    repositoryId: REPOSITORY,
    request: null,
    names: [{ id, tokenHash: tokenHash(id), sessionId: `s-${id}` }],
    ttlMs: 300_000,
  });
  if (got === undefined) throw new Error('nothing to lease');
  return {
    id,
    ticketId: got.ticketId,
    admit: () =>
      db.database.transaction(async (tx) => {
        const proof = { id, runnerId: login.id, tokenHash: tokenHash(id), grant: got.grant };
        if ((await lockForAdmission(tx, proof)) === null) return false;
        await markAdmitted(tx, id);
        return true;
      }),
    end: () =>
      db.database.transaction((tx) =>
        settleLease(tx, id, {
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
          result: sha(id),
          reason: null,
          seq: 2,
        }),
      ),
  };
}

const other = { blobHead: 'f'.repeat(40), key: 'f'.repeat(64) };

describe('TKT-1: a ticket a changed path, idempotent', () => {
  test('TKT-1: cutting twice, and twice at once, makes each ticket once (case 2)', async () => {
    const id = await run();
    await setFiles(
      deps,
      id,
      ['a', 'b', 'c'].map((path) => changedFile(id, path)),
    );
    await Promise.all([cutTickets(deps, { run: id }), cutTickets(deps, { run: id })]);
    expect(await cutTickets(deps, { run: id })).toMatchObject({ opened: 0, dropped: 0 });
    expect(await countTickets(db.database.db, id)).toEqual({ pending: 3 });
  });

  test('TKT-5: L0 paths get none; a deletion, a symlink and a submodule are tickets all the same', async () => {
    const id = await run();
    await setFiles(deps, id, [
      changedFile(id, 'gen', { level: 'L0', key: null, reason: 'generated' }),
      changedFile(id, 'gone', { status: 'D', modeHead: null, blobHead: null, level: 'L2', key: sha('gone') }),
      changedFile(id, 'link', { modeHead: '120000' }),
      changedFile(id, 'sub', { modeHead: '160000' }),
    ]);
    await cutTickets(deps, { run: id });
    const tickets = await listActiveTickets(db.database.db, id);
    expect(tickets.map((one) => one.path.toString()).sort()).toEqual(['gone', 'link', 'sub']);
    expect(tickets.find((one) => one.path.toString() === 'gone')?.reviewers).toEqual(['model']);
  });

  test('TKT-5: a path nobody reads ends route_invalid with its row, and never waits', async () => {
    const id = await run();
    // deletions are not given to this command, and a deletion without a model at L1 has nobody
    await setFiles(deps, id, [
      changedFile(id, 'gone', { status: 'D', modeHead: null, blobHead: null, level: 'L1' }),
    ]);
    await cutTickets(deps, { run: id });
    const { rows } = await db.database.db.execute(
      sql`select state, end_code from ticket where run_id = ${id}`,
    );
    expect(rows).toEqual([{ state: 'ended', end_code: 'route_invalid' }]);
  });

  test('RUN-8: a damaged policy snapshot ends config-snapshot, never another policy', async () => {
    const id = await run();
    await setFiles(deps, id, [changedFile(id, 'a')]);
    await db.database.db.execute(sql`update policy set bytes = 'version: 1'::bytea`);
    await cutTickets(deps, { run: id });
    const { rows } = await db.database.db.execute(
      sql`select state, end_code from ticket where run_id = ${id}`,
    );
    expect(rows).toEqual([{ state: 'ended', end_code: 'config-snapshot' }]);
    await db.database.db.execute(sql`delete from policy`);
  });

  test('RUN-10: a run that may not spend, or is a draft, has no tickets to lease', async () => {
    const id = await run();
    await setFiles(deps, id, [changedFile(id, 'a')]);
    const patch = (values: Parameters<typeof updateRun>[2]) =>
      db.database.transaction((tx) => updateRun(tx, id, values));
    await patch({ allowedRule: null });
    expect(await cutTickets(deps, { run: id })).toMatchObject({ kind: 'waits' });
    await patch({ allowedRule: 'same_repository' });
    await cutTickets(deps, { run: id });
    await patch({ draft: true });
    await cutTickets(deps, { run: id });
    expect(await countTickets(db.database.db, id)).toEqual({ cancelled: 1 });
    await patch({ draft: false });
    await cutTickets(deps, { run: id });
    expect(await countTickets(db.database.db, id)).toEqual({ pending: 1 });
  });

  test('GAT-3: with `review.drafts: on` a draft is reviewed like any other', async () => {
    const id = await run();
    await setFiles(deps, id, [changedFile(id, 'a')]);
    const awake = Buffer.concat([POLICY, Buffer.from('review: {drafts: on}\n')]);
    await db.database.transaction(async (tx) => {
      await updateRun(tx, id, { draft: true, policyHash: await storePolicy(tx, awake) });
    });
    await cutTickets(deps, { run: id });
    expect(await countTickets(db.database.db, id)).toEqual({ pending: 1 });
  });
});

describe('TKT-3: a new head', () => {
  test('TKT-3: the same key stands; other content replaces what is pending; what left is cancelled', async () => {
    const id = await run();
    await setFiles(
      deps,
      id,
      ['a', 'b', 'c'].map((path) => changedFile(id, path)),
    );
    await cutTickets(deps, { run: id });
    await setFiles(deps, id, [changedFile(id, 'a'), changedFile(id, 'b', other)]);
    await cutTickets(deps, { run: id });
    expect(await countTickets(db.database.db, id)).toEqual({ pending: 2, superseded: 1, cancelled: 1 });
  });

  test('TKT-3: content of a leased path is held, three pushes cost one review, and it follows when that ends', async () => {
    const id = await run();
    await setFiles(deps, id, [changedFile(id, 'a')]);
    await cutTickets(deps, { run: id });
    const first = await lease();
    expect(await first.admit()).toBe(true);
    for (const digit of ['1', '2', '3']) {
      await setFiles(deps, id, [changedFile(id, 'a', { blobHead: digit.repeat(40), key: digit.repeat(64) })]);
      await cutTickets(deps, { run: id });
    }
    expect(await countTickets(db.database.db, id)).toEqual({ leased: 1, held: 1, superseded: 2 });
    await expect(lease()).rejects.toThrow('nothing to lease');
    await first.end();
    expect(await countTickets(db.database.db, id)).toEqual({ ended: 1, pending: 1, superseded: 2 });
    const second = await lease();
    expect((await findTicket(db.database.db, second.ticketId))?.key).toBe('3'.repeat(64));
  });

  test('TKT-3: a lease with no session admitted yet is recalled and may not admit', async () => {
    const id = await run();
    await setFiles(deps, id, [changedFile(id, 'a')]);
    await cutTickets(deps, { run: id });
    const first = await lease();
    await setFiles(deps, id, [changedFile(id, 'a', other)]);
    await cutTickets(deps, { run: id });
    expect(await first.admit()).toBe(false);
  });

  test('case 10: a force push back to an earlier head counts its results and re-queues the rest', async () => {
    const id = await run();
    const one = [changedFile(id, 'a'), changedFile(id, 'b')];
    await setFiles(deps, id, one);
    await cutTickets(deps, { run: id });
    await (await lease()).end();
    await setFiles(deps, id, [
      changedFile(id, 'a', other),
      changedFile(id, 'b', { ...other, key: 'e'.repeat(64) }),
    ]);
    await cutTickets(deps, { run: id });
    await setFiles(deps, id, one);
    await cutTickets(deps, { run: id });
    // the reviewed one stands, the superseded one waits again under its own id
    expect(await countTickets(db.database.db, id)).toEqual({ ended: 1, pending: 1, superseded: 2 });
  });
});

describe('TKT-1: /rerun opens the next round of what is over', () => {
  test('TKT-1: all, failed, one block, one path; what is active is not asked for twice', async () => {
    const id = await run();
    await setFiles(deps, id, [changedFile(id, 'a'), changedFile(id, 'b', { blockId: 'other' })]);
    await cutTickets(deps, { run: id });
    expect(await cutTickets(deps, { run: id, rerun: { scope: 'all' } })).toMatchObject({ opened: 0 });
    await (await lease()).end();
    await (await lease()).end();
    expect(await cutTickets(deps, { run: id })).toMatchObject({ opened: 0 });
    expect(await cutTickets(deps, { run: id, rerun: { scope: 'failed' } })).toMatchObject({ opened: 0 });
    expect(await cutTickets(deps, { run: id, rerun: { scope: 'block', value: 'other' } })).toMatchObject({
      opened: 1,
    });
    expect(await cutTickets(deps, { run: id, rerun: { scope: 'path', value: 'a' } })).toMatchObject({
      opened: 1,
    });
    const tickets = await listActiveTickets(db.database.db, id);
    expect(tickets.map((ticket) => ticket.round)).toEqual([1, 1]);
  });
});

test('RUN-7: a paused run leases nothing; its tickets go on when it is open again', async () => {
  const id = await run();
  await setFiles(deps, id, [changedFile(id, 'a')]);
  await cutTickets(deps, { run: id });
  await db.database.transaction((tx) => updateRun(tx, id, { status: 'paused' }));
  await expect(lease()).rejects.toThrow('nothing to lease');
  await db.database.transaction((tx) => updateRun(tx, id, { status: 'open' }));
  expect((await lease()).ticketId).toHaveLength(64);
});
