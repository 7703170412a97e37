/**
 * The queue against a model of it: random ends, losses, controls and asks on the real database. The model
 * knows what is a ticket, a run and a lease; after each step the database must agree, and no cap, cell or
 * slot may be wrong. What the model cannot choose (which ticket comes next) it checks for being allowed.
 */
import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFloors } from '../../../app/flow/take-turn/floors.ts';
import { listExpiredLeases, lockForAdmission, lockLease } from '../../../db/store/lease.ts';
import { updateRun } from '../../../db/store/run.ts';
import { cancelTicketsOfRun, fillWindows, liftTickets, putTickets } from '../../../db/store/ticket.ts';
import { type Granted, type Settlement, turnQueue } from '../../../db/store/turn.ts';
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

const SLOTS = 2;
const PARALLEL = 3;
const RUNS = ['a', 'b', 'c'] as const;
const PROVIDERS = ['command', 'openai'] as const;
const TTL_MS = 300_000;
/** Another look at what a seed found. */
const SEED = process.env['MODEL_SEED'];
/** Plays of the model; more of them get more time. */
const PLAYS = Number(process.env['MODEL_RUNS'] ?? 12);

let db: TestDatabase;
let runners: string[];
beforeAll(async () => {
  db = await testDatabase({ max: 8 });
  await seedRepository(db.database, { slots: SLOTS, providers: PROVIDERS });
  runners = [];
  for (let n = 0; n < 3; n++) runners.push((await seedLogin(db.database)).id);
});
afterAll(() => db.drop());

interface Live {
  readonly lease: string;
  readonly ticket: string;
  readonly runner: string;
  readonly grant: number;
  readonly generation: number;
  readonly alone: boolean;
  expired: boolean;
}
interface Known {
  readonly run: string;
  readonly provider: string;
  state: 'pending' | 'leased' | 'ended' | 'cancelled';
  counted: number;
  grant: number;
  suspect: boolean;
}
interface Model {
  readonly tickets: Map<string, Known>;
  readonly live: Map<string, Live>;
  readonly dead: Live[];
  readonly runs: Map<string, { open: boolean; generation: number }>;
}

/** The database, and what a step needs to say about it. */
interface Real {
  readonly prefix: string;
  readonly step: { n: number };
}

const settlement = (to: Partial<Settlement> = {}): Settlement => ({
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
  ...to,
});
const back = (suspect: boolean): Partial<Settlement> => ({
  leaseState: 'expired',
  ticketState: 'pending',
  front: true,
  end: null,
  verdict: null,
  result: null,
  seq: null,
  suspect,
});

/** As a busy process: most turns are told where the last one saw the first ready tickets, and who only asks looks first whether there is anything. */
const floors = createFloors(() => 0);

async function turn(
  ends: readonly (Settlement & { leaseId: string })[],
  asks: readonly { runnerId: string; n: number }[],
) {
  const outcome = await turnQueue(db.database.db, {
    ...floors.next(),
    doubtful: true,
    ends,
    place: { installationId: INSTALLATION, repositoryId: REPOSITORY },
    asks: asks.map(({ runnerId, n }) => ({
      runnerId,
      request: null,
      names: Array.from({ length: n }, () => {
        const id = randomBytes(8).toString('hex');
        return { id, tokenHash: tokenHash(id), sessionId: `s${id}` };
      }),
    })),
    ttlMs: TTL_MS,
  });
  floors.learn(outcome.heads);
  return outcome;
}

const runOf = (real: Real, name: string) => `${real.prefix}${name}`;
const leasedOf = (model: Model, of: (known: Known) => boolean) =>
  [...model.tickets.values()].filter((one) => one.state === 'leased' && of(one)).length;

/** Whether this ticket might be leased now to a runner that is free, as far as caps and controls go. */
function runnable(model: Model, known: Known): boolean {
  const run = model.runs.get(known.run);
  return (
    known.state === 'pending' &&
    run?.open === true &&
    leasedOf(model, (one) => one.run === known.run) < PARALLEL &&
    (known.provider === 'command' || leasedOf(model, (one) => one.provider === known.provider) < SLOTS)
  );
}

