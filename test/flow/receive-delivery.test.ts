import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fault } from '../../app/errors.ts';
import { receiveDelivery } from '../../app/flow/receive-delivery.ts';
import { syncRun } from '../../app/flow/sync-run.ts';
import { findEnrolment, findInstallation, findRepository } from '../../db/store/installation.ts';
import type { Installation } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { installationJson } from '../../sandbox/render/accounts.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type InboxStage, inboxStage, POLICY } from '../helpers/inbox.ts';

let stage: InboxStage;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

const states = (event: string) =>
  stage.query<{ state: string; error: string | null }>(
    `select state, error from delivery where event = '${event}' order by received_at`,
  );

describe('a pull request of an enrolled branch', () => {
  it('RUN-1, GAT-4: gets one run, and a gate on its head before git was read', async () => {
    const { repository } = await stage.repository();
    await stage.settle();
    // git does not answer: the gate must not need it
    stage.gh.faults.add({ on: 'git', times: 50, when: 'before', status: 503 });
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const run = await stage.run(pull);
    expect(run).toMatchObject({
      status: 'open',
      epoch: 1,
      toldHead: pull.head.sha,
      baseRef: 'main',
      authorLogin: 'alice',
    });
    expect(stage.gates(pull)).toHaveLength(1);
    expect(stage.gh.mergeable(pull, 'countersign', stage.app)).toBe(false);
    expect((await stage.kinds(pull))[0]).toBe('run.opened');
    stage.gh.faults.clear();
  });

  it('RUN-3: is told of a new head, of draft and ready, of its close and its reopening', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic', { draft: true });
    await stage.settle();
    expect((await stage.run(pull))?.draft).toBe(true);
    await pull.readyForReview();
    await stage.settle();
    expect((await stage.run(pull))?.draft).toBe(false);
    const second = await pull.push({ message: 'More', files: { 'b.ts': 'export {};\n' } });
    await stage.settle();
    expect((await stage.run(pull))?.toldHead).toBe(second);
    expect(stage.gates(pull, second)).toHaveLength(1);
    await pull.close();
    await stage.settle();
    expect((await stage.run(pull))?.status).toBe('closed');
    await pull.reopen();
    await stage.settle();
    expect((await stage.run(pull))?.status).toBe('open');
    const kinds = await stage.kinds(pull);
    expect(kinds.filter((kind) => kind === 'run.opened')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'run.closed')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'run.reopened')).toHaveLength(1);
  });

  it('RUN-3: what stands on a pull request that merges is read again though no delivery tells of it', async () => {
    const { repository } = await stage.repository();
    const parent = await stage.open(repository, 'parent');
    await repository.commit({
      branch: 'child',
      from: 'refs/heads/parent',
      message: 'Child',
      files: { 'c.ts': 'c\n' },
    });
    const child = await repository.openPull({ head: 'child', user: stage.alice });
    const other = await stage.open(repository, 'other');
    await stage.settle();
    const heads = async (pull: Pull) =>
      (await stage.rows(pull)).flatMap((row) => (row.kind === 'run.head' ? [row.data] : []));
    expect((await heads(child)).map((head) => head.files)).toEqual([2]);
    await parent.merge(stage.alice);
    await stage.settle();
    const [first, second] = await heads(child);
    expect(second).toMatchObject({
      head: first?.head,
      base_ref: 'main',
      files: 1,
      merge_base: parent.head.sha,
    });
    expect(await heads(other), 'others stay as they are').toHaveLength(1);
  });

  it('RUN-7: a merge ends the run as merged', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    await pull.merge(stage.alice);
    await stage.settle();
    expect((await stage.run(pull))?.status).toBe('merged');
  });

  it('RUN-2: deliveries in reverse order end in the present head, and none leads back to an old one', async () => {
    const { repository } = await stage.repository();
    await stage.settle();
    const held = stage.gh.webhooks.hold();
    const pull = await stage.open(repository, 'topic');
    await pull.push({ message: 'Two', files: { 'b.ts': '2\n' } });
    const last = await pull.push({ message: 'Three', files: { 'b.ts': '3\n' } });
    held.release('reversed');
    await stage.settle();
    expect((await stage.run(pull))?.toldHead).toBe(last);
    expect((await stage.kinds(pull)).filter((kind) => kind === 'run.opened')).toHaveLength(1);
  });

  it('attack 8: a handler that died after storing is finished by a redelivery, once', async () => {
    const { repository } = await stage.repository();
    await stage.settle();
    const pull = await stage.open(repository, 'topic');
    await stage.gh.idle();
    // the queue lost the job; only the stored delivery is left
    await stage.query(`delete from graphile_worker._private_jobs`);
    await stage.settle();
    expect(await stage.run(pull)).toBeNull();
    const [stored] = await stage.query<{ id: string }>(
      `select id from delivery where event = 'pull_request' and state = 'stored'`,
    );
    const listed = await stage.deps.github.listDeliveries(null);
    const found = listed.deliveries.find((one) => one.guid === stored?.id);
    await stage.deps.github.redeliver(found?.id ?? '');
    await stage.settle();
    expect((await stage.kinds(pull)).filter((kind) => kind === 'run.opened')).toHaveLength(1);
    await stage.deps.github.redeliver(found?.id ?? '');
    await stage.settle();
    expect((await stage.kinds(pull)).filter((kind) => kind === 'run.opened')).toHaveLength(1);
    expect(stage.gates(pull)).toHaveLength(1);
  });

  it('case 2: ten doubled deliveries worked at once make one run and one row per fact', async () => {
    const { repository } = await stage.repository();
    await stage.settle();
    const pull = await stage.open(repository, 'topic');
    await stage.gh.idle();
    const [stored] = await stage.query<{ id: string }>(
      `select id from delivery where event = 'pull_request' and state = 'stored'`,
    );
    await stage.query(`insert into delivery (id, event, body, sha256, received_at)
      select 'copy-' || n, event, body, sha256, received_at from delivery, generate_series(1, 9) n where id = '${stored?.id}'`);
    const ids = [stored?.id ?? '', ...Array.from({ length: 9 }, (_, n) => `copy-${n + 1}`)];
    await Promise.all(ids.map((delivery) => receiveDelivery(stage.deps, { delivery })));
    await stage.settle();
    const kinds = await stage.kinds(pull);
    for (const kind of ['run.opened', 'run.policy', 'run.head'])
      expect(kinds.filter((one) => one === kind)).toHaveLength(1);
    expect(stage.gates(pull)).toHaveLength(1);
    expect(
      await stage.query(
        `select count(*)::int as n from run where pull = ${pull.number} and repository_id = ${repository.id}`,
      ),
    ).toEqual([{ n: 1 }]);
  });

  it('case 9: a fork that was deleted crashes nothing', async () => {
    const { repository } = await stage.repository();
    const bob = stage.gh.createUser(`bob-${repository.id}`);
    const fork = await repository.fork(bob);
    await fork.commit({ branch: 'theirs', message: 'Change', files: { 'a.ts': '// theirs\n' } });
    const pull = await repository.openPull({ head: 'theirs', fork, user: bob });
    await stage.settle();
    await fork.delete();
    await pull.edit(bob, { title: 'Another title' });
    await stage.settle();
    expect(await stage.run(pull)).toMatchObject({ status: 'open', headRepositoryId: null });
    await pull.comment(repository.owner, '/rerun');
    await stage.settle();
    const acts = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'human.acted' ? [row.data.act] : [],
    );
    expect(acts, 'the content is still read, by the pull ref').toEqual(['rerun']);
    expect(await stage.query(`select 1 from reason where code = 'git_unavailable'`)).toEqual([]);
    expect(
      (await states('pull_request')).every((one) => one.state !== 'stored' && one.state !== 'failed'),
    ).toBe(true);
  });
});

