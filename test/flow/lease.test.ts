import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acceptResult } from '../../app/flow/accept-result.ts';
import { admit } from '../../app/flow/admit.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { giveBack } from '../../app/flow/give-back.ts';
import { heartbeat } from '../../app/flow/heartbeat.ts';
import type { TicketResult } from '../../app/protocol/runner.ts';
import { upsertRepository } from '../../db/store/installation.ts';
import { countTickets } from '../../db/store/ticket.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import {
  changedFile,
  INSTALLATION,
  OWNER,
  openQueueRun,
  queueDeps,
  seedRepository,
  setFiles,
} from '../helpers/queue.ts';
import { testRunner } from '../helpers/runner.ts';

const OTHER = '9007199254740999';
let db: TestDatabase;
let deps: Deps;
beforeAll(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database);
  await db.database.transaction((tx) =>
    upsertRepository(tx, {
      id: OTHER,
      installationId: INSTALLATION,
      ownerId: OWNER,
      owner: 'acme',
      name: 'private',
      defaultBranch: 'main',
      private: true,
    }),
  );
});
afterAll(() => db.drop());

test('LSE-1, LSE-3, RID-1: a runner of one repository leases nothing of another, and a lease it stole the secrets of is of no use to it', async () => {
  await openQueueRun(deps, 'theirs', 1, { installationId: INSTALLATION, repositoryId: OTHER });
  await setFiles(deps, 'theirs', [changedFile('theirs', 'a'), changedFile('theirs', 'b')]);
  await cutTickets(deps, { run: 'theirs' });
  const stranger = await testRunner(deps);
  const owner = await testRunner(deps, OTHER);
  expect(await stranger.lease(16)).toEqual([]);
  const [lease] = await owner.lease(1);
  if (lease === undefined) throw new Error('nothing to lease');
  const stolen = await stranger.claim(lease);
  const reviewer = lease.ticket.reviewers[0]?.name ?? '';
  const result: TicketResult = {
    end: 'reviewed',
    detail: null,
    retry_after_ms: null,
    blobs: lease.ticket.blob,
    verdict: 'approve',
    partial: false,
    sessions: [],
    findings: [],
    unplaced: [],
    brief_sha256: null,
    ms: 1,
  };
  for (const act of [
    () => heartbeat(deps, stolen),
    () => admit(deps, stolen, { reviewer, purpose: 'review', promptTokens: 1 }),
    () => acceptResult(deps, stolen, result),
    () => giveBack(deps, stolen, 'stopping'),
  ])
    await expect(act()).rejects.toMatchObject({ code: 'owner_mismatch' });
  // the right runner with a wrong token or grant is no better
  const mine = await owner.claim(lease);
  await expect(heartbeat(deps, { ...mine, token: `${mine.token}x` })).rejects.toMatchObject({
    code: 'forbidden',
  });
  await expect(heartbeat(deps, { ...mine, grant: mine.grant + 1 })).rejects.toMatchObject({
    code: 'superseded',
  });
  expect(await countTickets(db.database.db, 'theirs')).toEqual({ leased: 1, pending: 1 });
  const { rows } = await db.database.db.execute(
    sql`select kind from ledger_row where run_id = 'theirs' and kind like 'ticket%'`,
  );
  expect(rows).toEqual([]);
  await owner.finish(lease);
  expect(await countTickets(db.database.db, 'theirs')).toEqual({ ended: 1, pending: 1 });
});
