/** What enrolment makes of the resident pools that a policy names (POOL-1, RUN-9). */
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { changePool } from '../../app/flow/change-pool.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { dispatch } from '../../app/flow/dispatch.ts';
import { enrol } from '../../app/flow/enrol.ts';
import type { GitHub } from '../../app/github/port.ts';
import { findRepository } from '../../db/store/installation.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { INSTALLATION, queueDeps, REPOSITORY, seedRepository } from '../helpers/queue.ts';

let db: TestDatabase;
let deps: Deps;
let policy = '';
beforeAll(async () => {
  db = await testDatabase();
  const github = {
    getBranchHead: async () => 'a'.repeat(40),
    getContent: async (_: unknown, path: string) =>
      path.endsWith('countersign.yml') && !path.includes('workflows') ? Buffer.from(policy) : null,
    getRequiredCheck: async () => null,
  } as unknown as GitHub;
  deps = queueDeps(db.database);
  deps = { ...deps, github: { ...deps.github, installation: async () => github } };
  await seedRepository(db.database);
});
afterAll(() => db.drop());

const write = (pools: string) => {
  policy = `version: 1\nreviewers:\n  model: {uses: openai, model: m}\npools: ${pools}\n`;
  return enrol(deps, { repository: REPOSITORY, baseRef: 'main' });
};
const cause = async () => (await findRepository(db.database.db, REPOSITORY))?.setupCause ?? null;
const used = async () =>
  (await db.database.db.execute<{ pool: string }>(sql`select pool from pool_use order by pool`)).rows.map(
    (row) => row.pool,
  );

test('RUN-9, POOL-1: a pool that nobody registered is set up with one command, and then nothing hinders', async () => {
  await write('[{kind: resident, name: own}]');
  expect(await cause()).toBe(
    `no pool of the policy (own) is registered: countersign pool add own --installation ${INSTALLATION}`,
  );
  expect(await used()).toEqual(['own']);
  await changePool(deps, 'own', { change: 'add', installations: [INSTALLATION], repositories: null });
  const { rows } = await db.database.db.execute(
    sql`select key from graphile_worker.jobs where task_identifier = 'enrol'`,
  );
  expect(rows, 'it is looked at again without being asked').toEqual([{ key: `enrol:${REPOSITORY}:main` }]);
  await write('[{kind: resident, name: own}]');
  expect(await cause()).toBeNull();
  expect(await dispatch(deps, { repository: REPOSITORY })).toMatchObject({ sent: 0 });
});

test('POOL-1, VER-1: a pool that serves verify alone gets no files of it, and does not stand in for one that does', async () => {
  await write('[{kind: resident, name: box, serves: [verify]}, {kind: resident, name: later}]');
  expect(await cause()).toContain('no pool of the policy (later) is registered');
  expect(await used()).toEqual(['later']);
});

test('RUN-9: a pool that is registered while the repository is looked at is not missed by both', async () => {
  await db.database.db.execute(sql`delete from graphile_worker._private_jobs`);
  // the command line, under way: registered, and not yet committed
  const client = await db.database.pool.connect();
  let enrolled: Promise<unknown> = Promise.resolve();
  try {
    await client.query('begin');
    await client.query("select pg_advisory_xact_lock(hashtextextended('countersign pool both', 0))");
    await client.query("insert into resident_pool values ('both', '[\"review\"]', cs_now())");
    await client.query('insert into resident_scope (pool, installation_id) values ($1, $2)', [
      'both',
      INSTALLATION,
    ]);
    enrolled = write('[{kind: resident, name: both}]');
    // it read that nobody registered the pool, and waits for us now
    await vi.waitFor(async () => {
      const { rows } = await client.query(
        `select 1 from pg_locks where locktype = 'advisory' and not granted
           and database = (select oid from pg_database where datname = current_database())`,
      );
      expect(rows).toHaveLength(1);
    }, 20_000);
    await client.query('commit');
  } finally {
    client.release();
  }
  await enrolled;
  const { rows } = await db.database.db.execute(
    sql`select key from graphile_worker.jobs where task_identifier = 'enrol'`,
  );
  expect(rows).toEqual([{ key: `enrol:${REPOSITORY}:main` }]);
  await write('[{kind: resident, name: both}]');
  expect(await cause()).toBeNull();
});

test('RUN-9: a workflow pool beside it must have its file; one that is registered is enough of the residents', async () => {
  await write('[{kind: resident, name: own}, {kind: resident, name: later}, {kind: workflow}]');
  expect(await cause()).toContain('.github/workflows/countersign.yml is missing');
  expect(await used()).toEqual(['later', 'own']);
  await write('[{kind: resident, name: own}, {kind: resident, name: later}]');
  expect(await cause()).toBeNull();
});

test('POOL-1: a policy that names it no more takes the repository from its pool', async () => {
  await write('[{kind: workflow}]');
  expect(await used()).toEqual([]);
});
