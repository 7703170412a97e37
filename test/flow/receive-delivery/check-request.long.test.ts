/** Buttons and requests on check runs (PUB-6, PUB-8), by real deliveries: what people see and what the rows say. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseComment } from '../../../app/domain/command.ts';
import type { AnyRow } from '../../../app/domain/ledger/row.ts';
import { receiveDelivery } from '../../../app/flow/receive-delivery.ts';
import type { CheckRun, CheckSuite, User } from '../../../sandbox/model.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import type { Repository } from '../../../sandbox/repository.ts';
import { announceSuite } from '../../../sandbox/rest/suites.ts';
import { type InboxStage, inboxStage, POLICY } from '../../helpers/inbox.ts';

let stage: InboxStage;
let mara: User;
let stranger: User;
beforeAll(async () => {
  stage = await inboxStage();
  mara = stage.gh.createUser('mara');
  stranger = stage.gh.createUser('stranger');
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

/** A stranger's pull request from a fork: it waits until somebody allows it. */
async function fromOutside(): Promise<{ repository: Repository; pull: Pull }> {
  const { repository } = await stage.repository();
  repository.setCollaborator(mara, 'write');
  const fork = await repository.fork(stranger);
  await fork.commit({ branch: 'fix', author: stranger, message: 'Fix', files: { 'a.ts': '// fixed\n' } });
  const pull = await repository.openPull({ head: 'fix', user: stranger, fork });
  await stage.settle();
  return { repository, pull };
}
const gate = (pull: Pull, sha?: string): CheckRun => {
  const found = stage.gates(pull, sha).at(-1);
  if (found === undefined) throw new Error('no gate');
  return found;
};
const sticky = (pull: Pull) => stage.gh.comments(pull).filter((one) => one.viaApp !== null);
const acts = async (pull: Pull) =>
  (await stage.rows(pull)).filter(
    (row): row is AnyRow & { kind: 'human.acted' } => row.kind === 'human.acted',
  );
const notes = async () =>
  (
    await stage.query<{ error: string }>(
      `select error from delivery where event in ('check_run', 'check_suite') and error is not null
         and error <> 'unused_action' order by received_at`,
    )
  ).map((row) => row.error);
const press = async (pull: Pull, button: string, by: User, check = gate(pull)) => {
  if (!check.actions.some((one) => one.identifier === button))
    Object.assign(check, {
      actions: [...check.actions, { label: button, description: button, identifier: button }],
    });
  await stage.gh.pressButton(pull.repository, check, button, by);
  await stage.settle();
};

