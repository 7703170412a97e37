import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  findLease,
  listExpiredLeases,
  lockForAdmission,
  recallLease,
  renewLease,
} from '../../../db/store/lease.ts';
import { settleProvider } from '../../../db/store/provider.ts';
import { updateRun } from '../../../db/store/run.ts';
import { cancelTicketsOfRun, countTickets, findTicket, putTickets } from '../../../db/store/ticket.ts';
import { type Settlement, settleLease, takeLeases } from '../../../db/store/turn.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import {
  INSTALLATION,
  plainTicket,
  REPOSITORY,
  seedLogin,
  seedRepository,
  seedRun,
  seedTickets,
  sha,
  tokenHash,
} from '../../helpers/queue.ts';

let db: TestDatabase;

beforeEach(async () => {
  db = await testDatabase({ max: 16 });
});
afterEach(async () => {
  await db.drop();
});

async function take(runnerId: string, max = 1, ttlMs = 300_000, doubtful = false) {
  const ids = Array.from({ length: max }, () => randomBytes(8).toString('hex'));
  return takeLeases(db.database.db, {
    doubtful,
    runnerId,
    installationId: INSTALLATION,
    repositoryId: REPOSITORY,
    request: null,
    names: ids.map((id) => ({ id, tokenHash: tokenHash(id), sessionId: `s${id}` })),
    ttlMs,
  });
}

const over: Settlement = {
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
  result: sha('r'),
  reason: null,
  seq: 1,
};
const settle = (id: string, to: Partial<Settlement> = {}) =>
  db.database.transaction((tx) => settleLease(tx, id, { ...over, ...to }));

