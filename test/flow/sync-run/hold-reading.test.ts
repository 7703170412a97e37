/** What keeps a run from being read: tried again while it stands, and gone once another sync came past it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { syncRun } from '../../../app/flow/sync-run.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import { type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
beforeAll(async () => {
  stage = await syncStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

let strangers = 0;
/** A pull request from a fork, read once, whose next push is told before it is here (case 7). */
async function pushedAhead(): Promise<{ run: string; pull: Pull }> {
  const repo = await stage.repository({ a: '1\n' });
  const stranger = stage.gh.createUser(`stranger-${++strangers}`);
  const fork = await repo.fork(stranger);
  await fork.commit({ branch: 'topic', message: 'Change', files: { a: '2\n' }, author: stranger });
  const pull = await repo.openPull({ head: 'topic', fork, user: stranger });
  await stage.gh.idle();
  const run = await stage.open(pull);
  await stage.sync(run);
  repo.propagation = 'manual';
  await pull.push({ message: 'More', files: { b: '1\n' } });
  return { run, pull };
}

const reasons = async (run: string) => {
  const { rows } = await stage.database.database.pool.query('select code from reason where run_id = $1', [
    run,
  ]);
  return rows.map((row) => row.code);
};

it('case 7, RUN-2: a failure that another sync came past holds nothing', async () => {
  const { run, pull } = await pushedAhead();
  const { git } = stage.deps;
  let pass = () => {};
  const passed = new Promise<void>((done) => {
    pass = done;
  });
  let late: Promise<unknown> = Promise.resolve();
  await new Promise<void>((failed) => {
    // stopped between the failure and the note of it, where the other sync commits
    const readPull: typeof git.readPull = (request) =>
      git.readPull(request).catch(async (error: unknown) => {
        failed();
        await passed;
        throw error;
      });
    late = syncRun({ ...stage.deps, git: { ...git, readPull } }, { run });
  });
  await pull.propagate();
  expect(await stage.sync(run)).toMatchObject({ kind: 'synced', head: pull.head.sha });
  pass();
  expect(await late).toMatchObject({ kind: 'unchanged', head: pull.head.sha });
  expect(await reasons(run)).toEqual([]);
});

it('case 7, POOL-5: what holds a run tells when to try again, later the longer it stands', async () => {
  const { run, pull } = await pushedAhead();
  const wait = () =>
    stage.sync(run).then(
      () => null,
      (error: { code: string; retryable: boolean; retryAfterMs: number }) => {
        expect(error).toMatchObject({ code: 'git_unavailable', retryable: true });
        return error.retryAfterMs;
      },
    );
  expect(await wait()).toBe(1_000);
  await stage.database.moveClock(60_000);
  expect(await wait()).toBeGreaterThanOrEqual(60_000);
  await stage.database.moveClock(3 * 3_600_000);
  expect(await wait()).toBe(300_000);
  expect(await reasons(run)).toEqual(['git_unavailable']);
  await pull.propagate();
  expect(await wait()).toBeNull();
  expect(await reasons(run)).toEqual([]);
});
