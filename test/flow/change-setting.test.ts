import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { acceptResult } from '../../app/flow/accept-result.ts';
import { changeSetting } from '../../app/flow/change-setting.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import { decideGate } from '../../app/flow/decide-gate.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { dispatch } from '../../app/flow/dispatch.ts';
import { heartbeat } from '../../app/flow/heartbeat.ts';
import { judgeRun } from '../../app/flow/judge-run.ts';
import { readSettings } from '../../app/flow/read-settings.ts';
import { verifyInstallation } from '../../app/flow/verify-run.ts';
import { upsertInstallation } from '../../db/store/installation.ts';
import { findRun, productNow } from '../../db/store/run.ts';
import { leaseModels } from '../helpers/admit.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import {
  changedFile,
  INSTALLATION,
  openQueueRun,
  queueDeps,
  REPOSITORY,
  seedRepository,
  setFiles,
} from '../helpers/queue.ts';
import { testRunner } from '../helpers/runner.ts';

let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase({ max: 16 });
  deps = queueDeps(db.database);
  await seedRepository(db.database, { slots: 4, providers: ['command', 'openai', 'xai'] });
  await openQueueRun(deps, 'r', 1);
});
afterEach(() => db.drop());

const set = (key: string, value: unknown, installation: string | null = INSTALLATION) =>
  changeSetting(deps, {
    installation,
    key,
    value,
    by: 'olga',
    reason: 'an alarm at night',
    via: 'command_line',
  });
const unset = (key: string, installation: string | null = INSTALLATION) => set(key, undefined, installation);
const slots = async (provider = 'openai') =>
  (
    await db.database.db.execute<{ free: number; busy: number }>(sql`
      select count(*) filter (where session_id is null)::int as free, count(session_id)::int as busy
      from slot where provider = ${provider}`)
  ).rows[0];