describe('LSE-1: one statement under every cap', () => {
  test('LSE-1: a run has at most `parallel` tickets leased, over all providers', async () => {
    await seedRepository(db.database, { slots: 100 });
    await seedRun(db.database, 'r1', 1);
    await seedTickets(
      db.database,
      Array.from({ length: 20 }, (_, i) =>
        plainTicket('r1', `f${i}`, { provider: i % 2 === 0 ? 'command' : 'openai', parallel: 3 }),
      ),
    );
    const login = await seedLogin(db.database);
    const first = await take(login.id, 16);
    expect(first).toHaveLength(3);
    expect(await take(login.id, 16)).toHaveLength(0);
    await settle(first[0]!.leaseId);
    expect(await take(login.id, 16)).toHaveLength(1);
  });

  test('LSE-1: a full provider takes no slot and stops nobody behind it', async () => {
    await seedRepository(db.database, { slots: 1 });
    await seedRun(db.database, 'r1', 1);
    await seedTickets(db.database, [
      ...Array.from({ length: 5 }, (_, i) => plainTicket('r1', `m${i}`, { provider: 'openai' })),
      plainTicket('r1', 'c', { provider: 'command' }),
    ]);
    const login = await seedLogin(db.database);
    const got = await take(login.id, 16);
    const tickets = await Promise.all(got.map((one) => findTicket(db.database.db, one.ticketId)));
    expect(tickets.map((one) => one?.provider).sort()).toEqual(['command', 'openai']);
    expect(got.map((one) => one.sessionId === null).sort()).toEqual([false, true]);
  });

  test('LSE-1: who was refused and looks first gets what is there: a command beside full providers, a slot that came free', async () => {
    await seedRepository(db.database, { slots: 1 });
    await seedRun(db.database, 'r1', 1);
    const login = await seedLogin(db.database);
    const again = () => take(login.id, 16, 300_000, true);
    expect(await again(), 'nothing is ready').toEqual([]);
    await seedTickets(db.database, [
      plainTicket('r1', 'a', { provider: 'openai' }),
      plainTicket('r1', 'b', { provider: 'openai' }),
    ]);
    const held = await again();
    expect(held).toHaveLength(1);
    await db.database.pool.query(`update slot set session_id = 'taken' where session_id is null`);
    expect(await again(), 'every slot is taken').toEqual([]);
    await seedTickets(db.database, [plainTicket('r1', 'c', { provider: 'command' })]);
    expect(await again(), 'a command needs none').toHaveLength(1);
    expect(await again()).toEqual([]);
    await settle(held[0]!.leaseId);
    expect(await again(), 'its slot is free').toHaveLength(1);
  });

  test('LSE-1: runs take turns: ten tickets do not wait behind a thousand', async () => {
    await seedRepository(db.database);
    await seedRun(db.database, 'big', 1);
    await seedRun(db.database, 'small', 2);
    await seedTickets(
      db.database,
      Array.from({ length: 1000 }, (_, i) => plainTicket('big', `b${i}`)),
    );
    await seedTickets(
      db.database,
      Array.from({ length: 10 }, (_, i) => plainTicket('small', `s${i}`)),
    );
    const login = await seedLogin(db.database);
    const order: string[] = [];
    for (let i = 0; i < 30; i++) {
      const [one] = await take(login.id);
      order.push((await findLease(db.database.db, one!.leaseId))!.runId);
      await settle(one!.leaseId);
    }
    expect(order.filter((run) => run === 'small')).toHaveLength(10);
  });

  test('LSE-1: within a run blocks take turns in order of start', async () => {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    const block = (name: string, position: number, n: number) =>
      Array.from({ length: n }, (_, i) =>
        plainTicket('r1', `${name}${i}`, { block: name, turn: i * 1024 + position, parallel: 1 }),
      );
    await seedTickets(db.database, [...block('a', 0, 50), ...block('b', 1, 3)]);
    const login = await seedLogin(db.database);
    const order: string[] = [];
    for (let i = 0; i < 6; i++) {
      const [one] = await take(login.id);
      order.push((await findTicket(db.database.db, one!.ticketId))!.blockId);
      await settle(one!.leaseId);
    }
    expect(order).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
  });

  test('LSE-1: a run that is not open, not allowed, or allowed for another head leases nothing', async () => {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    await seedTickets(db.database, [plainTicket('r1', 'f')]);
    const login = await seedLogin(db.database);
    const patch = (values: Parameters<typeof updateRun>[2]) =>
      db.database.transaction((tx) => updateRun(tx, 'r1', values));
    await patch({ status: 'paused' });
    expect(await take(login.id)).toHaveLength(0);
    await patch({ status: 'open', allowedRule: null });
    expect(await take(login.id)).toHaveLength(0);
    await patch({ allowedRule: 'person', allowedScope: 'head', allowedHead: 'c'.repeat(40) });
    expect(await take(login.id)).toHaveLength(0);
    await patch({ allowedHead: 'a'.repeat(40) });
    expect(await take(login.id)).toHaveLength(1);
  });

  test('TKT-2: a ticket waits out its `not_before`, and others pass it', async () => {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    await seedTickets(db.database, [
      plainTicket('r1', 'a', { parallel: 1 }),
      plainTicket('r1', 'b', { parallel: 1, turn: 1 }),
    ]);
    const login = await seedLogin(db.database);
    const [first] = await take(login.id);
    await settle(first!.leaseId, { ticketState: 'pending', notBeforeMs: 30_000, transients: 1 });
    const [second] = await take(login.id);
    expect(second!.ticketId).not.toBe(first!.ticketId);
    await settle(second!.leaseId);
    expect(await take(login.id)).toHaveLength(0);
  });

  test('POOL-3: a settled provider leases nothing; past its time one ticket goes through as the probe', async () => {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    await seedTickets(
      db.database,
      Array.from({ length: 4 }, (_, i) => plainTicket('r1', `m${i}`, { provider: 'openai' })),
    );
    const login = await seedLogin(db.database);
    await db.database.transaction((tx) =>
      settleProvider(tx, INSTALLATION, 'openai', { ms: 300_000, rounds: 0, detail: 'quota' }),
    );
    expect(await take(login.id, 4)).toHaveLength(0);
    await db.moveClock(300_001);
    expect(await take(login.id, 4)).toHaveLength(1);
    expect(await take(login.id, 4)).toHaveLength(0);
  });

  test('TKT-6: a suspect is leased alone and its runner gets nothing beside it', async () => {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    await seedTickets(db.database, [plainTicket('r1', 'a'), plainTicket('r1', 'b', { turn: 1 })]);
    await db.database.db.execute(sql`update ticket set suspect = true`);
    const login = await seedLogin(db.database);
    const other = await seedLogin(db.database);
    expect(await take(login.id, 8)).toHaveLength(1);
    expect(await take(login.id, 8)).toHaveLength(0);
    expect(await take(other.id, 8)).toHaveLength(1);
  });
});

