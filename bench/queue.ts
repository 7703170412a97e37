/** A queue of any size for the lease benches, and its turns as the product takes them. */
import { hash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { gather } from '../app/flow/gather.ts';
import { createFloors } from '../app/flow/take-turn/floors.ts';
import { newsOf } from '../app/flow/wake.ts';
import { createIds } from '../app/server/ids.ts';
import type { Database } from '../db/client.ts';
import { type Granted, type LeaseAsk, type QueueTurn, turnQueue } from '../db/store/turn.ts';

/** The queue's installation and repository. */
export const PLACE = { installationId: '5', repositoryId: '74' } as const;

/** As the API process has them (app/flow/lease.ts). */
const FLIGHTS = 2;
const MOST = 32;

/** The shape of a queue: as the prototype's, four providers, five blocks a run. */
export interface QueueShape {
  readonly tickets: number;
  readonly runs: number;
  /** Slots of each model provider; `command` needs none. */
  readonly slots: number;
  readonly parallel: number;
  /** Every ticket is for this provider; default: they take turns. */
  readonly provider?: string;
  /** Nine tickets of ten are for a provider with two slots. */
  readonly capped?: boolean;
  /** All tickets are of ten paths: one of each cell is pending, the others are held behind it. */
  readonly hot?: boolean;
}

const PROVIDERS = ['command', 'openai', 'anthropic', 'xai'];
const CAPPED = 'xai';
const HOT = 10;

/** Fills an empty queue: the rows that cut-tickets would write, windows filled. */
export async function fillQueue(url: string, shape: QueueShape): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // Before and not after: the first change of a page after a checkpoint writes the whole page. Between two
    // checkpoints of a busy queue that is a small part of it, right after one it would be most, here and not at
    // the peers, whose jobs are filled in later.
    await client.query('checkpoint');
    await client.query('truncate ticket, lease, session, slot, provider, run cascade');
    await client.query(`insert into provider (installation_id, name) select $1, unnest($2::text[])`, [
      PLACE.installationId,
      PROVIDERS,
    ]);
    await client.query(
      `insert into slot (installation_id, provider, no) select $1, p, n from unnest($2::text[]) p, generate_series(1, $3) n where p <> 'command'`,
      [PLACE.installationId, PROVIDERS, shape.slots],
    );
    await client.query(
      `insert into run (id, installation_id, repository_id, pull, epoch, status, told_head, head, base_ref, allowed_rule, allowed_scope, head_at, opened_at)
       select 'r' || n, $1, $2, n, 1, 'open', repeat('a', 40), repeat('a', 40), 'main', 'same_repository', 'author', now(), now()
       from generate_series(1, $3) n`,
      [PLACE.installationId, PLACE.repositoryId, shape.runs],
    );
    await client.query(
      `insert into ticket (id, run_id, installation_id, repository_id, block_id, path, key, round, state, level, policy_hash, spec,
         reviewers, provider, providers, parallel, turn, queued_at)
       select encode(sha256(n::text::bytea), 'hex'), 'r' || (1 + n % $3), $1, $2, 'b' || (c.cell % 5), ('src/file-' || c.cell || '.ts')::bytea,
         encode(sha256(('k' || n)::bytea), 'hex'), 0, case when n / $3 < $8::int then 'pending' else 'held' end, 'L1', repeat('0', 64),
         jsonb_build_object('pad', repeat('s', 400)), '["x"]', x.provider, jsonb_build_array(x.provider), $4, n / $3, now()
       from generate_series(1, $5::int) n,
         lateral (select case when $8::int < $5::int then n / $3 % $8::int else n end as cell) c,
         lateral (select coalesce($6, case when $9::boolean and n / $3 % 10 > 0 then $10 else ($7::text[])[1 + (c.cell / (case when $8::int < $5::int then 1 else $3 end)) % 4] end) as provider) x`,
      [
        PLACE.installationId,
        PLACE.repositoryId,
        shape.runs,
        shape.parallel,
        shape.tickets,
        shape.provider ?? null,
        PROVIDERS,
        shape.hot === true ? HOT : shape.tickets,
        shape.capped === true,
        CAPPED,
      ],
    );
    if (shape.capped === true)
      await client.query('delete from slot where provider = $1 and no > 2', [CAPPED]);
    await client.query(
      `select ticket_window(w.run_id, w.provider, $1::smallint) from (select distinct run_id, provider from ticket where state = 'pending') w`,
      [shape.parallel],
    );
    await client.query('vacuum analyze');
  } finally {
    await client.end();
  }
}

type End = QueueTurn['ends'][number];

const TTL_MS = 300_000;
/** As the product makes them: in order of time. */
const ids = createIds();
const ended = (leaseId: string): End => ({
  leaseId,
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
});

const asking = (runnerId: string, n: number): LeaseAsk => ({
  runnerId,
  request: null,
  names: Array.from({ length: n }, () => {
    const id = ids.next();
    return { id, tokenHash: hash('sha256', id, 'buffer'), sessionId: `s${id}` };
  }),
});

/** A caller's turn: what it had leased ends, and up to `n` are leased; what it has now. */
export type Turn = (runnerId: string, held: readonly Granted[], n: number) => Promise<readonly Granted[]>;