const live = async () =>
  (
    await db.database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from lease where state = 'live'`,
    )
  ).rows[0]?.n;
const jobs = async () =>
  (
    await db.database.pool.query<{ key: string }>(`select key from graphile_worker.jobs order by key`)
  ).rows.map((row) => row.key);

describe('POL-2: settings', () => {
  test('each change is a signed row on the chains it concerns, what is so already is none', async () => {
    await db.database.transaction((tx) =>
      upsertInstallation(tx, { id: '77', accountId: '7', accountLogin: 'other', status: 'active' }),
    );
    expect(await set('slots.openai', 6)).toMatchObject({ changed: true, installations: 1 });
    expect(await set('slots.openai', 6)).toMatchObject({ changed: false, installations: 0 });
    expect(await set('ceiling.tokens', 5_000, null)).toMatchObject({ changed: true, installations: 2 });
    expect(await unset('slots.openai')).toMatchObject({ changed: true, installations: 1 });
    expect(await unset('slots.openai')).toMatchObject({ changed: false });
    const { verdict, rows } = await verifyInstallation(deps, { id: INSTALLATION, epoch: 1 });
    expect(verdict.kind).toBe('intact');
    expect(rows.map(({ kind, data, actor }) => [kind, data, actor.id])).toEqual([
      ['settings.changed', { setting: 'slots.openai', value: '6', text: expect.any(String) }, 'olga'],
      [
        'settings.changed',
        { setting: 'ceiling.tokens', value: '5000', text: expect.any(String), scope: 'app' },
        'olga',
      ],
      ['settings.changed', { setting: 'slots.openai', value: 'unset', text: expect.any(String) }, 'olga'],
    ]);
    expect((await verifyInstallation(deps, { id: '77', epoch: 1 })).rows).toHaveLength(1);
    expect(await readSettings(deps, INSTALLATION)).toMatchObject([
      { installation: 'all', key: 'ceiling.tokens', value: 5_000, by: 'olga', reason: 'an alarm at night' },
    ]);
    await expect(set('slots', 2, '123')).rejects.toMatchObject({
      code: 'not_found',
      accepted: expect.stringContaining(`${INSTALLATION} (acme)`),
    });
  });

  test('slots grow at once; a smaller number waits for those that are busy, and takes no session their place', async () => {
    await set('slots', 7);
    expect(await slots()).toEqual({ free: 7, busy: 0 });
    const leases = await leaseModels(
      deps,
      'r',
      Array.from({ length: 5 }, (_, i) => `f${i}`),
    );
    expect(leases).toHaveLength(5);
    const sessions = await Promise.all(leases.map((one) => one.admit()));
    await set('slots.openai', 2);
    expect(await slots(), 'free ones go, busy ones stay').toEqual({ free: 0, busy: 5 });
    expect(await slots('xai')).toEqual({ free: 7, busy: 0 });
    const end = async (i: number) => {
      const one = sessions[i];
      if (one?.outcome === 'admitted') await leases[i]?.end(one.session, 1);
    };
    for (const i of [0, 1, 2]) await end(i);
    expect((await slots())?.busy).toBe(2);
    expect((await slots())?.free, 'only two are left in all').toBe(0);
    await end(3);
    expect(await slots()).toEqual({ free: 1, busy: 1 });
    await set('slots.openai', 3);
    expect(await slots()).toEqual({ free: 2, busy: 1 });
  });

  test('a slot that is to go is kept when the number rises again before it went', async () => {
    const leases = await leaseModels(deps, 'r', ['a', 'b', 'c', 'd']);
    await set('slots.openai', 1);
    await set('slots.openai', 4);
    const first = leases[0];
    const session = await first?.admit();
    if (session?.outcome === 'admitted') await first?.end(session.session, 1);
    expect(await slots()).toEqual({ free: 1, busy: 3 });
  });

  test('a provider that is met later begins with what is set', async () => {
    await set('slots', 9);
    await set('slots.xai', 2);
    await db.database.db.execute(sql`delete from slot`);
    await db.database.db.execute(sql`delete from provider`);
    await setFiles(deps, 'r', [changedFile('r', 'a.ts', { level: 'L2' })]);
    await cutTickets(deps, { run: 'r' });
    expect([(await slots())?.free, (await slots('xai'))?.free]).toEqual([9, 2]);
  });

  test('a changed bound of a policy key reads the enrolled branches again', async () => {
    await db.database.db.execute(sql`
      insert into enrolment (repository_id, base_ref, state, policy_hash, commit, mode, checked_at)
      values (${REPOSITORY}, 'main', 'valid', 'h', 'c', 'enforce', cs_now()), (${REPOSITORY}, 'old', 'absent', null, 'c', 'enforce', cs_now())`);
    await set('policy.gate.block_at', 'medium');
    expect((await jobs()).filter((key) => key.startsWith('enrol'))).toEqual([`enrol:${REPOSITORY}:main`]);
  });
});

describe('CTL-5: the kill switch', () => {
  const ready = async (n: number) => {
    await setFiles(
      deps,
      'r',
      Array.from({ length: n }, (_, i) => changedFile('r', `t${i}.ts`)),
    );
    await cutTickets(deps, { run: 'r' });
  };

  test.each([
    ['an installation', INSTALLATION],
    ['the whole app', null],
  ] as const)(
    'of %s: leases are revoked with it, nothing starts while it is on, and everything goes on by itself after',
    async (_, installation) => {
      await ready(2);
      const runner = await testRunner(deps);
      const [held] = await runner.lease(1);
      if (held === undefined) throw new Error('no lease');
      const [model] = await leaseModels(deps, 'r', ['m.ts']);
      const claim = await runner.claim(held);
      const before = await findRun(db.database.db, 'r');
      expect(await set('kill', 'on', installation)).toMatchObject({ changed: true, revoked: 2 });
      const after = await findRun(db.database.db, 'r');
      expect(after?.generation).toBe((before?.generation ?? 0) + 1);
      expect(await live()).toBe(0);
      await expect(heartbeat(deps, claim)).rejects.toMatchObject({ code: 'revoked' });
      await expect(model?.admit()).rejects.toMatchObject({ code: 'revoked' });
      expect(await runner.lease(4)).toEqual([]);
      expect(await leaseModels(deps, 'r', ['n.ts']), 'nor past the flow').toEqual([]);
      expect(await dispatch(deps, { repository: REPOSITORY })).toEqual({ plan: 'none', sent: 0 });
      const result = {
        end: 'reviewed' as const,
        detail: null,
        retry_after_ms: null,
        blobs: held.ticket.blob,
        verdict: 'approve' as const,
        partial: false,
        sessions: [],
        findings: [],
        unplaced: [],
        brief_sha256: null,
        ms: 1,
      };
      await expect(acceptResult(deps, claim, result)).rejects.toMatchObject({ code: 'revoked' });
      expect(await jobs()).toContain('decide-gate:r');
      expect(await unset('kill', installation)).toMatchObject({ changed: true, revoked: 0 });
      expect(await jobs()).toEqual(expect.arrayContaining(['decide-gate:r', `dispatch:${REPOSITORY}`]));
      const again = (await runner.lease(8)).map((one) => one.ticket.id);
      expect(again, 'and the one it had').toContain(held.ticket.id);
    },
  );

  test('gates say who, are not green, and are decided anew when it is off', async () => {
    const conclusion = async () => (await decideGate(deps, { run: 'r' })) as { conclusion: string };
    const untouched = (await conclusion()).conclusion;
    await set('kill', 'on');
    expect((await conclusion()).conclusion).toBe('action_required');
    const run = await findRun(db.database.db, 'r');
    if (run === null) throw new Error('no run');
    const { decision } = await judgeRun(deps, db.database.db, run, await productNow(db.database.db));
    expect(decision.reasons[0]).toMatchObject({ code: 'killed', class: 'held', detail: 'by olga' });
    expect(decision.next[0]?.who).toBe('operator');
    const { rows } = await db.database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from ledger_row where convert_from(body, 'UTF8') like '%alarm at night%'`,
    );
    expect(rows[0]?.n, 'free text is in no row').toBe(0);
    await unset('kill');
    expect((await conclusion()).conclusion).toBe(untouched);
  });

  test('a run of another installation is not touched', async () => {
    const other = { installationId: '78', repositoryId: '79' };
    await openQueueRun(deps, 'other', 9, other);
    await set('kill', 'on');
    expect((await findRun(db.database.db, 'other'))?.generation).toBe(1);
  });

  test('thrown among sixteen runners that lease: none has a lease afterwards', async () => {
    await ready(40);
    const runners = await Promise.all(Array.from({ length: 16 }, () => testRunner(deps)));
    const leasing = runners.map((runner) => runner.lease(1));
    const killed = set('kill', 'on');
    await Promise.all([...leasing, killed, ...runners.map((runner) => runner.lease(1))]);
    expect(await live()).toBe(0);
    await unset('kill');
    expect((await runners[0]?.lease(1))?.length).toBe(1);
  });
});
