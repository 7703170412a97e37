import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Fault, Refusal } from '../app/errors.ts';
import type { Arrow, WorkDeps } from '../app/flow/order.ts';
import { unlockDeadPools } from '../app/worker/pools.ts';
import { startWorker, sweep, type Worker, workReady } from '../app/worker.ts';
import { asOwner } from './helpers/database.ts';
import { type InboxStage, inboxStage } from './helpers/inbox.ts';
import { programFile } from './helpers/process.ts';

let stage: InboxStage;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(() => stage.close());
const workers: Worker[] = [];
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop(2_000);
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await stage.query('delete from graphile_worker._private_jobs');
  await stage.query('delete from delivery');
});

const put = async (id: string, body = '{"action":"created","installation":{"id":1}}', event = 'star') => {
  await stage.query(`insert into delivery (id, event, body, sha256, received_at)
    values ('${id}', '${event}', '${body}', sha256('${id}'), now())`);
  await stage.query(
    `select graphile_worker.add_job('receive-delivery', '{"delivery":"${id}"}', job_key => 'delivery:${id}')`,
  );
};
const jobs = () =>
  stage.query<{ attempts: number; locked: boolean; wait: number }>(
    `select attempts, locked_by is not null as locked, extract(epoch from run_at - now())::int as wait
     from graphile_worker._private_jobs where is_available is not false or locked_by is not null or attempts > 0`,
  );
const until = async (check: () => Promise<boolean>) => {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    if (await check()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('it never came true');
};
/** The stage's effects, with another reader of deliveries: what a job meets. */
const meeting = (error: unknown): WorkDeps => ({
  ...stage.deps,
  readEvent: () => {
    throw error;
  },
});

describe('jobs', () => {
  it('are worked as they come, one line each', async () => {
    workers.push(await startWorker(stage.deps, { sweeps: false }));
    await put('one');
    await until(
      async () => (await stage.query(`select 1 from delivery where state = 'ignored'`)).length === 1,
    );
    await until(async () => (await jobs()).length === 0);
    const line = stage.logged.findLast((one) => one.event === 'job');
    expect(line?.fields).toMatchObject({
      task: 'receive-delivery',
      outcome: 'done',
      payload: { delivery: 'one' },
    });
  });

  it('case 71: a runner that could not note one end, then noted others, is followed by another', async () => {
    const asTheOwner = (text: string) => asOwner(stage.database.url, (client) => client.query(text));
    await asTheOwner(`create function refuse_end() returns trigger language plpgsql as
      'begin if old.key = ''delivery:unnoted'' then raise exception ''not now''; end if; return old; end';
      create trigger refuse_end before delete on graphile_worker._private_jobs
      for each row execute function refuse_end()`);
    /** Keeps a delivery's job at work until the answer is called. */
    const hold = async (id: string) => {
      const client = await stage.deps.database.pool.connect();
      await client.query('begin');
      await client.query('select from delivery where id = $1 for update', [id]);
      return async () => {
        await client.query('commit');
        client.release();
      };
    };
    const done = async (id: string) =>
      (await stage.query(`select from delivery where id = '${id}' and state = 'ignored'`)).length === 1;
    const left = async (id: string) =>
      (await stage.query(`select from graphile_worker._private_jobs where key = 'delivery:${id}'`)).length;
    for (const id of ['unnoted', 'second', 'third', 'last']) await put(id);
    const second = await hold('second');
    const third = await hold('third');
    const last = await hold('last');
    workers.push(await startWorker(stage.deps, { sweeps: false }));
    await until(async () =>
      stage.logged.some((one) => JSON.stringify(one.fields).includes('Failed to complete')),
    );
    await asTheOwner('drop function refuse_end cascade');
    // one by one: two that end together are noted together
    await second();
    await until(async () => (await left('second')) === 0);
    await third();
    await until(async () => (await left('third')) === 0);
    await last();
    await put('next');
    await until(() => done('next'));
    await until(async () => (await left('unnoted')) === 0);
    expect(stage.logged.filter((one) => one.event === 'worker-overdue')).toHaveLength(1);
  });

  it('OPS-6: a limit that names a wait is waited out and costs no attempt', async () => {
    await put('limited');
    await workReady(
      meeting(new Fault('github_rate_limited', 'slow', { retryable: true, retryAfterMs: 60_000 })),
    );
    const [job] = await jobs();
    expect(job?.attempts).toBe(0);
    expect(job?.wait).toBeGreaterThan(50);
  });

  it('a retryable fault and an unknown error come again, bounded by the attempts of the queue', async () => {
    for (const error of [
      new Fault('github_unavailable', 'down', { retryable: true }),
      new TypeError('odd'),
    ]) {
      await stage.query('delete from graphile_worker._private_jobs');
      await stage.query('delete from delivery');
      await put('failing');
      await workReady(meeting(error));
      const [job] = await jobs();
      expect(job).toMatchObject({ attempts: 1, locked: false });
    }
  });

  it('case 73: a final fault and a refusal are recorded and never come again', async () => {
    for (const error of [new Fault('permissions_missing', 'no'), new Refusal('forbidden', 'no')]) {
      await stage.query('delete from delivery');
      await put('final');
      await workReady(meeting(error));
      expect(await jobs()).toEqual([]);
    }
  });
});

describe('a process that is killed', () => {
  it('leaves its jobs locked only until somebody looks: their lock is free', async () => {
    await put('orphan');
    const child = spawn(process.execPath, [programFile('worker'), stage.database.url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
    // it lives: its job is its own
    expect(await unlockDeadPools(stage.deps.database)).toBe(0);
    expect((await jobs())[0]?.locked).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await until(async () => (await unlockDeadPools(stage.deps.database)) === 1);
    await workReady(stage.deps);
    expect(await stage.query(`select state from delivery where id = 'orphan'`)).toEqual([
      { state: 'ignored' },
    ]);
  });
});

describe('OPS-7: a stop', () => {
  it('takes no more jobs, and what is stored waits for the next start', async () => {
    const worker = await startWorker(stage.deps, { sweeps: false });
    await worker.stop(5_000);
    expect(worker.running()).toBe(false);
    await put('later');
    await new Promise((done) => setTimeout(done, 300));
    expect(await stage.query(`select state from delivery where id = 'later'`)).toEqual([{ state: 'stored' }]);
    workers.push(await startWorker(stage.deps, { sweeps: false }));
    await until(
      async () => (await stage.query(`select 1 from delivery where state = 'ignored'`)).length === 1,
    );
  });
});

describe('POOL-5: sweeps', () => {
  it('run in order, and a failing one is logged and stops no other', async () => {
    const ran: string[] = [];
    const arrow = (name: string, work: () => void): Arrow => ({
      name,
      sweep: {
        everyMs: 1_000,
        run: async () => {
          ran.push(name);
          work();
        },
      },
    });
    const arrows = [
      arrow('first', () => {}),
      arrow('second', () => {
        throw new Error('no');
      }),
      { name: 'no-sweep' },
      arrow('third', () => {}),
    ];
    expect(await sweep(stage.deps, arrows)).toEqual(['second']);
    expect(ran).toEqual(['first', 'second', 'third']);
    expect(stage.logged.some((line) => line.event === 'sweep' && line.level === 'error')).toBe(true);
  });

  it('all of the product run on an empty database', async () => {
    expect(await stage.server.sweep()).toEqual([]);
  });
});
