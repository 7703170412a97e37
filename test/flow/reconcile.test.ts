import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sweepReconcile } from '../../app/flow/reconcile.ts';
import { findInstallation } from '../../db/store/installation.ts';
import { type InboxStage, inboxStage, POLICY } from '../helpers/inbox.ts';

let stage: InboxStage;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

/** One pass, and all that it queues. */
async function reconcile() {
  const outcome = await sweepReconcile(stage.deps);
  await stage.settle();
  return outcome;
}
/** While it runs nothing arrives: what GitHub sends meanwhile fails, as when the server is down. */
async function outage(work: () => Promise<void>): Promise<void> {
  stage.gh.deliverTo(stage.app, 'http://127.0.0.1:9/api/github/webhooks');
  await work();
  await stage.gh.idle();
  stage.gh.deliverTo(stage.app, `${stage.server.url}/api/github/webhooks`);
}
/** Nothing arrives, and GitHub keeps no record of it (three days have passed); ends with the returned function. */
function lose(): () => void {
  const end = stage.gh.webhooks.drop(() => true);
  return () => {
    end();
    stage.gh.world.deliveries.length = 0;
  };
}
const rowCount = async () =>
  (await stage.query<{ n: number }>('select count(*)::int as n from ledger_row'))[0]?.n;

describe('case 4: after an outage', () => {
  it('failed deliveries are asked for again, once, and nothing is done twice', async () => {
    const { repository } = await stage.repository();
    await stage.settle();
    await reconcile();
    let head = '';
    await outage(async () => {
      const pull = await stage.open(repository, 'missed');
      head = pull.head.sha;
    });
    const first = await reconcile();
    expect(first?.redelivered).toBeGreaterThan(0);
    const [delivery] = await stage.query<{ state: string }>(
      `select state from delivery where event = 'pull_request' and action = 'opened' order by received_at desc limit 1`,
    );
    expect(delivery?.state).toBe('done');
    expect((await stage.query(`select 1 from run where told_head = '${head}'`)).length).toBe(1);
    const rows = await rowCount();
    const second = await reconcile();
    expect(second?.redelivered).toBe(0);
    expect(await rowCount()).toBe(rows);
  });

  it('GAT-5: a merge group whose request was lost gets its run: nothing else would tell of it', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'queued');
    await stage.settle();
    await reconcile();
    const queue = repository.useQueue();
    await outage(async () => {
      await queue.enqueue(pull, stage.alice);
    });
    const groups = () =>
      stage.query(`select 1 from run where group_head is not null and repository_id = ${repository.id}`);
    expect(await groups()).toEqual([]);
    await reconcile();
    expect(await groups()).toHaveLength(1);
  });

  it('a delivery that is in the inbox is not asked for again, whatever GitHub believes (case 3)', async () => {
    const { repository } = await stage.repository();
    await stage.settle();
    await reconcile();
    await stage.open(repository, 'slow');
    await stage.gh.idle();
    // GitHub gave up waiting although the delivery was stored
    for (const one of stage.gh.world.deliveries.slice(-5)) one.statusCode = 502;
    expect((await reconcile())?.redelivered).toBe(0);
  });

  it('case 6: what no delivery tells is found by comparing: opened, pushed, closed; no green meanwhile', async () => {
    const { repository } = await stage.repository();
    const pushed = await stage.open(repository, 'pushed');
    const closed = await stage.open(repository, 'closed');
    await stage.settle();
    await reconcile();
    const found = lose();
    const opened = await stage.open(repository, 'opened');
    const head = await pushed.push({ message: 'More', files: { 'b.ts': '1\n' } });
    await closed.close();
    await stage.gh.idle();
    found();
    // a push too big for a webhook: nobody has seen this commit, and nothing says that it is good
    expect(stage.gates(pushed)).toEqual([]);
    expect(stage.gh.mergeable(pushed, 'countersign', stage.app)).toBe(false);
    await reconcile();
    expect(await stage.run(opened)).toMatchObject({ status: 'open', toldHead: opened.head.sha });
    expect(stage.gates(opened)).toHaveLength(1);
    expect(await stage.run(pushed)).toMatchObject({ toldHead: head, head });
    expect(stage.gh.mergeable(pushed, 'countersign', stage.app)).toBe(false);
    expect((await stage.run(closed))?.status).toBe('closed');
    const why = (await stage.rows(closed)).findLast((row) => row.kind === 'run.closed');
    expect(why?.cause).toEqual({ kind: 'schedule', id: 'reconcile', sha256: null });
    expect((await stage.rows(opened))[0]).toMatchObject({
      kind: 'run.opened',
      data: { reason: 'reconciled' },
    });
    const rows = await rowCount();
    await reconcile();
    expect(await rowCount()).toBe(rows);
  });

  it('a command that was missed is carried out once, told as found late (CMD-4)', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    await reconcile();
    const found = lose();
    const comment = await pull.comment(stage.alice, '/status');
    await stage.gh.idle();
    found();
    await reconcile();
    const commands = () => stage.query(`select name, state from command where comment_id = ${comment.id}`);
    expect(await commands()).toEqual([{ name: 'status', state: 'done' }]);
    const said = stage.gh.comments(pull).length;
    await reconcile();
    expect(await commands()).toHaveLength(1);
    expect(stage.gh.comments(pull)).toHaveLength(said);
  });
});

