import { sql } from 'drizzle-orm';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { changeSetting } from '../../app/flow/change-setting.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { dispatch } from '../../app/flow/dispatch.ts';
import { login } from '../../app/flow/login.ts';
import { noteWorkflow } from '../../app/flow/note-workflow.ts';
import { missPool, revivePool } from '../../app/flow/stall-pool.ts';
import { sweepDispatches } from '../../app/flow/sweep-dispatches.ts';
import { verifyInstallation } from '../../app/flow/verify-run.ts';
import { createGitHubApp } from '../../app/github/octokit.ts';
import { listOpenDispatches } from '../../db/store/dispatch.ts';
import { upsertInstallation, upsertRepository } from '../../db/store/installation.ts';
import { listReasons } from '../../db/store/reason.ts';
import { updateRun } from '../../db/store/run.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App } from '../../sandbox/model.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { changedFile, openQueueRun, queueDeps, setFiles } from '../helpers/queue.ts';

/** A workflow whose job never logs in, and shows its nonce in its title. */
const WORKFLOW = `name: countersign
run-name: countersign \${{ inputs.nonce }}
on:
  workflow_dispatch:
    inputs:
      server: { required: true }
      run: { required: true }
      nonce: { required: true }
jobs:
  review:
    runs-on: ubuntu-latest
    steps:
      - run: 'true'
`;

let gh: SandboxGitHub;
let app: App;
let repo: Repository;
let db: TestDatabase;
let deps: Deps;
let place: { installationId: string; repositoryId: string };

beforeAll(async () => {
  gh = await startGitHub();
  app = gh.createApp();
});
afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
});
beforeEach(async () => {
  const alice = gh.createUser(`alice-${Math.random().toString(36).slice(2, 8)}`);
  repo = await gh.createRepository({
    owner: alice,
    files: { '.github/workflows/countersign.yml': WORKFLOW },
  });
  const installation = await gh.installApp(app, repo);
  place = { installationId: String(installation.id), repositoryId: String(repo.id) };
  db = await testDatabase();
  deps = queueDeps(db.database, undefined, {
    github: createGitHubApp({
      appId: String(app.id),
      privateKey: app.privateKey,
      webhookSecret: app.webhookSecret,
      apiUrl: gh.apiUrl,
      log: pino({ level: 'silent' }),
    }),
  });
  await db.database.transaction(async (tx) => {
    await upsertInstallation(tx, { id: place.installationId, accountId: String(alice.id), status: 'active' });
    await upsertRepository(tx, {
      id: place.repositoryId,
      installationId: place.installationId,
      ownerId: String(alice.id),
      owner: alice.login,
      name: repo.name,
      defaultBranch: 'main',
      private: false,
    });
  });
});
afterEach(async () => {
  gh.faults.clear();
  await gh.idle(20_000);
  await db.drop();
});

async function waiting(id: string, files: number): Promise<void> {
  await openQueueRun(deps, id, Number(id.replace(/\D/g, '')), place);
  await setFiles(
    deps,
    id,
    Array.from({ length: files }, (_, i) => changedFile(id, `f${i}`)),
  );
  await cutTickets(deps, { run: id });
}

const rows = async () =>
  (
    await db.database.db.execute<{
      state: string;
      workflow_run: string | null;
      detail: string | null;
      due: boolean;
    }>(
      sql`select state, workflow_run, detail, due_at is not null as due from dispatch order by created_at, id`,
    )
  ).rows;
const go = () => dispatch(deps, { repository: place.repositoryId });
const runsOf = () => gh.requests.filter((one) => one.operation === 'actions/create-workflow-dispatch').length;

/** A runner of that workflow run logs in; `tokenId` makes its token another one. */
const logIn = (workflowRun: string, tokenId: string) =>
  login(deps, {
    claims: {
      issuer: 'i',
      tokenId,
      expiresInS: 300,
      digest: 'd',
      repositoryId: place.repositoryId,
      ownerId: String(repo.owner.id),
      repository: `${repo.owner.login}/${repo.name}`,
      event: 'workflow_dispatch',
      ref: 'refs/heads/main',
      refType: 'branch',
      workflowRef: `${repo.owner.login}/${repo.name}/.github/workflows/countersign.yml@refs/heads/main`,
      jobWorkflowRef: null,
      workflowRun,
      attempt: 1,
      sha: null,
      job: null,
      environment: 'github-hosted',
    },
    protocol: '1.0',
    nonce: null,
    version: '0',
    capacity: 4,
    keys: null,
  });

/** What the installation's chain says of pools; it must verify. */
async function poolRows() {
  const found = await verifyInstallation(deps, { id: place.installationId, epoch: 1 }, { full: true });
  expect(found.verdict.kind).toBe('intact');
  return found.rows.filter((row) => row.kind === 'pool.changed');
}