describe('buttons', () => {
  it('PUB-6: Allow does what /allow does, once for two deliveries, answered in the sticky comment', async () => {
    const { pull } = await fromOutside();
    expect(gate(pull)).toMatchObject({ conclusion: 'action_required' });
    expect(gate(pull).actions.map((one) => one.label)).toEqual(['Allow']);
    stage.gh.webhooks.double(({ action }) => action === 'requested_action', { times: 1, newGuid: true });
    await press(pull, 'allow', mara);
    const [act, ...more] = await acts(pull);
    expect(more).toEqual([]);
    expect(act).toMatchObject({
      actor: { kind: 'person', id: String(mara.id), via: 'button' },
      cause: { kind: 'delivery' },
      data: { act: 'allow', head: pull.head.sha, permission: 'write' },
    });
    expect(await stage.kinds(pull)).toContain('run.allowed');
    const [comment, ...others] = sticky(pull);
    expect(others).toEqual([]);
    expect(comment?.body).toContain('To the button that `mara` pressed');
    expect(comment?.body).toContain('`/allow`:');
    expect(parseComment(comment?.body ?? '', { prefix: '', mention: 'countersign' }).commands).toEqual([]);
    // it is reviewed now: undecided again, in another check run without buttons (PUB-2)
    expect(gate(pull)).toMatchObject({ status: 'in_progress', actions: [] });
    expect(stage.gates(pull)).toHaveLength(2);
  });

  it('PUB-6, CMD-3: the rights are the presser’s: without write it is refused, told and recorded', async () => {
    const { pull } = await fromOutside();
    await press(pull, 'allow', stranger);
    expect(await acts(pull)).toEqual([]);
    expect((await stage.rows(pull)).at(-1)).toMatchObject({
      kind: 'command.refused',
      actor: { id: String(stranger.id), via: 'button' },
      data: { command: 'allow', code: 'denied' },
    });
    expect(sticky(pull)[0]?.body).toContain('`/allow` was not done: it needs write');
    expect(gate(pull)).toMatchObject({ conclusion: 'action_required' });
  });

  it('PUB-6, GAT-6: the button of an old head’s check does nothing to the present head, and says so', async () => {
    const { pull } = await fromOutside();
    const old = gate(pull);
    await pull.push({ message: 'More', files: { 'a.ts': '// worse\n' } });
    await stage.settle();
    await press(pull, 'allow', mara, old);
    expect(await acts(pull)).toEqual([]);
    expect(sticky(pull)[0]?.body).toContain('not the present head');
    expect(gate(pull)).toMatchObject({ conclusion: 'action_required' });
  });

  it('PUB-6: Re-run opens the next round, however often its bytes come again', async () => {
    const { repository } = await stage.repository();
    repository.setCollaborator(mara, 'write');
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    await press(pull, 'rerun-all', mara);
    expect((await acts(pull)).map((row) => row.data.clause)).toEqual(['all']);
    await stage.query(`insert into delivery (id, event, body, sha256, received_at)
      select 'replayed-1', event, body, sha256, now() from delivery
      where event = 'check_run' and error = 'pressed' order by received_at desc limit 1`);
    expect(await receiveDelivery(stage.deps, { delivery: 'replayed-1' })).toMatchObject({
      state: 'ignored',
      note: 'repeated',
    });
    await stage.settle();
    expect(await acts(pull)).toHaveLength(1);
  });

  it('PUB-6, OWN-5: Claim orphans gives each to the block that touched it; with none left it says so', async () => {
    const { repository } = await stage.repository({
      policy: `${POLICY}ownership: declared\n`,
      files: { 'b.ts': 'export {};\n' },
    });
    repository.setCollaborator(mara, 'write');
    const commit = (slug: string, path: string) =>
      repository.commit({
        branch: 'topic',
        message: `Change ${slug}`,
        trailers: { Block: slug, Owns: `${slug}/` },
        files: { [path]: `// ${slug}\n` },
      });
    await commit('first', 'a.ts');
    await commit('second', 'b.ts');
    const pull = await repository.openPull({ head: 'topic', user: stage.alice });
    await stage.settle();
    await press(pull, 'claim-orphans', mara);
    expect((await acts(pull)).map((row) => [row.block, row.data.paths])).toEqual([
      ['first', ['a.ts']],
      ['second', ['b.ts']],
    ]);
    expect(sticky(pull)[0]?.body).toContain('`a.ts` belongs to block `first`');
    expect(sticky(pull)[0]?.body).toContain('`b.ts` belongs to block `second`');
    const claimed = (await stage.rows(pull)).filter((row) => row.kind === 'block.claimed');
    expect(claimed).toHaveLength(2);
    await press(pull, 'claim-orphans', stage.alice);
    expect(await acts(pull)).toHaveLength(2);
    expect(sticky(pull)[0]?.body).toContain('nothing is left for');
  });

  it('PUB-6, GAT-6: Approve clears what needs a person on that head, by who may; not by the author', async () => {
    const { repository } = await stage.repository({ files: { 'b.ts': 'export {};\n' } });
    repository.setCollaborator(mara, 'write');
    await repository.commit({
      branch: 'topic',
      author: stage.alice,
      message: 'Take b away',
      files: { 'b.ts': null },
    });
    const pull = await repository.openPull({ head: 'topic', user: stage.alice });
    await stage.settle();
    expect(gate(pull)).toMatchObject({ conclusion: 'action_required' });
    expect(gate(pull).actions.map((one) => one.label)).toEqual(['Re-run', 'Approve']);
    await press(pull, 'approve', stage.alice);
    expect(gate(pull)).toMatchObject({ conclusion: 'action_required' });
    expect(sticky(pull)[0]?.body).toContain('`/approve` was not done');
    await press(pull, 'approve', mara);
    expect((await acts(pull)).map((row) => [row.data.act, row.data.head, row.actor.id])).toEqual([
      ['approve', pull.head.sha, String(mara.id)],
    ]);
    expect(gate(pull)).toMatchObject({ conclusion: 'success' });
    expect(gate(pull).actions.map((one) => one.label)).toEqual(['Re-run']);
  });

  it('PUB-6: what is no button of ours, and bots, press nothing', async () => {
    const { pull } = await fromOutside();
    await press(pull, 'merge', mara);
    expect((await notes()).at(-1)).toBe('unknown_action');
    const { bot } = stage.gh.createApp({ slug: 'some-bot' });
    pull.repository.setCollaborator(bot, 'write');
    await press(pull, 'allow', bot);
    expect(await acts(pull)).toEqual([]);
    expect(sticky(pull)).toEqual([]);
  });
});

