import { afterAll, beforeAll, expect, test } from 'vitest';
import { upsertRepository } from '../../../db/store/installation.ts';
import { listStarving } from '../../../db/store/waiting.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import {
  INSTALLATION,
  OWNER,
  plainTicket,
  REPOSITORY,
  seedRepository,
  seedRun,
  seedTickets,
} from '../../helpers/queue.ts';

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase({ max: 2 });
  await seedRepository(db.database);
});
afterAll(() => db.drop());

test('POOL-5: where more repositories starve than a sweep takes, none is left behind the same others for ever', async () => {
  const other = '9007199254740999';
  await db.database.transaction((tx) =>
    upsertRepository(tx, {
      id: other,
      installationId: INSTALLATION,
      ownerId: OWNER,
      owner: 'acme',
      name: 'other',
      defaultBranch: 'main',
      private: false,
    }),
  );
  await seedRun(db.database, 'here', 1);
  await seedRun(db.database, 'there', 2);
  await db.database.pool.query(`update run set repository_id = $1 where id = 'there'`, [other]);
  await seedTickets(db.database, [
    plainTicket('here', 'a'),
    { ...plainTicket('there', 'b'), repositoryId: other },
  ]);
  expect((await listStarving(db.database.db, 60_000, 10)).sort()).toEqual([REPOSITORY, other].sort());
  const seen = new Set<string>();
  for (let sweep = 0; sweep < 64 && seen.size < 2; sweep++) {
    for (const one of await listStarving(db.database.db, 60_000, 1)) seen.add(one);
    await db.moveClock(10_000);
  }
  expect([...seen].sort()).toEqual([REPOSITORY, other].sort());
});
