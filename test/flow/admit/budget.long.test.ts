import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bookSpend } from '../../../app/flow/book-spend.ts';
import type { Deps } from '../../../app/flow/deps.ts';
import { expire } from '../../../app/flow/expire.ts';
import { putSetting } from '../../../db/store/setting.ts';
import { budgetRun, type Held, leaseModels, spentNow } from '../../helpers/admit.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import { INSTALLATION, openQueueRun, queueDeps, REPOSITORY, seedRepository } from '../../helpers/queue.ts';

let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase({ max: 16 });
  deps = queueDeps(db.database);
  await seedRepository(db.database, { slots: 40, providers: ['command', 'openai', 'xai'] });
  await openQueueRun(deps, 'r', 1);
});
afterEach(() => db.drop());

const files = (n: number, name = 'f') => Array.from({ length: n }, (_, i) => `${name}${i}.ts`);
const month = async () =>
  (
    await db.database.db.execute<{ m: string }>(
      sql`select to_char(cs_now() at time zone 'UTC', 'YYYY-MM') as m`,
    )
  ).rows[0]?.m ?? '';
const sessionOf = (one: Awaited<ReturnType<Held['admit']>>) =>
  one.outcome === 'admitted' ? one.session : '';

describe('ADM-2: budgets', () => {
  test('a prompt and the most that is answered are reserved, and real usage takes their place', async () => {
    await budgetRun(deps, 'r', '{run: {tokens: 30000}}');
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    if (a === undefined) throw new Error('no lease');
    const first = sessionOf(await a.admit({ promptTokens: 1_500 }));
    expect(await spentNow(deps)).toEqual({ 'run r': { sessions: 1, tokens: 2_000, micro: 0 } });
    // of the fallback nobody says how much it may answer
    const other = sessionOf(await a.admit({ reviewer: 'other', purpose: 'fallback', promptTokens: 300 }));
    expect((await spentNow(deps))['run r']).toEqual({ sessions: 2, tokens: 22_000, micro: 0 });
    await a.end(first, 700);
    await a.end(other, 5_000);
    await bookSpend(deps);
    const spent = { sessions: 2, tokens: 5_700, micro: 0 };
    expect(await spentNow(deps)).toEqual({
      'block r/block': spent,
      'run r': spent,
      [`month ${REPOSITORY} ${await month()}`]: spent,
      [`ceiling ${INSTALLATION} ${await month()}`]: spent,
    });
    await bookSpend(deps);
    expect((await spentNow(deps))['run r'], 'booked once').toEqual(spent);
  });

  test('what a session did not use is there for the next one at once', async () => {
    await budgetRun(deps, 'r', '{run: {tokens: 2000}}');
    const [a, b] = await leaseModels(deps, 'r', ['a.ts', 'b.ts']);
    const first = sessionOf(
      (await a?.admit({ promptTokens: 1_500 })) ?? { outcome: 'provider_capacity', retryMs: 0 },
    );
    await expect(b?.admit({ promptTokens: 1_000 })).rejects.toMatchObject({
      code: 'budget',
      message: "the run's budget of 2000 tokens is used up (budget.run.tokens)",
    });
    await a?.end(first, 100);
    expect((await b?.admit({ promptTokens: 1_000 }))?.outcome).toBe('admitted');
  });

  test('used up: refused by name, kept, without a slot, and nothing was spent', async () => {
    await budgetRun(deps, 'r', '{block: {sessions: 1}}');
    const [a, b] = await leaseModels(deps, 'r', ['a.ts', 'b.ts']);
    await a?.admit();
    await expect(b?.admit()).rejects.toMatchObject({
      code: 'budget',
      message: "the block's budget of 1 sessions is used up (budget.block.sessions)",
    });
    await expect(b?.admit({ purpose: 'repair' })).rejects.toMatchObject({ code: 'budget' });
    await expect(b?.admit({ purpose: 'repair' })).rejects.toMatchObject({ code: 'budget' });
    const { rows } = await db.database.db.execute<{ state: string; detail: string; slot: number | null }>(
      sql`select state, detail, slot from session where state = 'refused'`,
    );
    expect(rows.map((row) => row.slot)).toEqual([null, null]);
    expect((await spentNow(deps))['block r/block']?.sessions).toBe(1);
    const other = await leaseModels(deps, 'r', ['c.ts'], 'another');
    expect((await other[0]?.admit())?.outcome, 'another block has its own').toBe('admitted');
  });

  test('ADM-1: the budget is looked at again after the wait, and the slot that came for nothing goes on', async () => {
    await budgetRun(deps, 'r', '{run: {sessions: 2}}');
    const [a, b] = await leaseModels(deps, 'r', ['a.ts', 'b.ts']);
    await a?.admit();
    await db.database.db.execute(sql`
      update slot set session_id = 'busy' || no where provider = 'openai' and session_id is null`);
    expect((await a?.admit({ purpose: 'repair' }))?.outcome).toBe('provider_capacity');
    expect((await b?.admit())?.outcome).toBe('admitted');
    await db.database.db.execute(sql`update slot set session_id = null where session_id = 'busy40'`);
    const held = async () =>
      (
        await db.database.db.execute<{ n: number }>(sql`
        select count(*)::int as n from slot where provider = 'openai' and session_id is not null`)
      ).rows[0]?.n;
    expect(await held(), 'handed to a').toBe(40);
    await expect(a?.admit({ purpose: 'repair' })).rejects.toMatchObject({ code: 'budget' });
    expect(await held()).toBe(39);
    const { rows } = await db.database.db.execute<{ state: string }>(
      sql`select state from session where purpose = 'repair'`,
    );
    expect(rows).toEqual([{ state: 'refused' }]);
  });

  test('money is counted by the prices of the policy, and never without one', async () => {
    await budgetRun(
      deps,
      'r',
      '{run: {usd: 0.01}, prices: {model: {input: 2.5, output: 10}, other: {input: 1, output: 1}}}',
    );
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    const first = sessionOf(
      (await a?.admit({ promptTokens: 400 })) ?? { outcome: 'provider_capacity', retryMs: 0 },
    );
    expect((await spentNow(deps))['run r']).toEqual({ sessions: 1, tokens: 900, micro: 6_000 });
    await expect(a?.admit({ promptTokens: 400, purpose: 'repair' })).rejects.toMatchObject({
      code: 'budget',
      message: "the run's budget of 0.01 USD is used up (budget.run.usd)",
    });
    await a?.end(first, 1_000);
    await bookSpend(deps);
    expect((await spentNow(deps))['run r']).toEqual({ sessions: 1, tokens: 1_000, micro: 2_500 });
    await expect(a?.admit({ reviewer: 'second' })).rejects.toMatchObject({
      code: 'budget',
      message: expect.stringContaining('second has no price'),
    });
  });

  test('RUN-10: outsiders have a fifth of the month, and what they spend is of the month as well', async () => {
    await openQueueRun(deps, 'out', 2);
    for (const run of ['r', 'out']) await budgetRun(deps, run, '{month: {tokens: 10000}}');
    await db.database.db.execute(sql`update run set allowed_rule = 'person' where id = 'out'`);
    const [a, b] = await leaseModels(deps, 'out', ['a.ts', 'b.ts']);
    expect((await a?.admit({ promptTokens: 1_000 }))?.outcome).toBe('admitted');
    await expect(b?.admit({ promptTokens: 1_000 })).rejects.toMatchObject({
      message: expect.stringContaining('(budget.outsiders.tokens)'),
    });
    const [c] = await leaseModels(deps, 'r', ['c.ts']);
    expect((await c?.admit({ promptTokens: 1_000 }))?.outcome).toBe('admitted');
    const spent = await spentNow(deps);
    expect(spent[`outsiders ${REPOSITORY} ${await month()}`]?.tokens).toBe(1_500);
    expect(spent[`month ${REPOSITORY} ${await month()}`]?.tokens).toBe(3_000);
  });

  test('POL-2: the ceiling of an installation holds where a policy has no budget; another month begins anew', async () => {
    await db.database.transaction((tx) =>
      putSetting(tx, { installationId: '0', key: 'ceiling.tokens', value: 1_000, actor: 'o', reason: 'r' }),
    );
    const [a, b] = await leaseModels(deps, 'r', ['a.ts', 'b.ts']);
    expect((await a?.admit())?.outcome).toBe('admitted');
    await expect(b?.admit()).rejects.toMatchObject({
      message: expect.stringContaining('(setting ceiling.tokens)'),
    });
    await db.moveClock(32 * 86_400_000);
    const [c] = await leaseModels(deps, 'r', ['c.ts']);
    expect((await c?.admit())?.outcome).toBe('admitted');
  });

  test('a lost lease frees the slot and is charged in full, until its usage arrives', async () => {
    await budgetRun(deps, 'r', '{run: {tokens: 100000}}');
    const [a] = await leaseModels(deps, 'r', ['a.ts']);
    const session = sessionOf((await a?.admit()) ?? { outcome: 'provider_capacity', retryMs: 0 });
    await db.moveClock(300_001);
    await expire(deps);
    await bookSpend(deps);
    const { rows } = await db.database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from slot where session_id is not null`,
    );
    expect(rows[0]?.n).toBe(0);
    expect((await spentNow(deps))['run r']).toEqual({ sessions: 1, tokens: 1_000, micro: 0 });
    await a?.end(session, 1_234);
    await bookSpend(deps);
    expect((await spentNow(deps))['run r']).toEqual({ sessions: 1, tokens: 1_234, micro: 0 });
    await a?.end(session, 1);
    await bookSpend(deps);
    expect((await spentNow(deps))['run r']?.tokens, 'told once').toBe(1_234);
  });

  test('a time-out without figures keeps its charge, a call that failed has none', async () => {
    await budgetRun(deps, 'r', '{run: {tokens: 100000}}');
    const [a, b] = await leaseModels(deps, 'r', ['a.ts', 'b.ts']);
    const none = { outcome: 'provider_capacity', retryMs: 0 } as const;
    await a?.end(sessionOf((await a?.admit()) ?? none), 0, 'timeout');
    await b?.end(sessionOf((await b?.admit()) ?? none), 0, 'failed');
    await bookSpend(deps);
    expect((await spentNow(deps))['run r']).toEqual({ sessions: 2, tokens: 1_000, micro: 0 });
  });

  test('sixteen admissions at once never exceed a budget by one token', async () => {
    for (const run of ['p', 'q']) await openQueueRun(deps, run, run === 'p' ? 3 : 4);
    for (const run of ['p', 'q']) await budgetRun(deps, run, '{month: {tokens: 5499}, run: {sessions: 4}}');
    const leases = [...(await leaseModels(deps, 'p', files(8))), ...(await leaseModels(deps, 'q', files(8)))];
    expect(leases).toHaveLength(16);
    const outcomes = await Promise.allSettled(leases.map((one) => one.admit()));
    const admitted = outcomes.filter((one) => one.status === 'fulfilled');
    // 5 of 1,000 fit into 5,499, and no run has more than 4
    expect(admitted).toHaveLength(5);
    const spent = await spentNow(deps);
    expect(spent[`month ${REPOSITORY} ${await month()}`]).toEqual({ sessions: 5, tokens: 5_000, micro: 0 });
    expect([spent['run p']?.sessions, spent['run q']?.sessions].sort()).not.toContain(5);
    const { rows } = await db.database.db.execute<{ state: string; n: number }>(
      sql`select state, count(*)::int as n from session group by state order by state`,
    );
    expect(rows).toEqual([
      { state: 'admitted', n: 5 },
      { state: 'refused', n: 11 },
    ]);
  });

  test('in any order of admission, end, loss and late usage the counts are the sum of what each session is charged', async () => {
    await openQueueRun(deps, 's', 5);
    for (const run of ['r', 's'])
      await budgetRun(deps, run, '{month: {tokens: 60000}, run: {tokens: 40000}}');
    let n = 0;
    const step = fc.oneof(
      fc.record({
        what: fc.constant('admit' as const),
        run: fc.constantFrom('r', 's'),
        tokens: fc.nat(9_000),
      }),
      fc.record({
        what: fc.constantFrom('end' as const, 'late' as const),
        at: fc.nat(30),
        tokens: fc.nat(9_000),
      }),
      fc.record({ what: fc.constantFrom('expire' as const, 'book' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), async (steps) => {
        const told: { readonly lease: Held; readonly session: string }[] = [];
        for (const one of steps) {
          if (one.what === 'admit') {
            const [lease] = await leaseModels(deps, one.run, [`n${n++}.ts`]);
            if (lease === undefined) continue;
            const got = await lease.admit({ promptTokens: one.tokens }).catch(() => null);
            if (got?.outcome === 'admitted') told.push({ lease, session: got.session });
          } else if (one.what === 'expire') {
            await db.moveClock(300_001);
            await expire(deps);
          } else if (one.what === 'book') await bookSpend(deps);
          else if ('at' in one) {
            const of = told[one.at % Math.max(1, told.length)];
            await of?.lease.end(of.session, one.tokens, one.tokens % 7 === 0 ? 'timeout' : 'complete');
          }
          await invariant();
        }
      }),
      { numRuns: 8 },
    );
  });
});

/** Each count is the sum over its sessions: what was reserved until it is booked, what it came to afterwards. */
async function invariant(): Promise<void> {
  const { rows } = await db.database.db.execute<{ name: string; counted: string; charged: string }>(sql`
    select s.scope || ' ' || s.id as name, s.tokens::text as counted, coalesce((
      select sum(x.booked_tokens) from session x
      where x.booked & (1 << s.scope) <> 0
        and case s.scope when 1 then x.run_id || '/' || x.block_id when 2 then x.run_id when 5 then x.installation_id::text
            else x.repository_id::text end = s.id
        and (s.period = '' or s.period = x.period)), 0)::text as charged
    from spend s`);
  for (const row of rows) expect(row.counted, row.name).toBe(row.charged);
  const over = await db.database.db.execute<{ n: number }>(sql`
    select count(*)::int as n from session where state = 'ended' and settled and usage_at is not null
      and booked_tokens <> tokens_in + tokens_out`);
  expect(over.rows[0]?.n, 'what is booked is what was used').toBe(0);
}
