/** What a crash of the server may take of a lease, which is answered before its commit is on disk (LSE-1, LSE-3). */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connect, type Database, type Reader } from '../../../db/client.ts';
import { startEmbedded } from '../../../db/embedded.ts';
import { migrateDatabase } from '../../../db/migrate.ts';
import { findLease, renewLease } from '../../../db/store/lease.ts';
import { findTicket } from '../../../db/store/ticket.ts';
import { type Granted, takeLeases } from '../../../db/store/turn.ts';
import { testDatabase } from '../../helpers/database.ts';
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

/** Runs `fn` with a pool on a server of the folder, and kills that server while the pool is at it. */
async function untilCrash(folder: string, fn: (database: Database) => Promise<void>): Promise<void> {
  const server = await startEmbedded({ folder });
  await migrateDatabase(server.url());
  const database = await connect(server.url(), { max: 4 });
  await fn(database);
  process.kill(server.pid, 'SIGKILL');
  await database.close();
  await server.stop();
}

async function take(reader: Reader, runnerId: string): Promise<Granted> {
  const id = randomBytes(8).toString('hex');
  const [got] = await takeLeases(reader, {
    runnerId,
    installationId: INSTALLATION,
    repositoryId: REPOSITORY,
    request: null,
    names: [{ id, tokenHash: tokenHash(id), sessionId: `s${id}` }],
    ttlMs: 300_000,
  });
  if (got === undefined) throw new Error('no lease');
  return got;
}

test('LSE-3: a crash takes a lease whole or not at all, and none that somebody acted on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-crash-'));
  let used: Granted | undefined;
  let unused: Granted | undefined;
  let runner = '';
  await untilCrash(folder, async (database) => {
    await seedRepository(database, { slots: 2 });
    await seedRun(database, 'r1', 1);
    await seedTickets(
      database,
      ['a', 'b'].map((path) => plainTicket('r1', path, { provider: 'openai' })),
    );
    runner = (await seedLogin(database)).id;
    used = await take(database.db, runner);
    const proof = { id: used.leaseId, runnerId: runner, tokenHash: tokenHash(used.leaseId), grant: 1 };
    expect(await renewLease(database.db, proof, 600_000)).not.toBeNull();
    unused = await take(database.db, runner);
  });
  const server = await startEmbedded({ folder });
  const database = await connect(server.url(), { max: 4 });
  try {
    expect((await findLease(database.db, used?.leaseId ?? ''))?.state).toBe('live');
    const kept = await findLease(database.db, unused?.leaseId ?? '');
    const ticket = await findTicket(database.db, unused?.ticketId ?? '');
    expect([ticket?.state, ticket?.leaseId]).toEqual(kept === null ? ['pending', null] : ['leased', kept.id]);
    const { rows } = await database.pool.query(
      'select count(*)::int as n from slot where session_id is not null',
    );
    expect(rows).toEqual([{ n: kept === null ? 1 : 2 }]);
    // what was lost waits again
    if (kept === null) expect((await take(database.db, runner)).ticketId).toBe(ticket?.id);
  } finally {
    await database.close();
    await server.stop();
    for (const path of new Set([folder, server.folder])) rmSync(path, { recursive: true, force: true });
  }
});

test('LED-5: only leases that are a transaction of their own are answered early, and nothing after them on that connection', async () => {
  const db = await testDatabase({ max: 1 });
  const mode = async (reader: Reader) =>
    (await reader.$client.query(`select current_setting('synchronous_commit') as mode`)).rows[0].mode;
  try {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    await seedTickets(db.database, [plainTicket('r1', 'a'), plainTicket('r1', 'b')]);
    const { id } = await seedLogin(db.database);
    const before = await mode(db.database.db);
    await take(db.database.db, id);
    expect(await mode(db.database.db)).toBe(before);
    await db.database.transaction(async (tx) => {
      await take(tx, id);
      expect(await mode(tx)).toBe('on');
    });
  } finally {
    await db.drop();
  }
});