describe('RUN-10: pull requests that were open before', () => {
  it('a pull request far older than its enrolment is opened as enrolled and waits', async () => {
    const { repository } = await stage.repository({ policy: null });
    const pull = await stage.open(repository, 'old');
    await stage.settle();
    await stage.database.moveClock(30 * 60_000);
    await repository.commit({
      branch: 'main',
      message: 'Enrol',
      files: { '.github/countersign.yml': POLICY },
    });
    await stage.settle();
    expect((await stage.rows(pull))[0]).toMatchObject({ data: { reason: 'enrolled' } });
    expect((await stage.run(pull))?.allowedRule).toBeNull();
    const gate = (await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided');
    expect(JSON.stringify(gate)).toContain('needs_allow');
    // a push is what it waits for
    await pull.push({ message: 'Go', files: { 'c.ts': '1\n' } });
    await stage.settle();
    expect((await stage.run(pull))?.allowedRule).toBe('same_repository');
  });
});

describe('case 74: one installation stops no other', () => {
  it('a suspension without an event is found, parked, and the others are served in the same pass', async () => {
    const owner = stage.gh.createUser('carol');
    const { installation } = await stage.repository({ owner, name: 'suspended' });
    const dave = stage.gh.createUser('dave');
    const { repository } = await stage.repository({ owner: dave, name: 'served' });
    await stage.settle();
    const found = lose();
    await stage.gh.suspend(installation);
    const pull = await stage.open(repository, 'topic', { user: dave });
    await stage.gh.idle();
    found();
    expect(await reconcile()).toMatchObject({ failed: 0 });
    expect((await findInstallation(stage.deps.database.db, String(installation.id)))?.status).toBe(
      'suspended',
    );
    expect(await stage.run(pull)).toMatchObject({ status: 'open' });
  });

  it('what is installed, added or served again while GitHub is asked is not taken for gone', async () => {
    const frank = stage.gh.createUser('frank');
    const { installation } = await stage.repository({ owner: frank, name: 'first' });
    await stage.settle();
    await stage.gh.suspend(installation);
    await stage.settle();
    const status = async (id: number) => (await findInstallation(stage.deps.database.db, String(id)))?.status;
    expect(await status(installation.id)).toBe('suspended');
    let made: Awaited<ReturnType<typeof stage.repository>> | undefined;
    let added: string | undefined;
    const late = (call: 'listInstallations' | 'listRepositories', meanwhile: () => Promise<void>) => ({
      ...stage.deps,
      github: new Proxy(stage.deps.github, {
        get: (of, name) =>
          name !== call
            ? Reflect.get(of, name)
            : async (...given: [never]) => {
                const answer = await of[call](...given);
                await meanwhile();
                return answer;
              },
      }),
    });

    await sweepReconcile(
      late('listInstallations', async () => {
        if (made !== undefined) return;
        made = await stage.repository({ owner: stage.gh.createUser('gail'), name: 'meanwhile' });
        await stage.gh.unsuspend(installation);
        await stage.settle();
      }),
    );
    await stage.settle();
    if (made === undefined) throw new Error('nothing was asked');
    expect(await status(made.installation.id)).toBe('active');
    expect(await status(installation.id)).toBe('active');
    const pull = await stage.open(made.repository, 'topic');
    await stage.settle();
    expect(await stage.run(pull)).toMatchObject({ status: 'open' });

    await sweepReconcile(
      late('listRepositories', async () => {
        if (added !== undefined) return;
        const other = await stage.gh.createRepository({
          owner: frank,
          name: 'second',
          files: { 'a.ts': '' },
        });
        added = String(other.id);
        await stage.gh.changeRepositories(installation, 'added', other);
        await stage.settle();
      }),
    );
    const [found] = await stage.query<{ status: string }>(
      `select status from repository where id = ${added}`,
    );
    expect(found?.status).toBe('active');
  });

  it('an installation whose calls fail is logged and counted, and the others go on', async () => {
    const erin = stage.gh.createUser('erin');
    const { installation } = await stage.repository({ owner: erin, name: 'broken' });
    await stage.settle();
    stage.gh.faults.add({
      on: 'apps/list-repos-accessible-to-installation',
      times: 3,
      when: 'before',
      status: 500,
    });
    const outcome = await reconcile();
    expect(outcome?.failed).toBe(1);
    expect(outcome?.installations).toBeGreaterThan(1);
    expect(stage.logged.some((line) => line.event === 'reconcile' && line.level === 'warn')).toBe(true);
    expect(installation.suspendedAt).toBeNull();
    stage.gh.faults.clear();
  });

  it('one process at a time compares, the other goes on', async () => {
    const [a, b] = await Promise.all([
      sweepReconcile(stage.deps),
      sweepReconcile((await stage.another()).deps),
    ]);
    expect([a, b].filter((outcome) => outcome === undefined).length).toBeLessThanOrEqual(1);
    expect([a, b].some((outcome) => outcome !== undefined)).toBe(true);
  });
});

// last: it moves the clock by a day
describe('RUN-10: found late', () => {
  it('a pull request that nobody pushed to for a day waits for a push to it, whatever else happens', async () => {
    // GitHub's clock to ours, which earlier tests moved
    stage.gh.advance(31 * 60_000);
    const { repository } = await stage.repository();
    await stage.settle();
    await reconcile();
    const found = lose();
    const pull = await stage.open(repository, 'forgotten');
    await stage.gh.idle();
    found();
    await stage.database.moveClock(25 * 3_600_000);
    await reconcile();
    expect((await stage.rows(pull))[0]).toMatchObject({
      kind: 'run.opened',
      data: { reason: 'reconciled', old: true },
    });
    expect((await stage.run(pull))?.allowedRule).toBeNull();
    stage.gh.advance(25 * 3_600_000);
    // talk, another branch, another look: nothing of it is a push to this one
    await pull.comment(stage.alice, '/status');
    await repository.commit({ branch: 'other', message: 'Elsewhere', files: { 'z.ts': 'z\n' } });
    await pull.edit(stage.alice, { title: 'Still here' });
    await stage.settle();
    await reconcile();
    expect((await stage.run(pull))?.allowedRule).toBeNull();
    await pull.push({ message: 'Go on', files: { 'y.ts': 'y\n' } });
    await stage.settle();
    expect((await stage.run(pull))?.allowedRule).toBe('same_repository');
    // one that is found late and was pushed within the day does not wait
    const lost = lose();
    const fresh = await stage.open(repository, 'fresh');
    await stage.gh.idle();
    lost();
    await reconcile();
    expect((await stage.run(fresh))?.allowedRule).toBe('same_repository');
  });
});
