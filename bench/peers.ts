/** The peers of the lease benches, over the same server: graphile-worker and pg-boss, with empty jobs. */
import { Logger, run } from 'graphile-worker';
import pg from 'pg';
import PgBoss from 'pg-boss';

const quiet = new Logger(() => () => {});

/** Adds empty jobs, each in one of `queues` named queues when there are some. */
export async function fillPeer(url: string, jobs: number, queues = 0): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (let left = jobs; left > 0; left -= 10_000) {
      await client.query(
        `select count(*) from graphile_worker.add_jobs(array(
           select spec from json_populate_recordset(null::graphile_worker.job_spec, $1::json) spec))`,
        [
          JSON.stringify(
            Array.from({ length: Math.min(left, 10_000) }, (_, i) => ({
              identifier: 'empty',
              ...(queues === 0 ? {} : { queue_name: `q${(left + i) % queues}` }),
              payload: { pad: 's'.repeat(400) },
            })),
          ),
        ],
      );
    }
    await client.query('vacuum analyze graphile_worker._private_jobs');
    await client.query('vacuum analyze graphile_worker._private_job_queues');
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

/** A pg-boss with that many empty jobs waiting. */
export async function startBoss(url: string, jobs: number): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: url, max: 9, supervise: false, schedule: false });
  boss.on('error', () => {});
  await boss.start();
  await boss.createQueue('empty');
  for (let left = jobs; left > 0; left -= 10_000) {
    await boss.insert(
      Array.from({ length: Math.min(left, 10_000) }, () => ({
        name: 'empty',
        data: { pad: 's'.repeat(400) },
      })),
    );
  }
  return boss;
}

/** One fetch and complete of pg-boss; how many (0 or 1). */
export async function bossCycle(boss: PgBoss): Promise<number> {
  const [job] = await boss.fetch('empty');
  if (job === undefined) return 0;
  await boss.complete('empty', job.id);
  return 1;
}

/** graphile-worker with one empty task that tells when it starts. */
export async function startPeer(url: string, started: () => void): Promise<{ stop(): Promise<void> }> {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const runner = await run({
    pgPool: pool,
    concurrency: 1,
    logger: quiet,
    noHandleSignals: true,
    taskList: { empty: () => started() },
  });
  return {
    async stop() {
      await runner.stop();
      await pool.end();
    },
  };
}
