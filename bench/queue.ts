/** A queue of any size for the lease benches, and graphile-worker over the same server as the peer. */
import { createHash, randomBytes } from 'node:crypto';
import { Logger, run } from 'graphile-worker';
import pg from 'pg';
import type { Database } from '../db/client.ts';
import { settleLease, takeLeases } from '../db/store/lease.ts';

/** The queue's installation and repository. */
export const PLACE = { installationId: '5', repositoryId: '74' } as const;

/** The shape of a queue: as the prototype's, four providers, five blocks a run. */
export interface QueueShape {
  readonly tickets: number;
  readonly runs: number;
  /** Slots of each model provider; `command` needs none. */
  readonly slots: number;
  readonly parallel: number;
  /** Every ticket is for this provider; default: they take turns. */
  readonly provider?: string;
}

const PROVIDERS = ['command', 'openai', 'anthropic', 'xai'];

/** Fills an empty queue: the rows that cut-tickets would write, windows filled. */
export async function fillQueue(url: string, shape: QueueShape): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
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
       select encode(sha256(n::text::bytea), 'hex'), 'r' || (1 + n % $3), $1, $2, 'b' || (n % 5), ('src/file-' || n || '.ts')::bytea,
         encode(sha256(('k' || n)::bytea), 'hex'), 0, 'pending', 'L1', repeat('0', 64), jsonb_build_object('pad', repeat('s', 400)),
         '["x"]', x.provider, jsonb_build_array(x.provider), $4, n / $3, now()
       from generate_series(1, $5::int) n,
         lateral (select coalesce($6, ($7::text[])[1 + (n / $3) % 4]) as provider) x`,
      [
        PLACE.installationId,
        PLACE.repositoryId,
        shape.runs,
        shape.parallel,
        shape.tickets,
        shape.provider ?? null,
        PROVIDERS,
      ],
    );
    await client.query(
      `select ticket_window(w.run_id, w.provider, $1::smallint) from (select distinct run_id, provider from ticket) w`,
      [shape.parallel],
    );
    await client.query('vacuum analyze');
    // the order of the measured work must not depend on when the pages were written
    await client.query('checkpoint');
  } finally {
    await client.end();
  }
}

/** One caller's cycle: leases one ticket, ends it; how many (0 or 1). Each is a commit of its own. */
export async function cycle(database: Database, runnerId: string): Promise<number> {
  const id = randomBytes(10).toString('hex');
  const [got] = await takeLeases(database.db, {
    runnerId,
    ...PLACE,
    runId: null,
    ids: [id],
    tokenHashes: [createHash('sha256').update(id).digest()],
    sessionIds: [`s${id}`],
    ttlMs: 300_000,
  });
  if (got === undefined) return 0;
  await settleLease(database.db, got.leaseId, {
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
  return 1;
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

const quiet = new Logger(() => () => {});

/** Adds empty jobs for the peer. */
export async function fillPeer(url: string, jobs: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (let left = jobs; left > 0; left -= 10_000) {
      await client.query(
        `select count(*) from graphile_worker.add_jobs(array(
           select spec from json_populate_recordset(null::graphile_worker.job_spec, $1::json) spec))`,
        [
          JSON.stringify(
            Array.from({ length: Math.min(left, 10_000) }, () => ({
              identifier: 'empty',
              payload: { pad: 's'.repeat(400) },
            })),
          ),
        ],
      );
    }
    await client.query('vacuum analyze graphile_worker._private_jobs');
  } finally {
    await client.end();
  }
}

/** Jobs a second that graphile-worker works with empty tasks, counted from the first one on for about `ms`. */
export async function peerRate(url: string, callers: number, ms: number): Promise<number> {
  const pool = new pg.Pool({ connectionString: url, max: callers + 1 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  let first = 0;
  let last = 0;
  let done = 0;
  let full: () => void = () => {};
  const enough = new Promise<void>((resolve) => {
    full = resolve;
  });
  const runner = await run({
    pgPool: pool,
    concurrency: callers,
    logger: quiet,
    noHandleSignals: true,
    taskList: {
      empty: () => {
        last = performance.now();
        if (first === 0) first = last;
        else done++;
        if (last - first > ms) full();
      },
    },
  });
  await enough;
  const rate = (done * 1_000) / (last - first);
  await runner.stop();
  await pool.end();
  return rate;
}