function grant(model: Model, runner: string, got: Granted): void {
  const known = model.tickets.get(got.ticketId);
  if (known === undefined) throw new Error(`a ticket from nowhere: ${got.ticketId}`);
  expect(known.state, 'only what waits is leased').toBe('pending');
  const run = model.runs.get(known.run);
  expect(run?.open, 'only of an open run').toBe(true);
  const mine = [...model.live.values()].filter((one) => one.runner === runner);
  if (known.suspect) expect(mine, 'a suspect alone (TKT-6)').toEqual([]);
  expect(
    mine.some((one) => one.alone),
    'nothing beside a suspect (TKT-6)',
  ).toBe(false);
  expect(got.grant, 'a number that rises').toBe(known.grant + 1);
  expect(got.sessionId === null, 'a command needs no slot').toBe(known.provider === 'command');
  known.state = 'leased';
  known.grant = got.grant;
  model.live.set(got.leaseId, {
    lease: got.leaseId,
    ticket: got.ticketId,
    runner,
    grant: got.grant,
    generation: run?.generation ?? 0,
    alone: known.suspect,
    expired: false,
  });
  expect(leasedOf(model, (one) => one.run === known.run)).toBeLessThanOrEqual(PARALLEL);
  if (known.provider !== 'command')
    expect(leasedOf(model, (one) => one.provider === known.provider)).toBeLessThanOrEqual(SLOTS);
}

function over(model: Model, live: Live, state: 'pending' | 'ended' | 'cancelled', suspect = false): void {
  const known = model.tickets.get(live.ticket);
  if (known === undefined) throw new Error('a lease of no ticket');
  known.state = state;
  known.suspect = suspect;
  if (state === 'ended') known.counted += 1;
  model.live.delete(live.lease);
  model.dead.push(live);
}

/** What must hold after every step: the database is as the model says, and holds nothing for nobody. */
async function agree(model: Model, real: Real): Promise<void> {
  const { rows } = await db.database.db.execute<{
    id: string;
    state: string;
    grant_no: number;
    lease: string | null;
  }>(sql`select id, state, grant_no, lease_id as lease from ticket where run_id like ${`${real.prefix}%`}`);
  const leases = new Map([...model.live.values()].map((one) => [one.ticket, one.lease]));
  expect(Object.fromEntries(rows.map((row) => [row.id, [row.state, row.grant_no, row.lease]]))).toEqual(
    Object.fromEntries(
      [...model.tickets].map(([id, known]) => [id, [known.state, known.grant, leases.get(id) ?? null]]),
    ),
  );
  for (const known of model.tickets.values())
    expect(known.counted, 'at most one counted result a ticket').toBeLessThanOrEqual(1);
  const held = await db.database.db.execute<{ session: string }>(
    sql`select session_id as session from slot where session_id is not null`,
  );
  const wanted = [...model.live.values()].filter(
    (one) => model.tickets.get(one.ticket)?.provider !== 'command',
  );
  expect(held.rows.map((row) => row.session).sort(), 'no slot is held for nobody').toEqual(
    wanted.map((one) => `s${one.lease}`).sort(),
  );
}

type Command = fc.AsyncCommand<Model, Real>;
const command = (name: string, run: (model: Model, real: Real) => Promise<void>): Command => ({
  check: () => true,
  run: async (model, real) => {
    real.step.n += 1;
    await run(model, real);
    await agree(model, real);
  },
  toString: () => name,
});
const pick = <T>(all: readonly T[], at: number): T | undefined =>
  all.length === 0 ? undefined : all[at % all.length];

const add = fc
  .tuple(fc.constantFrom(...RUNS), fc.constantFrom(...PROVIDERS), fc.integer({ min: 1, max: 4 }))
  .map(([name, provider, n]) =>
    command(`add ${n} of ${provider} to ${name}`, async (model, real) => {
      const run = runOf(real, name);
      const tickets = Array.from({ length: n }, (_, i) =>
        plainTicket(run, `${real.step.n}-${i}`, { provider, parallel: PARALLEL, turn: real.step.n * 10 + i }),
      );
      if (model.runs.get(run)?.open === true) await seedTickets(db.database, tickets);
      else
        await db.database.transaction(async (tx) => {
          await putTickets(tx, tickets);
          await fillWindows(tx, run);
        });
      for (const one of tickets)
        model.tickets.set(one.id, { run, provider, state: 'pending', counted: 0, grant: 0, suspect: false });
    }),
  );