describe('OPS-1: what a delivery fails with', () => {
  it('a fault of ours is tried again by the queue; what GitHub says of the installation is recorded until a redelivery', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    await pull.close();
    await stage.settle();
    const [closed] = await stage.query<{ id: string }>(
      `update delivery set state = 'stored', error = null where event = 'pull_request' and action = 'closed' and repository_id = ${repository.id} returning id`,
    );
    const delivery = closed?.id ?? '';
    const failing = (code: 'ledger_unverifiable' | 'installation_gone') =>
      receiveDelivery(
        {
          ...stage.deps,
          github: { ...stage.deps.github, installation: () => Promise.reject(new Fault(code, 'for a test')) },
        },
        { delivery },
      );
    await expect(failing('ledger_unverifiable')).rejects.toMatchObject({ retryable: true });
    const state = () => stage.query(`select state, error from delivery where id = '${delivery}'`);
    expect(await state()).toEqual([{ state: 'stored', error: null }]);
    expect(await failing('installation_gone')).toMatchObject({ note: 'installation_gone' });
    expect(await state()).toEqual([{ state: 'failed', error: 'installation_gone' }]);
    expect(await receiveDelivery(stage.deps, { delivery })).toMatchObject({ state: 'done' });
  });
});

describe('RUN-9: a branch without a policy', () => {
  it('has no run, no check and costs no git', async () => {
    const { repository } = await stage.repository({ policy: null });
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    expect(await stage.run(pull)).toBeNull();
    expect(stage.gates(pull)).toEqual([]);
    expect((await states('pull_request')).at(-1)).toEqual({ state: 'ignored', error: 'not_enrolled' });
  });

  it('where a rule requires our check: action_required, not_enrolled', async () => {
    const { repository } = await stage.repository({ policy: null });
    repository.requireCheck('countersign', stage.app);
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    expect(stage.gates(pull).map((run) => run.conclusion)).toEqual(['action_required']);
    const gate = (await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided');
    expect(JSON.stringify(gate)).toContain('not_enrolled');
  });

  it('is enrolled by the push that adds the file: open pull requests then wait (RUN-10)', async () => {
    const { repository } = await stage.repository({ policy: null });
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    await addPolicy(repository);
    await stage.settle();
    expect(await findEnrolment(stage.deps.database.db, String(repository.id), 'main')).toMatchObject({
      state: 'valid',
    });
    expect(await stage.run(pull)).toMatchObject({ status: 'open' });
  });

  const addPolicy = (repository: Repository) =>
    repository.commit({
      branch: 'main',
      message: 'Enrol',
      files: { '.github/countersign.yml': 'version: 1\n' },
    });
});

describe('RUN-3: a push to a base branch', () => {
  it('that changes the policy re-reads it and syncs its open runs', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const before = (await stage.run(pull))?.policyHash;
    await repository.commit({
      branch: 'main',
      message: 'Loosen',
      files: { '.github/countersign.yml': 'version: 1\nmode: advisory\n' },
    });
    await stage.settle();
    const after = await stage.run(pull);
    expect(after?.policyHash).not.toBe(before);
    expect(after?.mode).toBe('advisory');
  });

  it('RUN-8: another policy decides at once, and has read again only what it has read otherwise', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const tickets = () =>
      stage.query<{ key: string; state: string }>(
        `select key, state from ticket where repository_id = ${repository.id} order by queued_at`,
      );
    const before = await tickets();
    expect(before.map((one) => one.state)).toEqual(['pending']);
    const put = async (policy: string) => {
      await repository.commit({
        branch: 'main',
        message: 'Policy',
        files: { '.github/countersign.yml': policy },
      });
      await stage.settle();
    };
    await put(`${POLICY}gate: {block_at: low}\n`);
    expect(await tickets(), 'the same review key').toEqual(before);
    const rows = await stage.rows(pull);
    const policies = rows.flatMap((row) => (row.kind === 'run.policy' ? [row.data.hash] : []));
    expect(new Set(policies).size).toBe(2);
    await put(POLICY.replace('[lint,', '[lint, --strict,'));
    const after = await tickets();
    expect(after.map((one) => one.state)).toEqual(['superseded', 'pending']);
    expect(new Set(after.map((one) => one.key)).size).toBe(2);
  });

  it('that throws its history away reads its open runs again: there may be more to review than before', async () => {
    const { repository } = await stage.repository();
    const first = await repository.tip();
    await repository.commit({ branch: 'main', message: 'On main', files: { 'main.ts': '1\n' } });
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const files = async () =>
      (await stage.rows(pull)).findLast((row) => row.kind === 'run.head')?.data as { files: number };
    expect(await files()).toMatchObject({ files: 1 });
    await repository.setBranch('main', first);
    await stage.settle();
    expect(await files(), 'what was the base’s is the pull request’s now').toMatchObject({ files: 2 });
  });

  it('of a branch nobody aimed at is ignored', async () => {
    const { repository } = await stage.repository();
    await repository.commit({ branch: 'somewhere', message: 'x', files: { 'x.ts': '1\n' } });
    await stage.settle();
    expect((await states('push')).at(-1)).toEqual({ state: 'ignored', error: 'not_a_base' });
  });
});