describe('TKT-3, BLK-5: what is held', () => {
  test('TKT-3: other content of the cell comes forward when its lease ends; what waits for a block stays', async () => {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    const [leased, next] = [plainTicket('r1', 'a'), plainTicket('r1', 'a2')];
    await seedTickets(db.database, [leased]);
    const login = await seedLogin(db.database);
    const [got] = await take(login.id);
    const same = { path: leased.path, state: 'held' as const };
    await db.database.transaction((tx) => putTickets(tx, [{ ...next, ...same }]));
    await db.database.db.execute(sql`update ticket set reason = 'stopping' where id = ${next.id}`);
    await db.database.db.execute(sql`
      insert into block (run_id, id, position, identity, title, named, kind, level, status, attempt, commits, detail, started_at)
      values ('r1', ${next.blockId}, 0, 'i', 'b', false, 'commit', 'L1', 'waiting', 1, '[]', '{}', cs_now())`);
    // a loss would put it back, and while nothing may take its place it does
    expect(await settle(got!.leaseId, { leaseState: 'expired', ticketState: 'pending' })).toBe(true);
    expect(await countTickets(db.database.db, 'r1')).toEqual({ pending: 1, held: 1 });
    await db.database.db.execute(sql`update block set status = 'open'`);
    const [again] = await take(login.id);
    await settle(again!.leaseId, { leaseState: 'expired', ticketState: 'pending' });
    expect(await countTickets(db.database.db, 'r1')).toEqual({ superseded: 1, pending: 1 });
    expect((await take(login.id))[0]?.ticketId).toBe(next.id);
  });
});

describe('LSE-3: a lease acts only while it holds', () => {
  async function one() {
    await seedRepository(db.database);
    await seedRun(db.database, 'r1', 1);
    await seedTickets(db.database, [plainTicket('r1', 'a')]);
    const login = await seedLogin(db.database);
    const [got] = await take(login.id);
    return {
      login,
      got: got!,
      proof: { id: got!.leaseId, runnerId: login.id, tokenHash: tokenHash(got!.leaseId), grant: got!.grant },
    };
  }

  test('LSE-3: a heartbeat renews; another token, grant or login does not', async () => {
    const { proof } = await one();
    expect(await renewLease(db.database.db, proof, 300_000)).not.toBeNull();
    expect(await renewLease(db.database.db, { ...proof, grant: 2 }, 300_000)).toBeNull();
    expect(await renewLease(db.database.db, { ...proof, tokenHash: tokenHash('x') }, 300_000)).toBeNull();
    expect(await renewLease(db.database.db, { ...proof, runnerId: 'x' }, 300_000)).toBeNull();
  });

  test('LSE-3: an expired lease is never revived', async () => {
    const { proof } = await one();
    await db.moveClock(300_001);
    expect(await renewLease(db.database.db, proof, 300_000)).toBeNull();
    expect((await listExpiredLeases(db.database.db, 10)).map((l) => l.id)).toEqual([proof.id]);
  });

  test('LSE-3, CTL-2: only admission asks for the generation', async () => {
    const { proof } = await one();
    await db.database.transaction((tx) => updateRun(tx, 'r1', { generation: 2 }));
    expect(await db.database.transaction((tx) => lockForAdmission(tx, proof))).toBeNull();
    expect(await renewLease(db.database.db, proof, 300_000)).not.toBeNull();
  });

  test('TKT-3: a lease with a session is not recalled, one without is and may not admit', async () => {
    const { proof } = await one();
    expect(await db.database.transaction((tx) => recallLease(tx, proof.id))).toBe(true);
    expect(await db.database.transaction((tx) => lockForAdmission(tx, proof))).toBeNull();
  });

  test('RUN-7: closing a run cancels its tickets and revokes its leases', async () => {
    const { proof } = await one();
    await db.database.transaction((tx) => cancelTicketsOfRun(tx, 'r1', 'closed'));
    expect(await renewLease(db.database.db, proof, 300_000)).toBeNull();
    expect((await findLease(db.database.db, proof.id))?.state).toBe('revoked');
    expect(await countTickets(db.database.db, 'r1')).toEqual({ cancelled: 1 });
  });
});

