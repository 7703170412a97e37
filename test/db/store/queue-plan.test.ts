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
const STEPS: readonly (readonly [string, RegExp])[] = [
  ['anything', /^p_ends is null/],
  ['ends', /^with l as \(\s*update lease/],
  ['handing on', /^update ticket t set lane = x\.lane/],
  ['what is next', /^select array_agg\(q\.name\)/],
  ['slots', /^select coalesce\(array_agg\(x\.name\)/],
  ['tickets', /^select array_agg\(c\.id\)/],
  ['berths', /^select coalesce\(array_agg\(w\.run_id\)/],
  ['grants', /^with g as materialized/],
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

/** The plans that one turn made, each under its statement's name: what reads a table, and by which index. */
async function plansOf(turn: () => Promise<unknown>): Promise<string> {
  const found = new Map<string, string[]>();
  const hear = ({ message }: { message?: string | undefined }) => {
    const plan = /plan:\s*Query Text:\s*([\s\S]*)/.exec(message ?? '')?.[1];
    const step = STEPS.find(([, begins]) => begins.test(plan ?? ''));
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
  return STEPS.map(
    ([name]) => `${`${name}:`.padEnd(14)} ${(found.get(name) ?? ['not seen']).join(', ')}`,
  ).join('\n');
}

async function turn(held: readonly string[], n: number): Promise<string[]> {
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
  });
  return (granted[0] ?? []).map((one) => one.leaseId);
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
    next = await turn(held, 2);
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
  expect(await plansOf(() => turn(next, 2))).toBe(documented);
});
