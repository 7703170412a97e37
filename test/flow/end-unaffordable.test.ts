import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readShort } from '../../app/flow/budget-counts.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { dispatch } from '../../app/flow/dispatch.ts';
import { endUnaffordable } from '../../app/flow/end-unaffordable.ts';
import { expire } from '../../app/flow/expire.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { findRun } from '../../db/store/run.ts';
import { listWaitingGroups } from '../../db/store/waiting.ts';
import { budgetRun, leaseModels } from '../helpers/admit.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import {
  INSTALLATION,
  openQueueRun,
  plainSpec,
  plainTicket,
  queueDeps,
  REPOSITORY,
  seedRepository,
  seedTickets,
} from '../helpers/queue.ts';

let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase({ max: 8 });
  // whoever would start a runner calls GitHub, and fails the test
  deps = queueDeps(db.database);
  await seedRepository(db.database, { slots: 40, providers: ['command', 'openai', 'xai'] });
  await openQueueRun(deps, 'r', 1);
});
afterEach(() => db.drop());

const model = (path: string, more: { block?: string; maxOutput?: number; lint?: boolean } = {}) => ({
  ...plainTicket('r', path, { provider: 'openai', block: more.block ?? 'block', parallel: 16 }),
  spec: {
    ...plainSpec(path, 'openai'),
    reviewers: [
      { name: 'model', uses: 'openai' as const, model: 'm-1', max_output: more.maxOutput ?? 500 },
      ...(more.lint === true ? plainSpec(path, 'command').reviewers : []),
    ],
  },
});
const wait = (...tickets: ReturnType<typeof model>[]) => seedTickets(db.database, tickets);
const go = () => dispatch(deps, { repository: REPOSITORY });
const jobs = async () =>
  (
    await db.database.pool.query<{ key: string }>('select key from graphile_worker.jobs order by key')
  ).rows.map((row) => row.key);
const ended = async () =>
  (
    await db.database.db.execute<{ path: string }>(
      sql`select convert_from(path, 'UTF8') as path from ticket where end_code = 'budget' order by path`,
    )
  ).rows.map((row) => row.path);
const short = async () =>
  [
    ...(
      await readShort(db.database.db, INSTALLATION, await listWaitingGroups(db.database.db, ['r']))
    ).values(),
  ].map((one) => one.final);
async function spend(admit: { promptTokens?: number } = {}) {
  const [lease] = await leaseModels(deps, 'r', ['first.ts']);
  const admitted = await lease?.admit(admit);
  if (lease === undefined || admitted?.outcome !== 'admitted') throw new Error('not admitted');
  return { end: (tokens: number) => lease.end(admitted.session, tokens) };
}

describe('ADM-2, POOL-2: files that no admission would take', () => {
  test('no runner is started for them, and they end without one, once', async () => {
    await budgetRun(deps, 'r', '{run: {sessions: 1}}');
    await (await spend()).end(100);
    await wait(model('a.ts'), model('b.ts'));
    expect(await go()).toEqual({ plan: 'none', sent: 0 });
    expect(await jobs()).toContain('end-unaffordable:r');
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(2);
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(0);
    expect(await ended()).toEqual(['a.ts', 'b.ts']);
    expect(await jobs()).toEqual(expect.arrayContaining(['decide-gate:r', `dispatch:${REPOSITORY}`]));
    const run = await findRun(db.database.db, 'r');
    if (run === null) throw new Error('no run');
    const { verdict, rows } = await verifyRun(deps, run, { full: true });
    expect(verdict.kind).toBe('intact');
    expect(rows.flatMap((row) => (row.kind === 'ticket.ended' ? [row.data] : []))).toMatchObject(
      ['a.ts', 'b.ts'].map((path) => ({
        path,
        end: 'budget',
        final: true,
        runner: null,
        detail: "model: the run's budget of 1 sessions is used up (budget.run.sessions)",
      })),
    );
  });

  test('what is under way is waited for: it may cost less than it reserved', async () => {
    await budgetRun(deps, 'r', '{run: {tokens: 1200}}');
    const open = await spend({ promptTokens: 500 });
    await wait(model('a.ts'));
    expect(await short()).toEqual([false]);
    expect(await go()).toEqual({ plan: 'none', sent: 0 });
    expect(await jobs()).not.toContain('end-unaffordable:r');
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(0);
    await open.end(100);
    expect(await short(), 'over, and not booked').toEqual([false]);
    expect(await endUnaffordable(deps, { run: 'r' }), 'booked before it is judged').toBe(0);
    expect(await short(), 'there is room again').toEqual([]);
    expect(await ended()).toEqual([]);
  });

  test('a lost session is charged in full, and holds nothing open', async () => {
    await budgetRun(deps, 'r', '{run: {tokens: 1200}}');
    await spend({ promptTokens: 500 });
    await wait(model('a.ts'));
    await db.moveClock(300_001);
    await expire(deps);
    expect(await endUnaffordable(deps, { run: 'r' })).toBeGreaterThanOrEqual(1);
    expect(await ended()).toContain('a.ts');
  });

  test('only what does not fit: a smaller answer, another block and a command are work for a runner', async () => {
    await budgetRun(deps, 'r', '{block: {sessions: 1}, run: {tokens: 1500}}');
    await (await spend()).end(100);
    await wait(
      model('block.ts'),
      model('large.ts', { block: 'other', maxOutput: 1_400 }),
      model('small.ts', { block: 'other', maxOutput: 1_300 }),
      model('linted.ts', { lint: true }),
    );
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(2);
    expect(await ended()).toEqual(['block.ts', 'large.ts']);
  });

  test('where it is pointed at a fallback, that one is who has to be affordable', async () => {
    await budgetRun(deps, 'r', '{run: {tokens: 1500}}');
    await (await spend()).end(100);
    const large = model('a.ts', { maxOutput: 5_000 });
    const fallbacks = [{ name: 'other', uses: 'xai' as const, model: 'm-2', max_output: 500 }];
    const reviewers = large.spec.reviewers.map((one) => ({ ...one, fallbacks: ['other'] }));
    await wait({ ...large, provider: 'xai', spec: { ...large.spec, reviewers, fallbacks } } as typeof large);
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(0);
    await db.database.db.execute(sql`update ticket set provider = 'openai' where state = 'pending'`);
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(1);
  });

  test('a ticket that a lease has is left to its runner', async () => {
    await budgetRun(deps, 'r', '{run: {sessions: 1}}');
    await (await spend()).end(100);
    await leaseModels(deps, 'r', ['leased.ts']);
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(0);
  });

  test('without a limit nothing is counted', async () => {
    await wait(model('a.ts'));
    expect(await short()).toEqual([]);
    expect(await endUnaffordable(deps, { run: 'r' })).toBe(0);
  });
});