const ask = fc
  .array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 5 })), { minLength: 1, maxLength: 3 })
  .map((asks) =>
    command(`ask ${JSON.stringify(asks)}`, async (model) => {
      const of = asks.map(([runner, n]) => ({ runnerId: runners[runner] ?? '', n }));
      const { granted } = await turn([], of);
      take(model, of, granted);
    }),
  );

/** Takes what was granted into the model; what is left over must not be runnable for whoever still asked. */
function take(
  model: Model,
  asks: readonly { runnerId: string; n: number }[],
  granted: readonly (readonly Granted[])[],
): void {
  for (const [i, one] of asks.entries()) for (const got of granted[i] ?? []) grant(model, one.runnerId, got);
  const hungry = asks.filter((one, i) => (granted[i]?.length ?? 0) < one.n);
  const waiting = [...model.tickets.values()].filter((known) => runnable(model, known));
  for (const one of hungry) {
    const mine = [...model.live.values()].filter((live) => live.runner === one.runnerId);
    if (mine.some((live) => live.alone)) continue;
    const left = waiting.filter((known) => !known.suspect || mine.length === 0);
    expect(left, 'nothing that can run waits while somebody asks').toEqual([]);
  }
}

const end = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 2 }), fc.boolean()).map(([at, n, late]) =>
  command(`end ${at}${late ? ' late' : ''} and ask ${n}`, async (model) => {
    const live = pick(late ? model.dead : [...model.live.values()], at);
    if (live === undefined) return;
    const held = await db.database.transaction(async (tx) => {
      const proof = {
        id: live.lease,
        runnerId: live.runner,
        tokenHash: tokenHash(live.lease),
        grant: live.grant,
      };
      return lockLease(tx, proof);
    });
    expect(held !== null, 'a lease holds while it is live and not past its time').toBe(
      model.live.has(live.lease) && !live.expired,
    );
    const of = n === 0 ? [] : [{ runnerId: live.runner, n }];
    const ends = held === null ? [] : [{ ...settlement(), leaseId: live.lease }];
    const { ended, granted } = await turn(ends, of);
    expect(ended.has(live.lease)).toBe(held !== null);
    if (held !== null) over(model, live, 'ended');
    take(model, of, granted);
  }),
);

const lose = fc.tuple(fc.nat(), fc.boolean()).map(([at, suspect]) =>
  command(`lose ${at}${suspect ? ', a suspect' : ''}`, async (model) => {
    const live = pick([...model.live.values()], at);
    if (live === undefined) return;
    // a suspect stays one (endTicketWith, giveBack)
    const after = suspect || model.tickets.get(live.ticket)?.suspect === true;
    const { ended } = await turn([{ ...settlement(back(after)), leaseId: live.lease }], []);
    expect(ended.has(live.lease)).toBe(true);
    over(model, live, 'pending', after);
    // it is over: nothing that comes later can end it again
    const twice = await turn([{ ...settlement(), leaseId: live.lease }], []);
    expect(twice.ended.size).toBe(0);
  }),
);

const passTime = fc.constant(
  command('time passes', async (model) => {
    await db.moveClock(TTL_MS + 1);
    for (const live of model.live.values()) live.expired = true;
    const found = await listExpiredLeases(db.database.db, 100);
    expect(found.map((one) => one.id).sort()).toEqual([...model.live.keys()].sort());
  }),
);

const pause = fc.tuple(fc.constantFrom(...RUNS), fc.boolean()).map(([name, open]) =>
  command(`${open ? 'resume' : 'pause'} ${name}`, async (model, real) => {
    const run = runOf(real, name);
    const known = model.runs.get(run);
    if (known === undefined) return;
    known.open = open;
    known.generation += 1;
    await db.database.transaction((tx) =>
      updateRun(tx, run, { status: open ? 'open' : 'paused', generation: known.generation }),
    );
    // what began before is fenced from starting anything, and may end (CTL-2)
    for (const live of model.live.values()) {
      if (model.tickets.get(live.ticket)?.run !== run) continue;
      const proof = {
        id: live.lease,
        runnerId: live.runner,
        tokenHash: tokenHash(live.lease),
        grant: live.grant,
      };
      const admitted = await db.database.transaction((tx) => lockForAdmission(tx, proof));
      expect(admitted, 'no session of another generation').toBeNull();
    }
  }),
);

