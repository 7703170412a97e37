import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { upsertInstallation, upsertRepository } from '../../../db/store/installation.ts';
import {
  addPoolToken,
  addResidentPool,
  findPoolToken,
  listPoolPlaces,
  listRegistered,
  markServed,
  putPoolUse,
  putScope,
  removeResidentPool,
  revokePoolTokens,
  servesRepository,
} from '../../../db/store/pool.ts';
import { ensureProviders } from '../../../db/store/provider.ts';
import { insertRun } from '../../../db/store/run.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import { plainTicket, seedTickets, sha, tokenHash } from '../../helpers/queue.ts';

const ONE = '9007199254740995';
const TWO = '9007199254740996';
let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});
afterAll(() => db.drop());
beforeEach(async () => {
  for (const table of [
    'ticket',
    'slot',
    'provider',
    'pool_use',
    'resident_scope',
    'resident_pool',
    'pool_token',
  ])
    await db.database.db.execute(sql`delete from ${sql.identifier(table)}`);
  await db.database.transaction(async (tx) => {
    for (const id of [ONE, TWO]) {
      await upsertInstallation(tx, { id, accountId: '1', accountLogin: 'acme', status: 'active' });
      await ensureProviders(tx, id, ['command', 'openai'], 2);
    }
    await addResidentPool(tx, 'own', ['review']);
    await putScope(tx, 'own', ONE, null);
  });
});

let runs = 0;
/** A repository of an installation with so many tickets ready. */
async function place(
  id: string,
  of: { installation?: string; uses?: string; tickets?: number; provider?: string } = {},
) {
  const { installation = ONE, uses = 'own', tickets = 1, provider = 'command' } = of;
  const run = `run-${++runs}`;
  await db.database.transaction(async (tx) => {
    await upsertRepository(tx, {
      id,
      installationId: installation,
      ownerId: '1',
      owner: 'acme',
      name: `r${id}`,
      defaultBranch: 'main',
      private: false,
    });
    await insertRun(tx, {
      id: run,
      installationId: installation,
      repositoryId: id,
      pull: String(runs),
      epoch: 1,
      status: 'open',
      toldHead: 'a'.repeat(40),
      baseRef: 'main',
      policyHash: sha('policy'),
      headAt: sql`cs_now()` as unknown as Date,
      openedAt: sql`cs_now()` as unknown as Date,
    });
    await putPoolUse(tx, { installationId: installation, repositoryId: id, baseRef: 'main' }, [uses]);
  });
  if (tickets > 0)
    await seedTickets(
      db.database,
      Array.from({ length: tickets }, (_, i) => ({
        ...plainTicket(run, `f${i}`, { provider }),
        installationId: installation,
        repositoryId: id,
      })),
    );
}

const look = async (after: Record<string, string> = {}, most = 64) => {
  const seen = await listPoolPlaces(db.database.db, 'own', new Map(Object.entries(after)), most);
  return { at: seen.places.map((one) => one.repositoryId), after: Object.fromEntries(seen.after), seen };
};