describe('RUN-9: an enrolled repository that cannot work', () => {
  it('shows the one cause, and loses it when the default branch is mended', async () => {
    const { repository } = await stage.repository({
      files: { '.github/workflows/countersign.yml': 'on: push\n' },
    });
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const cause = async () =>
      (await findRepository(stage.deps.database.db, String(repository.id)))?.setupCause;
    expect(await cause()).toBe('.github/workflows/countersign.yml has no workflow_dispatch trigger');
    expect(JSON.stringify((await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided'))).toContain(
      'setup_incomplete',
    );
    await repository.commit({
      branch: 'main',
      message: 'Mend',
      files: { '.github/workflows/countersign.yml': 'on: [workflow_dispatch]\n' },
    });
    await stage.settle();
    expect(await cause()).toBeNull();
  });

  it('is looked at again when another branch becomes the default one', async () => {
    const { repository } = await stage.repository({
      files: { '.github/workflows/countersign.yml': 'on: push\n' },
    });
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const place = () => findRepository(stage.deps.database.db, String(repository.id));
    expect((await place())?.setupCause).toContain('no workflow_dispatch trigger');
    await repository.commit({
      branch: 'trunk',
      message: 'Mend',
      files: { '.github/workflows/countersign.yml': 'on: [workflow_dispatch]\n' },
    });
    await stage.settle();
    expect((await place())?.setupCause, 'another branch says nothing').toContain(
      'no workflow_dispatch trigger',
    );
    // whichever delivery tells of it first
    Object.assign(repository, { defaultBranch: 'trunk' });
    await pull.edit(repository.owner, { title: 'Another title' });
    await stage.settle();
    expect(await place()).toMatchObject({ defaultBranch: 'trunk', setupCause: null });
  });
});

describe('OPS-5: installations', () => {
  /** An owner answers the mail that asks for other permissions. */
  const accept = async (installation: Installation, permissions: Installation['permissions']) => {
    installation.permissions = permissions;
    await stage.gh.world.emit({
      event: 'installation',
      action: 'new_permissions_accepted',
      repository: null,
      sender: installation.account,
      onlyInstallation: installation,
      payload: () => ({ installation: installationJson(stage.gh.world, installation) }),
    });
  };

  it('case 73: a missing permission is a reason that its acceptance clears', async () => {
    const { repository, installation } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const reasons = async () =>
      (await stage.query<{ code: string }>(`select code from reason where code = 'permissions_missing'`))
        .length;
    expect(await reasons()).toBe(0);
    const full = installation.permissions;
    await accept(installation, { ...full, actions: 'read' });
    await stage.settle();
    expect(await reasons()).toBe(1);
    expect(JSON.stringify((await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided'))).toContain(
      'actions: write',
    );
    await accept(installation, full);
    await stage.settle();
    expect(await reasons()).toBe(0);
  });

  it('case 74: suspended, its work is parked; un-suspended, it goes on; deleted, nothing is called any more', async () => {
    const { repository, installation } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    await stage.gh.suspend(installation);
    await stage.settle();
    const status = async () =>
      (await findInstallation(stage.deps.database.db, String(installation.id)))?.status;
    expect(await status()).toBe('suspended');
    await stage.gh.unsuspend(installation);
    await stage.settle();
    expect(await status()).toBe('active');
    expect((await stage.run(pull))?.status).toBe('open');
    expect(
      await stage.query(`select state from ticket where repository_id = ${repository.id}`),
      'what was parked is in the queue again',
    ).toEqual([{ state: 'pending' }]);
    await stage.gh.uninstall(installation);
    await stage.settle();
    expect(await status()).toBe('deleted');
  });

  it('RUN-1: a re-install closes the run and opens the next epoch', async () => {
    const { repository, installation } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const first = await stage.run(pull);
    await stage.gh.uninstall(installation);
    await stage.settle();
    await stage.gh.installApp(stage.app, repository);
    await stage.settle();
    const second = await stage.run(pull);
    expect(second).toMatchObject({ epoch: 2, status: 'open' });
    expect(second?.id).not.toBe(first?.id);
    expect(await stage.query(`select status from run where id = '${first?.id}'`)).toEqual([
      { status: 'closed' },
    ]);
  });

  it('RUN-1: transferred to another installation and back, each stay is an epoch of its own, and none wakes again', async () => {
    const there = stage.gh.createUser('there');
    const { repository } = await stage.repository({ owner: stage.gh.createUser('here') });
    const installed = await stage.gh.installApp(stage.app, there);
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const back = repository.owner;
    await repository.transfer(there);
    await stage.settle();
    const runs = () =>
      stage.query<{ id: string; epoch: number; status: string; installation: string }>(
        `select id, epoch, status, installation_id::text as installation from run where repository_id = ${repository.id} order by epoch`,
      );
    expect(await runs()).toMatchObject([
      { epoch: 1, status: 'closed' },
      { epoch: 2, status: 'open', installation: String(installed.id) },
    ]);
    await stage.gh.installApp(stage.app, back);
    await repository.transfer(back);
    await stage.settle();
    await pull.push({ message: 'More', files: { 'b.ts': '1\n' } });
    await stage.settle();
    const all = await runs();
    expect(all.map((one) => [one.epoch, one.status])).toEqual([
      [1, 'closed'],
      [2, 'closed'],
      [3, 'open'],
    ]);
    for (const old of all.slice(0, 2))
      expect(await syncRun(stage.deps, { run: old.id })).toEqual({
        kind: 'closed',
        reason: 'another run follows it',
      });
  });

  it('case 75: a rename moves the address of the same repository', async () => {
    const { repository } = await stage.repository({ name: 'old-name' });
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    await repository.rename('new-name');
    const head = await pull.push({ message: 'More', files: { 'b.ts': '1\n' } });
    await stage.settle();
    expect(await findRepository(stage.deps.database.db, String(repository.id))).toMatchObject({
      name: 'new-name',
    });
    expect(stage.gates(pull, head)).toHaveLength(1);
  });
});

describe('PUB-6, PUB-8: a check that is asked for again', () => {
  it('is found by repository and head from our own records', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const [gate] = stage.gates(pull);
    if (gate === undefined) throw new Error('no gate');
    await stage.gh.rerequest(repository, gate, stage.alice);
    await stage.settle();
    expect((await states('check_run')).at(-1)).toMatchObject({ state: 'done', error: 'asked_again' });
  });
});

describe('a delivery that says nothing to us', () => {
  it('is ignored with its reason, and a body of another form as bad_request', async () => {
    await stage.query(`insert into delivery (id, event, body, sha256, received_at) values
      ('odd-1', 'star', '{"action":"created","installation":{"id":1}}', '\\x01', now()),
      ('odd-2', 'pull_request', '{"action":"opened","installation":{"id":1},"pull_request":{}}', '\\x02', now())`);
    expect(await receiveDelivery(stage.deps, { delivery: 'odd-1' })).toMatchObject({
      state: 'ignored',
      note: 'unknown_event',
    });
    expect(await receiveDelivery(stage.deps, { delivery: 'odd-2' })).toMatchObject({
      state: 'ignored',
      note: 'bad_request',
    });
  });
});
