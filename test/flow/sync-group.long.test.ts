import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgeMembers } from '../../app/flow/sync-group/members.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { connect } from '../../db/client.ts';
import { findGroupRun } from '../../db/store/group.ts';
import type { MergeQueue, QueueRule } from '../../sandbox/merge-queue.ts';
import type { Installation } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { createCheckRun } from '../../sandbox/rest/check-runs.ts';
import { asOwner } from '../helpers/database.ts';
import { type InboxStage, inboxStage } from '../helpers/inbox.ts';
import { testRunner } from '../helpers/runner.ts';

let stage: InboxStage;
beforeAll(async () => {
  stage = await inboxStage();
  // runners are this test's own: the call is answered and nothing starts
  stage.gh.faults.add({ on: 'actions/create-workflow-dispatch', status: 204 });
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

interface Place {
  readonly repository: Repository;
  readonly installation: Installation;
  readonly queue: MergeQueue;
}

/** A branch that requires our check and, so that a group stays until its test is over, another one. */
async function place(rule: Partial<QueueRule> = {}, files: Record<string, string> = {}): Promise<Place> {
  const { repository, installation } = await stage.repository({ files });
  repository.requireCheck('countersign', stage.app);
  repository.requireCheck('other', null);
  return { repository, installation, queue: repository.useQueue(rule) };
}

/** Every ticket that waits is approved, or what `findings` says. */
async function review(
  { repository, installation }: Pick<Place, 'repository' | 'installation'>,
  findings: Parameters<typeof finish>[2] = [],
): Promise<number> {
  let n = 0;
  for (;;) {
    const runner = await testRunner(stage.deps, String(repository.id), String(installation.id));
    const [lease] = await runner.lease();
    if (lease === undefined) return n;
    await finish(runner, lease, findings);
    n++;
    await stage.settle();
  }
}
type Runner = Awaited<ReturnType<typeof testRunner>>;
async function finish(
  runner: Runner,
  lease: Awaited<ReturnType<Runner['lease']>>[number],
  findings: { readonly severity: 'high' | 'low' }[],
): Promise<void> {
  await runner.finish(lease, {
    verdict: findings.length > 0 ? 'findings' : 'approve',
    findings: findings.map(({ severity }, i) => ({
      fingerprint: String(i).repeat(64),
      side: 'head',
      start_line: 1,
      end_line: 1,
      severity,
      lens: 'correctness',
      title: 'Odd',
      body: 'It is odd.',
      quote: '//',
      suggestion: null,
      grounded: true,
      reviewer: 'lint',
    })),
  });
}

async function green(at: Place, branch: string, files: Record<string, string>): Promise<Pull> {
  const { repository } = at;
  await repository.commit({ branch, message: branch, author: stage.alice, files });
  const pull = await repository.openPull({ head: branch, user: stage.alice });
  await stage.settle();
  await review(at);
  expect(stage.gates(pull).at(-1)?.conclusion).toBe('success');
  await other(repository, pull.head.sha, 'success');
  return pull;
}
async function other(repository: Repository, sha: string, conclusion: string): Promise<void> {
  const body = { name: 'other', status: 'completed', conclusion };
  await createCheckRun(stage.gh.world, repository, stage.app, sha, body);
}
async function queued({ queue }: Place, ...pulls: Pull[]): Promise<string> {
  for (const pull of pulls) await queue.enqueue(pull, stage.alice);
  return queue.entries.at(-1)?.group?.head ?? '';
}
const gates = ({ repository }: Place, sha: string) =>
  stage.gh
    .checkRuns(repository, sha)
    .filter((run) => run.name === 'countersign')
    .map((run) => run.conclusion ?? run.status);
async function rows({ repository, installation }: Place, sha: string) {
  const at = { installationId: String(installation.id), id: String(repository.id) };
  const run = await findGroupRun(stage.deps.database.db, at, sha);
  if (run === null) return [];
  const { verdict, rows: all } = await verifyRun(stage.deps, run, { full: true });
  expect(verdict.kind).toBe('intact');
  return all;
}
const kinds = async (at: Place, sha: string) => (await rows(at, sha)).map((row) => row.kind);
const tickets = async ({ repository }: Place) => {
  const found = await stage.query<{ state: string; n: number }>(
    `select state, count(*)::int as n from ticket t join run r on r.id = t.run_id
     where t.repository_id = ${repository.id} and r.group_head is not null group by state`,
  );
  return Object.fromEntries(found.map((row) => [row.state, row.n]));
};
const forbidden = { on: 'graphql', status: 403, message: 'Resource not accessible by integration' } as const;

describe('GAT-5: the run of a merge group', () => {
  it('GAT-5: pending at once, green by its members, its paths those of all of them; destroyed concludes it', async () => {
    const at = await place();
    const one = await green(at, 'one', { 'one.ts': '1\n' });
    const two = await green(at, 'two', { 'two.ts': '2\n' });
    const sha = await queued(at, one, two);
    await stage.settle();
    const first = stage.gh.requests.find(
      ({ operation, body }) =>
        operation === 'checks/create' && (body as { head_sha?: string }).head_sha === sha,
    );
    expect(first?.body, 'shown before anything was read').toMatchObject({
      name: 'countersign',
      status: 'in_progress',
    });
    expect(gates(at, sha)).toEqual(['success']);
    expect(await tickets(at)).toEqual({});
    const all = await rows(at, sha);
    const head = all.find((row) => row.kind === 'run.head');
    // GitHub's base is the commit of the first; nobody would look at that one's paths under HEADGREEN
    expect(head?.data).toMatchObject({ head: sha, base: await at.repository.tip(), files: 2 });
    expect(all.filter((row) => row.kind === 'group.member').map((row) => row.data)).toMatchObject([
      { position: 0, pull: String(one.number), conclusion: 'success' },
      { position: 1, pull: String(two.number), conclusion: 'success' },
    ]);
    const { length } = all;
    await stage.query(
      `select graphile_worker.add_job('sync-group', json_build_object('run', (select id from run where group_head = '${sha}')))`,
    );
    await stage.settle();
    expect(await rows(at, sha), 'again: nothing is said twice').toHaveLength(length);
    await at.queue.dequeue(one);
    await stage.settle();
    expect(gates(at, sha)).toEqual(['cancelled']);
    expect((await kinds(at, sha)).at(-1)).toBe('run.closed');
    expect(at.queue.entries[0]?.group?.head, 'the other one is another group').not.toBe(sha);
  });

  it('GAT-5, case 2: a doubled request opens one run; an old one does not wake what was destroyed', async () => {
    const at = await place();
    const pull = await green(at, 'one', { 'one.ts': '1\n' });
    const stop = stage.gh.webhooks.double(({ event }) => event === 'merge_group', { newGuid: true });
    const sha = await queued(at, pull);
    await stage.settle();
    stop();
    expect((await kinds(at, sha)).filter((kind) => kind === 'run.opened')).toHaveLength(1);
    expect(gates(at, sha)).toEqual(['success']);
    const told = stage.gh.world.deliveries.find(
      ({ event, body }) => event === 'merge_group' && body.includes(sha) && body.includes('checks_requested'),
    );
    if (told === undefined) throw new Error('nothing was delivered');
    await at.queue.dequeue(pull);
    await stage.settle();
    stage.gh.webhooks.redeliver(told);
    await stage.settle();
    expect(gates(at, sha)).toEqual(['cancelled']);
    expect(await kinds(at, sha)).not.toContain('run.reopened');
  });

  it('GAT-5: a member that turns red takes its group’s green back', async () => {
    const at = await place();
    const one = await green(at, 'one', { 'one.ts': '1\n' });
    const two = await green(at, 'two', { 'two.ts': '2\n' });
    const sha = await queued(at, one, two);
    await stage.settle();
    expect(gates(at, sha)).toEqual(['success']);
    await one.comment(stage.alice, '/rerun all');
    await stage.settle();
    await review(at, [{ severity: 'high' }]);
    await stage.settle();
    expect(stage.gates(one).at(-1)?.conclusion).toBe('failure');
    const shown = gates(at, sha);
    expect(shown[0]).toBe('success');
    expect(shown).toContain('failure');
    expect(at.queue.entries.map((entry) => entry.pull)).not.toContain(one);
  });

  it('GAT-5, LED-9, attack 35: a member whose rows were cut back to an earlier green carries no group', async () => {
    const at = await place();
    const one = await green(at, 'one', { 'one.ts': '1\n' });
    const sha = await queued(at, one);
    await stage.settle();
    expect(gates(at, sha)).toEqual(['success']);
    const group = await findGroupRun(
      stage.deps.database.db,
      { installationId: String(at.installation.id), id: String(at.repository.id) },
      sha,
    );
    const run = await stage.run(one);
    if (group === null || run === null) throw new Error('no run');
    const member = { position: 0, pull: String(one.number), head: one.head.sha };
    const judge = async () => {
      // another process: this one remembers what it verified
      const database = await connect(stage.database.url, { max: 2 });
      try {
        const deps = { ...stage.deps, database };
        return (
          await judgeMembers(deps, group, [{ ...member, runId: group.id, memberRun: null, digest: null }])
        )[0]?.member;
      } finally {
        await database.close();
      }
    };
    const seqOf = async () =>
      (await stage.query<{ seq: string }>(`select seq from ledger_head where run_id = '${run.id}'`))[0]
        ?.seq ?? '';
    const before = await seqOf();
    expect(await judge()).toMatchObject({ conclusion: 'success', reasons: [] });
    await one.comment(stage.alice, '/rerun all');
    await stage.settle();
    await review(at, [{ severity: 'high' }]);
    await stage.settle();
    expect(await judge()).toMatchObject({ conclusion: 'failure', reasons: ['open_findings'] });
    await asOwner(stage.database.url, async (owner) => {
      await owner.query('alter table ledger_row disable trigger user');
      await owner.query('alter table ledger_head disable trigger user');
      await owner.query('delete from ledger_row where run_id = $1 and seq > $2', [run.id, before]);
      await owner.query(
        `update ledger_head h set seq = r.seq, hash = r.hash from ledger_row r
         where h.run_id = $1 and r.run_id = $1 and r.seq = $2`,
        [run.id, before],
      );
      await owner.query('alter table ledger_head enable trigger user');
      await owner.query('alter table ledger_row enable trigger user');
    });
    expect(await judge(), 'GitHub keeps a later head').toMatchObject({
      conclusion: 'failure',
      reasons: ['ledger_invalid'],
    });
  });

  it('GAT-5: members that may not be listed: known by review key, or reviewed ahead of all others', async () => {
    const at = await place({ method: 'SQUASH' });
    const one = await green(at, 'one', { 'one.ts': '1\n' });
    const fault = stage.gh.faults.add(forbidden);
    const sha = await queued(at, one);
    await stage.settle();
    expect(gates(at, sha), 'every key was reviewed before').toEqual(['success']);
    expect(await tickets(at)).toEqual({ skipped: 1 });
    expect((await rows(at, sha)).find((row) => row.kind === 'group.read')?.data).toMatchObject({
      listed: false,
      members: 0,
    });
    await at.queue.dequeue(one);
    await stage.settle();
    // the base moves on under the path: no review of the very pair is known
    await at.repository.commit({
      message: 'base',
      files: { 'a.ts': '// base\n', 'shared.ts': `${'x\n'.repeat(9)}base\n` },
    });
    await at.repository.commit({
      branch: 'two',
      from: 'refs/heads/main',
      message: 'two',
      author: stage.alice,
      files: { 'shared.ts': `two\n${'x\n'.repeat(8)}base\n` },
    });
    const two = await at.repository.openPull({ head: 'two', user: stage.alice });
    await stage.settle();
    await review(at);
    await other(at.repository, two.head.sha, 'success');
    await at.repository.commit({
      message: 'again',
      files: { 'shared.ts': `${'x\n'.repeat(9)}base again\n` },
    });
    const waiting = await at.repository.commit({
      branch: 'busy',
      message: 'busy',
      author: stage.alice,
      files: { 'busy.ts': 'b\n' },
    });
    const busy = await at.repository.openPull({ head: 'busy', user: stage.alice });
    expect(busy.head.sha).toBe(waiting);
    await stage.settle();
    const next = await queued(at, two);
    await stage.settle();
    expect(gates(at, next)).toEqual(['in_progress']);
    const runner = await testRunner(stage.deps, String(at.repository.id), String(at.installation.id));
    const [lease] = await runner.lease();
    expect(lease?.ticket.path, 'before what waited longer').toBe('shared.ts');
    if (lease === undefined) throw new Error('nothing to lease');
    await finish(runner, lease, []);
    await stage.settle();
    expect(gates(at, next)).toEqual(['success']);
    fault.remove();
    await at.queue.dequeue(two);
    await stage.settle();
  });

  it('GAT-5: what GitHub does not list yet is asked again; in the end it is decided without, and fails before the queue gives up', async () => {
    const at = await place(
      { timeoutMinutes: 20 },
      { '.gitattributes': '*.txt merge=union\n', 'l.txt': 'a\n' },
    );
    const one = await green(at, 'one', { 'l.txt': 'a\none\n' });
    const two = await green(at, 'two', { 'l.txt': 'a\ntwo\n' });
    const fault = stage.gh.faults.add({ on: 'graphql', status: 404 });
    const sha = await queued(at, one, two);
    await stage.settle();
    expect(gates(at, sha)).toEqual(['in_progress']);
    expect(await kinds(at, sha)).not.toContain('group.read');
    const move = async (ms: number) => {
      await stage.database.moveClock(ms);
      await stage.query('update graphile_worker._private_jobs set run_at = now() where locked_at is null');
      await stage.server.sweep();
      await stage.settle();
    };
    await move(61_000);
    expect((await rows(at, sha)).find((row) => row.kind === 'group.read')?.data).toMatchObject({
      listed: false,
      timeout_ms: 20 * 60_000,
    });
    expect(gates(at, sha)).toEqual(['in_progress']);
    expect((await tickets(at))['pending']).toBe(1);
    await move(15 * 60_000 - 61_000 - 60_000);
    expect(gates(at, sha)).toEqual(['in_progress']);
    await move(61_000);
    expect(gates(at, sha), 'five minutes before').toEqual(['failure']);
    fault.remove();
  });
});