const cancel = fc.constantFrom(...RUNS).map((name) =>
  command(`cancel ${name}`, async (model, real) => {
    const run = runOf(real, name);
    await db.database.transaction((tx) => cancelTicketsOfRun(tx, run, 'closed'));
    for (const live of [...model.live.values()])
      if (model.tickets.get(live.ticket)?.run === run) over(model, live, 'cancelled');
    for (const known of model.tickets.values())
      if (known.run === run && known.state === 'pending') known.state = 'cancelled';
  }),
);

let played = 0;
async function start(): Promise<{ model: Model; real: Real }> {
  const real = { prefix: `m${++played}-`, step: { n: 0 } };
  // what an earlier play left must not be leased in this one
  await db.database.db.execute(sql`update run set status = 'closed'`);
  await db.database.db.execute(sql`delete from ticket`);
  await db.database.db.execute(sql`delete from lease`);
  await db.database.db.execute(sql`update slot set session_id = null`);
  const runs = new Map<string, { open: boolean; generation: number }>();
  for (const [i, name] of RUNS.entries()) {
    await seedRun(db.database, runOf(real, name), played * 10 + i);
    runs.set(runOf(real, name), { open: true, generation: 1 });
  }
  return { model: { tickets: new Map(), live: new Map(), dead: [], runs }, real };
}