/** Turns by a statement and a commit of their own. */
export function singleTurns(database: Database): Turn {
  return async (runnerId, held, n) => {
    const { granted } = await turnQueue(database.db, {
      ends: held.map((one) => ended(one.leaseId)),
      place: PLACE,
      asks: n === 0 ? [] : [asking(runnerId, n)],
      ttlMs: TTL_MS,
    });
    return granted[0] ?? [];
  };
}

/** Turns gathered as the API process gathers them: at most two under way, many callers in each. */
export function gatheredTurns(database: Database): Turn {
  const floors = createFloors();
  let refused: number | null = null;
  const turn = gather(FLIGHTS, MOST, async (inputs: readonly { ends: End[]; ask: LeaseAsk }[]) => {
    const ends = inputs.flatMap((one) => one.ends);
    const news = newsOf(database, PLACE.repositoryId);
    const { granted, heads } = await turnQueue(database.db, {
      ends,
      place: PLACE,
      asks: inputs.map((one) => one.ask),
      ttlMs: TTL_MS,
      doubtful: refused === news,
      ...floors.next(),
    });
    floors.learn(heads);
    refused = ends.length === 0 && heads.size === 0 ? news : null;
    return granted;
  });
  return (runnerId, held, n) =>
    turn({ ends: held.map((one) => ended(one.leaseId)), ask: asking(runnerId, n) });
}

/** Tickets a second that `callers` lease and end over and over for `ms`, `n` at a time; each ends what it had with what it asks for. */
export async function turnRate(turn: Turn, callers: number, ms: number, n = 1): Promise<number> {
  const from = performance.now();
  const counts = await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      let held: readonly Granted[] = [];
      let done = 0;
      while (performance.now() - from < ms) {
        const ending = held.length;
        held = await turn(`runner-${caller}`, held, n);
        done += ending;
      }
      const rest = held.length;
      await turn(`runner-${caller}`, held, 0);
      return done + rest;
    }),
  );
  return (counts.reduce((sum, one) => sum + one, 0) * 1_000) / (performance.now() - from);
}

/** Ends one lease by a statement of its own: `expired` puts its ticket back; false when it was not live any more. */
export function endedTurns(
  database: Database,
): (leaseId: string, state: 'ended' | 'expired') => Promise<boolean> {
  return async (leaseId, state) => {
    const end: End =
      state === 'ended'
        ? ended(leaseId)
        : {
            ...ended(leaseId),
            leaseState: 'expired',
            ticketState: 'pending',
            end: null,
            verdict: null,
            seq: null,
          };
    const done = await turnQueue(database.db, { ends: [end], place: PLACE, asks: [], ttlMs: TTL_MS });
    return done.ended.has(leaseId);
  };
}

/** Puts one ticket into the queue: the row and its window in one transaction, which travel with its BEGIN. */
export async function queueOne(database: Database): Promise<void> {
  const id = randomBytes(32).toString('hex');
  await database.transaction(async () => {}, undefined, [
    {
      name: 'queue-one',
      text: `insert into ticket (id, run_id, installation_id, repository_id, block_id, path, key, round, state, level, policy_hash, spec,
        reviewers, provider, providers, parallel, turn, queued_at)
        values ($1, 'r1', $2, $3, 'b0', $1::text::bytea, $1, 0, 'pending', 'L1', $1, '{}', '["x"]', 'command', '["command"]', 6, 0, cs_now())`,
      values: [id, PLACE.installationId, PLACE.repositoryId],
    },
    { name: 'window-of-one', text: `select ticket_window('r1', 'command', 6::smallint)`, values: [] },
  ]);
}

/** What is over a cap, leased twice, or holds a slot for nobody, right now. */
export async function violations(
  database: Database,
  caps: { readonly slots: number; readonly parallel: number },
): Promise<string[]> {
  const { rows } = await database.pool.query<{ what: string }>(
    `select 'run ' || run_id as what from lease where state = 'live' group by run_id having count(*) > $1
     union all select 'provider ' || provider from lease where state = 'live' and provider <> 'command' group by provider having count(*) > $2
     union all select 'ticket ' || ticket_id from lease where state = 'live' group by ticket_id having count(*) > 1
     union all select 'cell ' || run_id from ticket where state in ('pending', 'leased') group by run_id, block_id, path having count(*) > 1
     union all select 'unleased ' || t.id from ticket t where t.state = 'leased' and not exists (select from lease l where l.id = t.lease_id and l.state = 'live')
     union all select 'slot ' || s.session_id from slot s where s.session_id is not null and not exists (select from lease l where l.session_id = s.session_id and l.state = 'live')`,
    [caps.parallel, caps.slots],
  );
  return rows.map((row) => row.what);
}

/** Puts back what was ended, so that each repetition meets the same backlog. */
export async function refill(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      `with back as (update ticket set state = 'pending', ended_at = null where state = 'ended' returning run_id, provider, parallel)
       select ticket_window(w.run_id, w.provider, w.parallel) from (select distinct run_id, provider, parallel from back) w`,
    );
    await client.query('delete from lease');
    await client.query('vacuum ticket, lease, slot');
  } finally {
    await client.end();
  }
}