describe('POOL-4: a dispatch is a wake-up', () => {
  test('POOL-4: intent, call, effect: the run id GitHub answers is kept, and planning twice starts once', async () => {
    await waiting('r1', 3);
    const before = runsOf();
    const outcomes = await Promise.all([go(), go(), go()]);
    expect(outcomes.map((one) => one.sent).sort()).toEqual([0, 0, 1]);
    expect(runsOf() - before).toBe(1);
    const [sent] = await rows();
    expect(sent).toMatchObject({ state: 'sent', due: true });
    expect(sent?.workflow_run).toMatch(/^[0-9]+$/);
    // the nonce is nowhere but in the workflow's inputs: only its hash is stored
    const { rows: found } = await db.database.db.execute<{ n: number }>(
      sql`select length(nonce_hash) as n from dispatch`,
    );
    expect(found).toEqual([{ n: 32 }]);
  });

  test('POOL-4: at most 30 of a repository go out in a minute, and the sweep plans the rest when the minute is over', async () => {
    await waiting('r9', 1);
    const gone = (n: number, ago: string) =>
      db.database.db.execute(sql`
        insert into dispatch (id, installation_id, repository_id, run_id, pool, workflow, generation, nonce_hash, state, created_at, ended_at)
        select 'gone' || ${ago}::text || g, ${place.installationId}, ${place.repositoryId}, 'r9', 'p', 'p', 0,
          sha256((${ago}::text || g)::bytea), 'done', cs_now() - ${ago}::interval, cs_now()
        from generate_series(1, ${n}::int) g`);
    await gone(1, '61 seconds');
    await gone(30, '30 seconds');
    expect((await go()).sent, 'the thirty-first').toBe(0);
    await db.database.db.execute(
      sql`select graphile_worker.remove_job(key) from graphile_worker.jobs where key is not null`,
    );
    await db.database.db.execute(sql`update dispatch set created_at = created_at - interval '31 seconds'`);
    await sweepDispatches(deps);
    const { rows: jobs } = await db.database.db.execute(
      sql`select key from graphile_worker.jobs where key like 'dispatch:%'`,
    );
    expect(jobs).toEqual([{ key: `dispatch:${place.repositoryId}` }]);
    expect((await go()).sent).toBe(1);
  });

  test('CTL-2: a run that is no longer open is dispatched for no more', async () => {
    await waiting('r2', 1);
    await db.database.transaction((tx) => updateRun(tx, 'r2', { status: 'stopped' }));
    expect(await go()).toMatchObject({ sent: 0 });
    expect(await rows()).toEqual([]);
  });

  test('CTL-2, CTL-5: a kill switch between the plan and its call fences it, the pool missed nothing, and it goes on after', async () => {
    await waiting('r9', 1);
    const before = runsOf();
    const { installationId: installation } = place;
    const set = (value: unknown) =>
      changeSetting(deps, {
        installation,
        key: 'kill',
        value,
        by: 'olga',
        reason: 'an alarm',
        via: 'command_line',
      });
    const github = {
      ...deps.github,
      installation: async (id: string) => {
        await set('on');
        return deps.github.installation(id);
      },
    };
    expect(await dispatch({ ...deps, github }, { repository: place.repositoryId })).toMatchObject({
      sent: 0,
    });
    expect(await rows()).toMatchObject([{ state: 'failed', detail: 'fenced' }]);
    expect(await go()).toEqual({ plan: 'none', sent: 0 });
    expect(runsOf()).toBe(before);
    await set(undefined);
    expect(await go()).toMatchObject({ sent: 1 });
    const pools = await db.database.db.execute<{ missed: number }>(
      sql`select missed from pool where missed > 0`,
    );
    expect(pools.rows).toEqual([]);
  });

  test('case 54: a lost answer is ambiguous, is not sent again before its time, and its runner is welcome by the nonce', async () => {
    await waiting('r3', 1);
    gh.faults.add({ on: 'actions/create-workflow-dispatch', times: 1, when: 'after', status: 502 });
    const before = runsOf();
    expect(await go()).toMatchObject({ sent: 0 });
    expect(await rows()).toMatchObject([{ state: 'ambiguous', workflow_run: null, due: true }]);
    expect(await go()).toMatchObject({ sent: 0 });
    expect(runsOf() - before).toBe(1);
    // the workflow run that did start is known by the nonce in its title
    await gh.idle(20_000);
    const [run] = gh.actions.runs.filter((one) => one.repository.id === repo.id);
    expect(run?.displayTitle).toMatch(/^countersign .{32,}/);
    const noted = await noteWorkflow(deps, {
      repository: place.repositoryId,
      workflowRun: String(run?.id),
      attempt: 1,
      job: null,
      completed: true,
      conclusion: 'success',
      title: run?.displayTitle ?? '',
    });
    expect(noted).toBe('missed');
  });

  test('case 54, POOL-5: nobody comes twice: dispatch_stalled with its deadline; a probe after 5 min; a login clears it', async () => {
    await waiting('r4', 1);
    await go();
    for (let i = 0; i < 2; i++) {
      await db.moveClock(10 * 60_000 + 1);
      expect(await sweepDispatches(deps)).toBe(1);
      await go();
    }
    expect((await rows()).map((one) => one.state)).toEqual(['missed', 'missed']);
    const [reason] = await listReasons(db.database.db, 'r4');
    expect(reason).toMatchObject({ code: 'dispatch_stalled', detail: 'countersign.yml: no runner came' });
    expect(reason?.dueAtMs).toBeGreaterThan((reason?.sinceMs ?? 0) + 5 * 3_600_000);
    expect(await go()).toMatchObject({ plan: 'wait', sent: 0 });
    await db.moveClock(5 * 60_000 + 1);
    expect(await go()).toMatchObject({ plan: 'start', sent: 1 });
    // the reason stands until a runner came
    expect(await listReasons(db.database.db, 'r4')).toHaveLength(1);
    const [last] = (await rows()).slice(-1);
    await logIn(last?.workflow_run ?? '', 't');
    await go();
    expect(await listReasons(db.database.db, 'r4')).toEqual([]);
  });

  test('POOL-3: a workflow run that ended before a runner came is a miss, a cancelled one is not', async () => {
    await waiting('r5', 1);
    await go();
    const [first] = await rows();
    const note = {
      repository: place.repositoryId,
      workflowRun: first?.workflow_run ?? '',
      attempt: 1,
      sha: null,
      job: null,
      completed: true,
      title: '',
    };
    await noteWorkflow(deps, { ...note, conclusion: 'startup_failure' });
    expect(await rows()).toMatchObject([{ state: 'failed' }]);
    await go();
    const [, second] = await rows();
    await noteWorkflow(deps, { ...note, workflowRun: second?.workflow_run ?? '', conclusion: 'cancelled' });
    const { rows: pools } = await db.database.db.execute(sql`select missed, settled_until from pool`);
    expect(pools).toEqual([{ missed: 1, settled_until: null }]);
  });

  test('case 42: a run that cannot start, one that ends without a job and one that nobody picks up are told apart, and what waits still waits', async () => {
    const causes = [
      ['r11', 'startup_failure', 'the workflow run ended without a runner: startup_failure'],
      ['r12', 'success', 'the workflow run ended without a runner: success'],
      ['r13', null, 'no runner came'],
    ] as const;
    for (const [run, conclusion, says] of causes) {
      await waiting(run, 2);
      // twice: one miss says nothing of a pool
      for (let n = 0; n < 2; n++) {
        await go();
        const last = (await rows()).at(-1);
        expect(last?.state, 'dispatched again').toBe('sent');
        if (conclusion === null) {
          await db.moveClock(10 * 60_000 + 1);
          await sweepDispatches(deps);
        } else {
          const workflowRun = last?.workflow_run ?? '';
          const title = { attempt: 1, job: null, completed: true, title: '' };
          const note = { repository: place.repositoryId, workflowRun, conclusion, ...title };
          expect(await noteWorkflow(deps, note)).toBe('missed');
        }
      }
      await go();
      expect(await listReasons(db.database.db, run)).toMatchObject([
        { code: 'dispatch_stalled', detail: `countersign.yml: ${says}` },
      ]);
      const { rows: tickets } = await db.database.db.execute(
        sql`select state, losses, count(*)::int as n from ticket where run_id = ${run} group by 1, 2`,
      );
      expect(tickets, 'nobody had them, so nothing is counted against them').toEqual([
        { state: 'pending', losses: 0, n: 2 },
      ]);
      await db.database.transaction((tx) => updateRun(tx, run, { status: 'closed' }));
      await db.database.db.execute(sql`delete from pool`);
    }
    expect(await rows(), 'two each, not one for every look').toHaveLength(6);
  });

  test('POOL-3: a workflow GitHub does not know is refused at once and stalls at the second time', async () => {
    await repo.commit({
      branch: 'main',
      message: 'Remove',
      files: { '.github/workflows/countersign.yml': null },
    });
    await waiting('r6', 1);
    await go();
    await go();
    await go();
    expect((await rows()).map((one) => one.state)).toEqual(['failed', 'failed']);
    expect(await listReasons(db.database.db, 'r6')).toMatchObject([{ code: 'dispatch_stalled' }]);
  });

  test('LED-4, POOL-3: each settling and the revival of a pool is one row of the installation; a single miss is none', async () => {
    await waiting('r8', 1);
    const chain = () =>
      db.database.db.execute(sql`select kind from ledger_row where run_id like 'i/%' order by seq`);
    const miss = async () => {
      await go();
      await db.moveClock(10 * 60_000 + 1);
      await Promise.all([sweepDispatches(deps), sweepDispatches(deps)]);
    };
    await miss();
    expect((await chain()).rows).toEqual([]);
    await miss();
    const [first] = await poolRows();
    const { rows: pools } = await db.database.db.execute<{ until: string }>(
      sql`select settled_until as until from pool`,
    );
    expect(first).toMatchObject({
      actor: { kind: 'app', id: String(app.id), via: 'schedule' },
      cause: { kind: 'dispatch' },
      data: {
        repository: place.repositoryId,
        pool: 'countersign.yml',
        state: 'settled',
        until: new Date(pools[0]?.until ?? 0).toISOString(),
        detail: 'no runner came',
      },
    });
    // its probe fails too: settled again, for longer
    await db.moveClock(5 * 60_000 + 1);
    await miss();
    expect((await poolRows()).map((row) => row.data)).toMatchObject([
      { state: 'settled' },
      { state: 'settled' },
    ]);
    await db.moveClock(60 * 60_000);
    await go();
    const [last] = (await rows()).slice(-1);
    const login = await logIn(last?.workflow_run ?? '', 't1');
    await logIn(last?.workflow_run ?? '', 't2');
    expect((await poolRows()).slice(2)).toMatchObject([
      {
        actor: { kind: 'runner', id: login.runner, via: 'oidc' },
        data: { repository: place.repositoryId, pool: 'countersign.yml', state: 'revived', until: null },
      },
    ]);
  });

  test('LED-4: a settling that is rolled back leaves neither its row nor its state', async () => {
    await waiting('r9', 1);
    await go();
    const [open] = await listOpenDispatches(db.database.db, place.repositoryId);
    if (open === undefined) throw new Error('no dispatch');
    const miss = { detail: 'gone', via: 'schedule' } as const;
    await db.database.transaction((tx) => missPool(deps, tx, open, miss));
    await expect(
      db.database.transaction(async (tx) => {
        await missPool(deps, tx, open, miss);
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    const { rows: state } = await db.database.db.execute(
      sql`select missed, settled_until, (select count(*)::int from ledger_row where kind = 'pool.changed') as rows from pool`,
    );
    expect(state).toEqual([{ missed: 1, settled_until: null, rows: 0 }]);
  });

  test('POOL-3: two first misses at the same moment are two, and settle the pool', async () => {
    await waiting('r11', 1);
    await go();
    const [open] = await listOpenDispatches(db.database.db, place.repositoryId);
    if (open === undefined) throw new Error('no dispatch');
    const miss = () =>
      db.database.transaction((tx) => missPool(deps, tx, open, { detail: 'gone', via: 'schedule' }));
    await Promise.all([miss(), miss()]);
    const { rows } = await db.database.db.execute(
      sql`select missed, settled_until is not null as settled from pool`,
    );
    expect(rows).toEqual([{ missed: 2, settled: true }]);
    expect((await poolRows()).map((row) => row.data)).toMatchObject([{ state: 'settled' }]);
  });

  test('LED-4: runners that come at the same moment revive a settled pool once', async () => {
    await waiting('r10', 1);
    await go();
    const [open] = await listOpenDispatches(db.database.db, place.repositoryId);
    if (open === undefined) throw new Error('no dispatch');
    const miss = { detail: 'gone', via: 'schedule' } as const;
    for (let i = 0; i < 2; i++) await db.database.transaction((tx) => missPool(deps, tx, open, miss));
    const runners = Array.from({ length: 5 }, (_, i) => `runner${i}`);
    await Promise.all(runners.map((one) => db.database.transaction((tx) => revivePool(deps, tx, open, one))));
    expect((await poolRows()).map((row) => row.data)).toMatchObject([
      { state: 'settled', detail: 'gone' },
      { state: 'revived', until: null },
    ]);
  });

  test('POOL-5: a repository that waits with nobody on the way is found by the sweep', async () => {
    await waiting('r7', 1);
    await db.database.db.execute(
      sql`select graphile_worker.remove_job(key) from graphile_worker.jobs where key is not null`,
    );
    await sweepDispatches(deps);
    const { rows: jobs } = await db.database.db.execute(
      sql`select key from graphile_worker.jobs where key like 'dispatch:%'`,
    );
    expect(jobs).toEqual([{ key: `dispatch:${place.repositoryId}` }]);
  });
});
