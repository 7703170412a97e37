/** The plans of a queue turn, from the server's own word (auto_explain), against docs/queue.md. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Reader } from '../../../db/client.ts';
import { type Settlement, turnQueue } from '../../../db/store/turn.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
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

/** Statements of a turn that look something up, by how they begin, in their order; as docs/queue.md names them. */
type Steps = readonly (readonly [string, RegExp])[];
const STEPS: Steps = [
  ['ends', /^with l as \(\s*update lease/],
  ['handing on', /^update ticket t set lane = x\.lane/],
  ['what is next', /^select array_agg\(q\.name\)/],
  ['slots', /^select coalesce\(array_agg\(q\.name\)/],
  ['wished slots', /^select coalesce\(array_agg\(x\.name\)/],
  ['tickets', /^select array_agg\(c\.id\)/],
  ['berths', /^select coalesce\(array_agg\(w\.run_id\)/],
  ['grants', /^with g as materialized/],
  ['a probe', /^update provider p set probe_ticket/],
];

let db: TestDatabase;
let owner: pg.Client;
beforeAll(async () => {
  db = await testDatabase();
  owner = new pg.Client({ connectionString: db.url });
  await owner.connect();
  await seedRepository(db.database, { slots: 4 });
});
afterAll(async () => {
  await owner.end();
  await db.drop();
});

const end: Settlement = {
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
  result: null,
  reason: null,
  seq: 1,
};

/** What is asked before a turn by who was refused; planned as the server sees the tables then, with no setting of ours. */
const BEFORE: Steps = [['anything', /^select from slot s where s\.installation_id/]];

/** The plans that one turn made, each under its statement's name: what reads a table, and by which index. */
async function plansOf(turn: () => Promise<unknown>, steps: Steps = STEPS): Promise<string> {
  const found = new Map<string, string[]>();
  const hear = ({ message }: { message?: string | undefined }) => {
    const plan = /plan:\s*Query Text:\s*([\s\S]*)/.exec(message ?? '')?.[1];
    const step = steps.find(([, begins]) => begins.test(plan ?? ''));
    if (plan === undefined || step === undefined || found.has(step[0])) return;
    const lines = [
      ...plan.matchAll(
        /^\s*(?:->\s+)?(?:(Seq Scan|Bitmap \w+ Scan) on (\w+)|Index (?:Only )?Scan using (\w+)|Sort Key: (\S+))/gm,
      ),
    ];
    found.set(
      step[0],
      lines.map(([, worse, table, index, key]) =>
        key !== undefined ? `sort by ${key}` : (index ?? `${worse} on ${table}`),
      ),
    );
  };
  owner.on('notice', hear);
  await owner.query(
    `load 'auto_explain'; set auto_explain.log_nested_statements = on; set auto_explain.log_min_duration = 0;
     set auto_explain.log_level = notice`,
  );
  await turn();
  await owner.query('set auto_explain.log_min_duration = -1');
  owner.off('notice', hear);
  return steps
    .map(([name]) => `${`${name}:`.padEnd(14)} ${(found.get(name) ?? ['not seen']).join(', ')}`)
    .join('\n');
}

/** A turn that ends `held` and asks for `n`; with `doubtful` it looks first whether there is anything. */
async function turn(held: readonly string[], n: number, doubtful = false): Promise<string[]> {
  const runner = (await seedLogin(db.database)).id;
  const { granted } = await turnQueue({ $client: owner } as unknown as Reader, {
    ends: held.map((leaseId) => ({ ...end, leaseId })),
    place: { installationId: INSTALLATION, repositoryId: REPOSITORY },
    asks: [
      {
        runnerId: runner,
        request: null,
        names: Array.from({ length: n }, () => {
          const id = randomBytes(8).toString('hex');
          return { id, tokenHash: tokenHash(id), sessionId: `s${id}` };
        }),
      },
    ],
    ttlMs: 300_000,
    doubtful,
  });
  return (granted[0] ?? []).map((one) => one.leaseId);
}

/** All that a turn may do: ends and leases; the same where another repository wished for a slot; a provider's probe (POOL-3). */
async function turns(held: readonly string[]): Promise<string[]> {
  const next = await turn(held, 2);
  await owner.query(
    `insert into slot_wish values ($1, 'openai', 0, 0, cs_now() - interval '1 minute') on conflict do nothing`,
    [INSTALLATION],
  );
  const then = await turn(next, 2);
  await owner.query('delete from slot_wish');
  await owner.query(
    `update provider set settled_until = cs_now() - interval '1 minute' where name = 'openai'`,
  );
  const last = await turn(then, 1);
  await owner.query('update provider set settled_until = null, probe_ticket = null');
  return last;
}

test('LSE-2: every look-up of a turn goes by the index that docs/queue.md names, from the first turn of an empty database on', async () => {
  const documented = /```plans\n([\s\S]*?)\n```/.exec(readFileSync('docs/queue.md', 'utf8'))?.[1];
  // plans made while nothing was there, with statistics that say so
  await owner.query('vacuum analyze');
  await seedRun(db.database, 'plan', 1);
  const first = Array.from({ length: 40 }, (_, k) =>
    plainTicket('plan', `${k}`, { provider: 'openai', parallel: 6, turn: k }),
  );
  await seedTickets(db.database, first);
  const held = await turn([], 2);
  let next: string[] = [];
  const early = await plansOf(async () => {
    next = await turns(held);
  });
  expect(early).toBe(documented);
  // and again once there is something, as a connection of now plans it
  await seedTickets(
    db.database,
    Array.from({ length: 400 }, (_, k) =>
      plainTicket('plan', `more/${k}`, { provider: 'openai', parallel: 6, turn: k }),
    ),
  );
  // and many runs that are over
  await owner.query(
    `insert into run select (jsonb_populate_record(r, jsonb_build_object('id', 'over-' || n, 'pull', n + 9, 'status', 'closed'))).*
     from run r, generate_series(1, 1500) n where r.id = 'plan'`,
  );
  await owner.query('analyze');
  await owner.query('discard plans');
  expect(await plansOf(() => turns(next))).toBe(documented);
});

test('LSE-2: who was refused looks at no backlog, nor at slots of others, before a turn', async () => {
  await owner.query(
    `insert into slot (installation_id, provider, no) select 1000 + n, 'openai', m from generate_series(1, 100) n, generate_series(1, 20) m`,
  );
  await owner.query('analyze');
  await owner.query('discard plans');
  expect(await plansOf(() => turn([], 0, true), BEFORE)).toBe(
    'anything:      slot_installation_id_provider_no_pk, ticket_ready',
  );
});