test('L11: 32 runners with expiring leases: no cap, cell or count is ever violated', {
  timeout: 60_000,
}, async () => {
  const runs = 6;
  const perRun = 60;
  const slots = 5;
  const parallel = 4;
  await seedRepository(db.database, { slots, providers: ['command', 'openai', 'xai'] });
  for (let r = 0; r < runs; r++) {
    await seedRun(db.database, `r${r}`, r + 1);
    await seedTickets(
      db.database,
      Array.from({ length: perRun }, (_, i) =>
        plainTicket(`r${r}`, `f${i}`, {
          provider: ['command', 'openai', 'xai'][i % 3] ?? 'command',
          parallel,
          turn: i,
        }),
      ),
    );
  }
  const total = runs * perRun;
  let ended = 0;
  let lost = 0;
  let fenced = 0;
  let polls = 0;
  const violations: string[] = [];
  let going = true;

  async function runner(n: number) {
    const login = await seedLogin(db.database);
    let seed = n + 1;
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    let idle = 0;
    while (going && idle < 400) {
      const got = await take(login.id, 1 + Math.floor(random() * 3));
      if (got.length === 0) {
        idle++;
        await new Promise((done) => setTimeout(done, 5 + random() * 10));
        if (ended >= total) return;
        continue;
      }
      idle = 0;
      for (const one of got) {
        if (random() < 0.1) {
          // the runner goes silent: the sweep's move, then its own late submit
          const swept = await settle(one.leaseId, {
            leaseState: 'expired',
            ticketState: 'pending',
            end: null,
            result: null,
            seq: null,
          });
          if (swept) lost++;
          if (await settle(one.leaseId)) violations.push('a lease settled twice');
          else fenced++;
          continue;
        }
        if (await settle(one.leaseId)) ended++;
        else violations.push('a live lease would not settle');
      }
    }
  }

  async function watch() {
    while (going) {
      const { rows } = await db.database.db.execute<{ what: string }>(sql`
        select 'run ' || run_id as what from lease where state = 'live' group by run_id having count(*) > ${parallel}
        union all select 'provider ' || provider from lease where state = 'live' and provider <> 'command' group by provider having count(*) > ${slots}
        union all select 'ticket ' || ticket_id from lease where state = 'live' group by ticket_id having count(*) > 1
        union all select 'cell ' || run_id from ticket where state in ('pending', 'leased') group by run_id, block_id, path having count(*) > 1
        union all select 'unleased ' || t.id from ticket t where t.state = 'leased' and not exists (select from lease l where l.id = t.lease_id and l.state = 'live')
        union all select 'slot ' || s.session_id from slot s where s.session_id is not null and not exists (select from lease l where l.session_id = s.session_id and l.state = 'live')`);
      polls++;
      violations.push(...rows.map((row) => row.what));
      await new Promise((done) => setTimeout(done, 10));
    }
  }

  const watching = watch();
  await Promise.all(Array.from({ length: 32 }, (_, n) => runner(n)));
  going = false;
  await watching;
  expect(violations).toEqual([]);
  expect(ended).toBe(total);
  expect(lost).toBe(fenced);
  expect(lost).toBeGreaterThan(5);
  expect(polls).toBeGreaterThan(5);
  const { rows } = await db.database.db.execute<{ state: string; n: number }>(
    sql`select state, count(*)::int as n from ticket group by state`,
  );
  expect(rows).toEqual([{ state: 'ended', n: total }]);
});