describe('LSE-1: where the runners of a resident pool find work', () => {
  test('LSE-1: repositories that name the pool and have a ticket ready, and no others', async () => {
    await place('11');
    await place('12', { tickets: 0 });
    await place('13', { uses: 'another' });
    await place('14', { installation: TWO });
    await place('15');
    expect((await look()).at).toEqual(['11', '15']);
    await db.database.transaction((tx) => putScope(tx, 'own', TWO, null));
    expect((await look()).at).toEqual(['11', '15', '14']);
    await db.database.transaction((tx) => putScope(tx, 'own', ONE, ['15']));
    expect((await look()).at, 'registered for one repository').toEqual(['15', '14']);
  });

  test('LSE-1: not where nothing may run: a suspended installation, a removed or unready repository', async () => {
    for (const id of ['11', '12', '13']) await place(id);
    await db.database.db.execute(sql`update repository set status = 'removed' where id = 11`);
    await db.database.db.execute(sql`update repository set setup_cause = 'no keys' where id = 12`);
    expect((await look()).at).toEqual(['13']);
    await db.database.db.execute(sql`update installation set status = 'suspended' where id = ${ONE}`);
    expect((await look()).at).toEqual([]);
    await db.database.db.execute(sql`update installation set status = 'active'`);
    await db.database.db.execute(sql`update repository set status = 'active', setup_cause = null`);
  });

  test('LSE-1: a provider without a free slot, or settled, makes no place; a command always does', async () => {
    await place('11', { provider: 'openai' });
    await place('12');
    expect((await look()).at).toEqual(['11', '12']);
    await db.database.db.execute(sql`update slot set session_id = 'x' where installation_id = ${ONE}`);
    expect((await look()).at).toEqual(['12']);
    await db.database.db.execute(sql`update slot set session_id = null`);
    await db.database.db.execute(
      sql`update provider set settled_until = cs_now() + interval '1 hour' where name = 'openai'`,
    );
    expect((await look()).at).toEqual(['12']);
  });

  test('LSE-2: a look takes so many steps and no more, and the next goes on where it ended, round and round', async () => {
    for (let id = 100; id < 110; id++) await place(String(id));
    const first = await look({}, 4);
    expect(first.at).toEqual(['100', '101', '102', '103']);
    expect(first.after).toEqual({ [ONE]: '103' });
    const second = await look(first.after, 4);
    expect(second.at).toEqual(['104', '105', '106', '107']);
    const third = await look(second.after, 8);
    expect(third.at, 'and from the front again, up to where it began').toEqual([
      '108',
      '109',
      '100',
      '101',
      '102',
      '103',
      '104',
    ]);
    expect((await look({ [ONE]: '104' }, 64)).at.sort()).toEqual(
      Array.from({ length: 10 }, (_, i) => String(100 + i)),
    );
  });

  test('LSE-2: neither other repositories with work nor a backlog cost a look any steps', async () => {
    for (let id = 200; id < 230; id++) await place(String(id), { uses: 'another' });
    await place('999', { tickets: 200 });
    const { at, after } = await look({}, 4);
    expect({ at, after }).toEqual({ at: ['999'], after: {} });
  });

  test('LSE-1: an installation says when it was served, the last of a list last', async () => {
    await place('11');
    await place('14', { installation: TWO });
    await db.database.transaction((tx) => putScope(tx, 'own', TWO, null));
    await markServed(db.database.db, 'own', [TWO, ONE]);
    const { places } = (await look()).seen;
    const [one, two] = [ONE, TWO].map(
      (id) => places.find((found) => found.installationId === id)?.servedAtMs ?? 0,
    );
    expect(one).toBeGreaterThan(two ?? 0);
  });
});

describe('AUT-2: registration and tokens', () => {
  test('POOL-1: what a pool is registered for, and where its policy names it', async () => {
    await place('11');
    const of = { installationId: ONE, repositoryId: '11' };
    expect(await listRegistered(db.database.db, ['own', 'another'], of)).toEqual(['own']);
    expect(await servesRepository(db.database.db, 'own', '11')).toBe(true);
    expect(await servesRepository(db.database.db, 'another', '11')).toBe(false);
    await db.database.transaction((tx) => putPoolUse(tx, { ...of, baseRef: 'main' }, []));
    expect(await servesRepository(db.database.db, 'own', '11'), 'the policy names it no more').toBe(false);
  });

  test('AUT-2: a token holds until it is revoked, alone, with all others, or with its pool', async () => {
    const add = (id: string) =>
      db.database.transaction((tx) => addPoolToken(tx, { id, pool: 'own', tokenHash: tokenHash(id) }));
    for (const id of ['a', 'b', 'c', 'd']) await add(id);
    const holds = async (id: string) => (await findPoolToken(db.database.db, tokenHash(id)))?.id ?? null;
    expect(await holds('a')).toBe('a');
    expect(await db.database.transaction((tx) => revokePoolTokens(tx, 'own', 'a'))).toEqual(['a']);
    expect([await holds('a'), await holds('b')]).toEqual([null, 'b']);
    expect(await db.database.transaction((tx) => revokePoolTokens(tx, 'own', 'a'))).toEqual([]);
    await db.database.transaction((tx) => removeResidentPool(tx, 'own'));
    expect([await holds('b'), await holds('c'), await holds('d')]).toEqual([null, null, null]);
    expect((await look()).at).toEqual([]);
  });
});