describe('the model of the queue', () => {
  test(
    'LSE-1, LSE-3, LSE-4, TKT-6, ADM-1, CTL-2: whatever happens in whatever order, the database agrees',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.commands([add, ask, ask, end, end, lose, pause, cancel, passTime], {
            maxCommands: 40,
            size: 'max',
          }),
          async (commands) => {
            const begun = await start();
            await fc.asyncModelRun(() => begun, commands);
          },
        ),
        {
          numRuns: PLAYS,
          endOnFailure: false,
          ...(SEED === undefined ? {} : { seed: Number(SEED) }),
        },
      );
    },
    Math.max(120_000, PLAYS * 300),
  );

  test('TKT-6: suspects that wait for a runner with nothing else keep nobody waiting', async () => {
    const { model, real } = await start();
    const run = runOf(real, 'a');
    const [busy, idle] = [runners[0] ?? '', runners[1] ?? ''];
    for (const provider of PROVIDERS) {
      const tickets = Array.from({ length: 6 }, (_, turn) =>
        plainTicket(run, `${provider}-${turn}`, { provider, parallel: PARALLEL, turn }),
      );
      await seedTickets(db.database, tickets);
      for (const one of tickets)
        model.tickets.set(one.id, { run, provider, state: 'pending', counted: 0, grant: 0, suspect: false });
    }
    const askOf = async (runner: string, n: number) => {
      const of = [{ runnerId: runner, n }];
      const { granted } = await turn([], of);
      take(model, of, granted);
      return granted[0] ?? [];
    };
    // as many as the run may have at a time are lost: all of its window
    await askOf(idle, PARALLEL);
    for (const live of [...model.live.values()]) {
      await turn([{ ...settlement(back(true)), leaseId: live.lease }], []);
      over(model, live, 'pending', true);
    }
    const suspects = [...model.tickets.values()].filter((one) => one.suspect);
    expect(suspects).toHaveLength(PARALLEL);
    // `take` looks at each answer: who has something else gets of the others, and never a suspect
    await askOf(busy, 1);
    const others = await askOf(busy, PARALLEL);
    expect(others).toHaveLength(PARALLEL - 1);
    await agree(model, real);
    // one at a time, to whoever has nothing else
    for (const live of [...model.live.values()]) {
      await turn([{ ...settlement(), leaseId: live.lease }], []);
      over(model, live, 'ended');
    }
    for (let n = 0; n < 40 && suspects.some((one) => one.state === 'pending'); n++) {
      for (const got of await askOf(idle, PARALLEL)) {
        const live = model.live.get(got.leaseId);
        if (live === undefined) throw new Error('a lease the model does not know');
        await turn([{ ...settlement(), leaseId: live.lease }], []);
        over(model, live, 'ended');
      }
    }
    expect(suspects.map((one) => one.state)).toEqual(suspects.map(() => 'ended'));
    await agree(model, real);
  });

  test('LSE-2: a hint where to look hides nothing: what lies before it is found when nothing lies behind, what was lifted at once', async () => {
    const { real } = await start();
    const run = runOf(real, 'a');
    const tickets = ['1', '2', '3'].map((path, n) =>
      plainTicket(run, path, { provider: 'command', parallel: PARALLEL, turn: n }),
    );
    await seedTickets(db.database, tickets);
    const told = async (tag: string, n: number) => {
      const id = randomBytes(8).toString('hex');
      const { granted, heads } = await turnQueue(db.database.db, {
        ends: [],
        place: { installationId: INSTALLATION, repositoryId: REPOSITORY },
        asks: [
          {
            runnerId: runners[0] ?? '',
            request: null,
            names: Array.from({ length: n }, (_, i) => ({
              id: `${id}${i}`,
              tokenHash: tokenHash(`${id}${i}`),
              sessionId: `s${id}${i}`,
            })),
          },
        ],
        ttlMs: TTL_MS,
        floors: new Map([['command', tag]]),
      });
      return { tickets: granted[0]?.map((one) => one.ticketId), head: heads.get('command') };
    };
    const { rows } = await db.database.db.execute<{ id: string; tag: string }>(
      sql`select id, tag::text as tag from ticket where run_id = ${run} order by tag`,
    );
    const [first, second, third] = rows;
    if (first === undefined || second === undefined || third === undefined) throw new Error('three tickets');
    expect(await told(second.tag, 1)).toEqual({ tickets: [second.id], head: second.tag });
    await db.database.transaction((tx) => liftTickets(tx, run));
    // both are lifted: the hint lies behind them
    expect((await told(second.tag, 1)).tickets).toEqual([first.id]);
    await db.database.db.execute(sql`update ticket set tag = ${third.tag}::bigint where id = ${third.id}`);
    const beyond = String(BigInt(third.tag) + 1_000n);
    expect((await told(beyond, 2)).tickets, 'asked for two, one is there').toEqual([third.id]);
  });

  test('LSE-1: while one slot turns over, no run is passed over twice by another that came later', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 3, maxLength: 3 }),
        async (sizes) => {
          const { real } = await start();
          for (const [i, n] of sizes.entries())
            await seedTickets(
              db.database,
              Array.from({ length: n }, (_, k) =>
                plainTicket(runOf(real, RUNS[i] ?? 'a'), `${k}`, {
                  provider: 'openai',
                  parallel: 1,
                  turn: k,
                }),
              ),
            );
          await db.database.db.execute(sql`update slot set session_id = 'taken' where no > 1`);
          const order: string[] = [];
          let held: Granted | undefined;
          for (;;) {
            const { granted } = await turn(
              held === undefined ? [] : [{ ...settlement(), leaseId: held.leaseId }],
              [{ runnerId: runners[0] ?? '', n: 1 }],
            );
            held = granted[0]?.[0];
            if (held === undefined) break;
            const { rows } = await db.database.db.execute<{ run: string }>(
              sql`select run_id as run from ticket where id = ${held.ticketId}`,
            );
            order.push(rows[0]?.run ?? '');
          }
          expect(order).toHaveLength(sizes.reduce((sum, n) => sum + n, 0));
          // in every round each run that has anything left has had its turn
          const left = new Map(RUNS.map((name, i) => [runOf(real, name), sizes[i] ?? 0]));
          while (order.length > 0) {
            const going = [...left].filter(([, n]) => n > 0).map(([run]) => run);
            const round = order.splice(0, going.length);
            expect([...round].sort()).toEqual([...going].sort());
            for (const run of round) left.set(run, (left.get(run) ?? 0) - 1);
          }
        },
      ),
      { numRuns: 4 },
    );
  });
});