describe('a check that is asked for again', () => {
  it('case 41, PUB-8: one check, the suite without its list of pull requests, by whomever: it ends in its conclusion again', async () => {
    const { repository, pull } = await fromOutside();
    const check = gate(pull);
    await stage.gh.rerequest(repository, check, stranger);
    await stage.settle();
    expect((await notes()).at(-1)).toBe('asked_again');
    expect(check).toMatchObject({ status: 'completed', conclusion: 'action_required' });
    // what GitHub shows by itself after a request by API
    Object.assign(check, { status: 'queued', conclusion: null });
    await suite(repository, check.suite);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'action_required' });
    expect(stage.gates(pull)).toHaveLength(1);
    expect(await acts(pull)).toEqual([]);
  });

  it('case 41: on an old head it is final again, without a ticket; on a closed pull request as well', async () => {
    const { repository } = await stage.repository();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const old = gate(pull);
    await pull.push({ message: 'More', files: { 'a.ts': '// more\n' } });
    await stage.settle();
    expect(old).toMatchObject({ conclusion: 'cancelled' });
    const before = await stage.query('select id from ticket');
    Object.assign(old, { status: 'queued', conclusion: null });
    await stage.gh.rerequest(repository, old, mara);
    await stage.settle();
    expect(old).toMatchObject({ status: 'completed', conclusion: 'cancelled' });
    expect(await stage.query('select id from ticket')).toEqual(before);
    await pull.close();
    await stage.settle();
    const last = gate(pull);
    expect(last).toMatchObject({ conclusion: 'cancelled' });
    Object.assign(last, { status: 'queued', conclusion: null });
    await suite(repository, last.suite);
    expect(last).toMatchObject({ status: 'completed', conclusion: 'cancelled' });
  });

  it('case 41, attack 26: another App’s suite is ignored', async () => {
    const { repository, pull } = await fromOutside();
    // as a suite of another App's on that commit would come, were it sent to us
    await suite(repository, { ...gate(pull).suite, app: stage.gh.createApp({ slug: 'other' }) });
    const before = stage.gh.requests.length;
    await stage.settle();
    expect(stage.gh.requests.slice(before).filter((one) => one.method !== 'GET')).toEqual([]);
    expect(await notes()).not.toContain('not_ours');
  });

  /** Somebody presses "re-run all" on a suite: GitHub's event without pull requests, as for a fork. */
  async function suite(repository: Repository, of: CheckSuite): Promise<void> {
    await announceSuite(stage.gh.world, repository, of, 'rerequested', mara);
    await stage.settle();
  }
});
