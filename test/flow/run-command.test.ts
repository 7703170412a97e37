/** Commands of comments on a real database, real git and the sandbox's REST: what people see and what the rows say. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseComment } from '../../app/domain/command.ts';
import { decideGate } from '../../app/flow/decide-gate.ts';
import { publishChecks } from '../../app/flow/publish-checks.ts';
import { type CommandInput, type CommandOutcome, runCommand } from '../../app/flow/run-command.ts';
import { createGitHubApp } from '../../app/github/octokit.ts';
import { silentLog } from '../../app/server/log.ts';
import type { IssueComment, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { readAll, type SyncStage, syncStage } from '../helpers/sync.ts';

let stage: SyncStage;
let maintainer: User;
let alice: User;
let stranger: User;
beforeAll(async () => {
  stage = await syncStage();
  maintainer = stage.gh.createUser('mara');
  alice = stage.gh.createUser('alice');
  stranger = stage.gh.createUser('stranger');
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

interface Scene {
  readonly repository: Repository;
  readonly pull: Pull;
  readonly run: string;
}

/** A pull request of alice's with two blocks: `first` owns a.ts, `second` owns b.ts and touched a.ts last. */
async function scene(options: { policy?: string; fork?: boolean } = {}): Promise<Scene> {
  const repository = await stage.repository({ 'a.ts': 'a\n', 'b.ts': 'b\n' }, options.policy ?? readAll());
  repository.setCollaborator(maintainer, 'write');
  if (options.fork !== true) repository.setCollaborator(alice, 'triage');
  const source = options.fork === true ? await repository.fork(alice) : repository;
  const commit = (slug: string, files: Record<string, string>) =>
    source.commit({
      branch: 'topic',
      message: `Change ${slug}`,
      author: alice,
      trailers: { Block: slug },
      files,
    });
  await commit('first', { 'a.ts': 'a2\n' });
  await commit('second', { 'b.ts': 'b2\n', 'a.ts': 'a3\n' });
  const pull = await repository.openPull({
    head: 'topic',
    user: alice,
    ...(options.fork === true ? { fork: source } : {}),
  });
  const run = await stage.open(pull);
  await stage.gh.idle();
  await stage.sync(run);
  return { repository, pull, run };
}

/** Decides and publishes the gate on the present head. */
async function publish({ repository, pull, run }: Scene): Promise<void> {
  await decideGate(stage.deps, { run });
  await publishChecks(stage.deps, {
    repository: String(repository.id),
    sha: pull.head.sha,
    name: 'countersign',
  });
}

function inputOf({ pull }: Scene, comment: IssueComment, more: Partial<CommandInput> = {}): CommandInput {
  return {
    repository: String(pull.repository.id),
    pull: String(pull.number),
    comment: String(comment.id),
    author: { id: String(comment.author.id), login: comment.author.login, bot: false },
    body: comment.body,
    createdAt: comment.createdAt,
    reconciled: false,
    ...more,
  };
}

async function say(
  at: Scene,
  who: User,
  body: string,
  more: Partial<CommandInput> = {},
): Promise<{ comment: IssueComment; outcome: CommandOutcome; reactions: string[] }> {
  const comment = await at.pull.comment(who, body);
  const outcome = await runCommand(stage.deps, inputOf(at, comment, more));
  return { comment, outcome, reactions: comment.reactions.map((one) => one.content) };
}

const stickies = ({ pull }: Scene) => stage.gh.comments(pull).filter((one) => one.viaApp !== null);
const sticky = (at: Scene) => stickies(at)[0]?.body ?? '';
const kinds = async (at: Scene) => (await stage.rows(at.run)).map((row) => row.kind);
const nextMinute = async () => {
  await stage.database.moveClock(61_000);
  stage.gh.advance(61_000);
};

describe('answers', () => {
  it('CMD-4, CMD-5: eyes, then rocket; one sticky comment says what holds, what clears it, who may', async () => {
    const at = await scene();
    const { outcome, reactions } = await say(at, stranger, '/status');
    expect(outcome).toEqual({ kind: 'answered', done: 1, refused: 0 });
    expect(reactions).toEqual(['eyes', 'rocket']);
    expect(stickies(at)).toHaveLength(1);
    expect(sticky(at)).toContain('`/status` at');
    expect(sticky(at)).toContain('`reviews_pending`');
    expect(sticky(at)).toContain('Clears it:');
    await say(at, maintainer, 'and now\n/help');
    expect(stickies(at)).toHaveLength(1);
    expect(sticky(at).indexOf('`/help`:')).toBeLessThan(sticky(at).indexOf('`/status` at'));
    // a reply of ours is a comment as well, and holds no command
    expect(parseComment(sticky(at), { prefix: '', mention: 'countersign' })).toEqual({
      commands: [],
      nearMisses: [],
    });
  });

  it('case 38, attack 26: a foreign check of our name completes nothing, and the status says so, and that the rule believes anybody', async () => {
    const at = await scene();
    at.repository.requireCheck('countersign', null);
    const bot = stage.gh.createApp();
    const installation = await stage.gh.installApp(bot, at.repository);
    const foreign = createGitHubApp({
      appId: String(bot.id),
      privateKey: bot.privateKey,
      webhookSecret: bot.webhookSecret,
      apiUrl: stage.gh.apiUrl,
      log: silentLog(),
    });
    const { id, name, owner } = at.repository;
    const github = await foreign.installation(String(installation.id));
    await github.createCheckRun(
      { id: String(id), owner: owner.login, name },
      {
        name: 'countersign',
        headSha: at.pull.head.sha,
        // even under the id that ours would have
        externalId: `cs:${id}:${at.pull.head.sha}:countersign:1`,
        status: 'completed',
        conclusion: 'success',
        title: 'Passed',
        summary: 'Passed',
      },
    );
    await publish(at);
    const rows = await kinds(at);
    await say(at, stranger, '/status');
    expect(sticky(at)).toContain('is not bound to this App');
    expect(sticky(at)).toContain('1 check of that name on this commit is not ours** (success)');
    expect(await kinds(at), 'nothing rests on it').toEqual(rows);
    expect(stage.gh.checkRuns(at.repository, at.pull.head.sha).find((one) => one.app !== bot)).toMatchObject({
      status: 'in_progress',
    });
  });

  it('case 43: several commands of one comment run in order with one reply', async () => {
    const at = await scene();
    const { outcome } = await say(
      at,
      maintainer,
      '/claim a.ts second\r\n/status\r\n\r\nthanks\r\n/help claim',
    );
    expect(outcome).toEqual({ kind: 'answered', done: 3, refused: 0 });
    expect(stickies(at)).toHaveLength(1);
    expect(sticky(at).match(/this comment/g)).toHaveLength(1);
  });

  it('case 44: a lone back-ticked command gets a reaction and nothing else', async () => {
    const at = await scene();
    const { outcome, reactions } = await say(at, maintainer, '`/rerun`');
    expect(outcome).toEqual({ kind: 'hinted', hint: 'backticked' });
    expect(reactions).toEqual(['confused']);
    expect(stickies(at)).toEqual([]);
  });

  it('CMD-2: talk, bots and our own replies are left alone; a bot that the policy lists is not', async () => {
    const at = await scene({ policy: readAll(`commands: {bots: [${maintainer.id}]}\n`) });
    expect(await say(at, maintainer, 'looks good')).toMatchObject({
      outcome: { why: 'no_command' },
      reactions: [],
    });
    const bot = (user: User) => ({ author: { id: String(user.id), login: user.login, bot: true } });
    expect((await say(at, stranger, '/status', bot(stranger))).outcome).toEqual({
      kind: 'ignored',
      why: 'bot',
    });
    expect((await say(at, maintainer, '/status', bot(maintainer))).outcome).toMatchObject({ done: 1 });
  });

  it('RUN-9: where no run is, commands stay unanswered', async () => {
    const at = await scene();
    const comment = await at.pull.comment(maintainer, '/status');
    const input = inputOf(at, comment, { pull: '99999' });
    expect(await runCommand(stage.deps, input)).toEqual({ kind: 'ignored', why: 'no_run' });
    expect(comment.reactions).toEqual([]);
  });

  it('CMD-1: what a later version adds is answered as not available yet', async () => {
    const at = await scene();
    const { outcome, reactions } = await say(at, maintainer, '/pause lunch');
    expect(outcome).toMatchObject({ refused: 1 });
    expect(reactions).toEqual(['eyes', 'confused']);
    expect(sticky(at)).toContain('`/pause` was not done: it is not available yet.');
  });

  it('CMD-2: text of people in a reply is neutralised', async () => {
    const at = await scene();
    await say(at, maintainer, '/claim "@acme/all <img src=x>`.ts"');
    expect(sticky(at)).toContain('was not done');
    await say(at, maintainer, '@app-1 statsu');
    expect(sticky(at)).not.toMatch(/^\s*[-*]?\s*\//m);
    expect(sticky(at)).not.toContain('<img');
  });
});

describe('at most once', () => {
  it('CMD-4: the same comment again, and twice at once, runs each command once', async () => {
    const at = await scene();
    const comment = await at.pull.comment(maintainer, '/rerun\n/claim a.ts second');
    const twice = () => runCommand(stage.deps, inputOf(at, comment));
    await Promise.all([twice(), twice()]);
    const rows = await kinds(at);
    expect(rows.filter((kind) => kind === 'human.acted')).toHaveLength(2);
    expect(rows.filter((kind) => kind === 'block.claimed')).toHaveLength(1);
    await twice();
    expect(await kinds(at)).toEqual(rows);
    expect(stickies(at)).toHaveLength(1);
  });

  it('CMD-4: a sticky comment whose answer was lost is found again, one that was deleted is made again', async () => {
    const at = await scene();
    const fault = stage.gh.faults.add({ on: 'issues/create-comment', times: 1, when: 'after', status: 502 });
    const comment = await at.pull.comment(maintainer, '/status');
    await expect(runCommand(stage.deps, inputOf(at, comment))).rejects.toMatchObject({ retryable: true });
    expect(fault.hits).toBe(1);
    await runCommand(stage.deps, inputOf(at, comment));
    expect(stickies(at)).toHaveLength(1);
    const [made] = stickies(at);
    if (made === undefined) throw new Error('no comment');
    await stage.gh.deleteComment(at.pull, made, maintainer);
    await say(at, maintainer, '/help');
    expect(stickies(at).filter((one) => !one.deleted)).toHaveLength(1);
    expect(stickies(at).find((one) => !one.deleted)?.body).toContain('`/status` at');
  });
});

describe('rights', () => {
  it('CMD-3, case 47: the permission at that moment decides; a denial is answered and recorded', async () => {
    const at = await scene();
    const { outcome, reactions } = await say(at, stranger, '/rerun\n/claim a.ts');
    expect(outcome).toEqual({ kind: 'answered', done: 0, refused: 2 });
    expect(reactions).toEqual(['eyes', 'confused']);
    expect(sticky(at)).toContain('it needs write on this repository');
    const refused = (await stage.rows(at.run)).filter((row) => row.kind === 'command.refused');
    expect(refused.map((row) => row.data)).toEqual([
      { command: 'rerun', code: 'denied' },
      { command: 'claim', code: 'denied' },
    ]);
    expect(refused[0]?.actor).toEqual({ kind: 'person', id: String(stranger.id), via: 'comment' });
    at.repository.setCollaborator(stranger, 'write');
    expect((await say(at, stranger, '/rerun')).outcome).toMatchObject({ done: 1 });
    // triage is less than write, whatever a team or an association is called
    for (const role of ['read', 'triage'] as const) {
      at.repository.setCollaborator(stranger, role);
      expect((await say(at, stranger, '/rerun')).outcome).toMatchObject({ refused: 1 });
    }
  });

  it.each([404, 403, 502])(
    'CMD-3, case 47: a look-up that fails with %i refuses with a hint, never allows',
    async (status) => {
      const at = await scene();
      const fault = stage.gh.faults.add({
        on: 'repos/get-collaborator-permission-level',
        when: 'before',
        status,
      });
      const { outcome } = await say(at, maintainer, '/rerun');
      fault.remove();
      expect(outcome).toMatchObject({ refused: 1 });
      expect(sticky(at)).toContain('repeat the command in a minute');
      expect(await kinds(at)).not.toContain('human.acted');
      expect((await say(at, maintainer, '/rerun')).outcome).toMatchObject({ done: 1 });
    },
  );

  it('case 47: a login that now belongs to another account has no rights', async () => {
    const at = await scene();
    const author = { id: '424242', login: maintainer.login, bot: false };
    expect((await say(at, maintainer, '/rerun', { author })).outcome).toMatchObject({ refused: 1 });
  });

  it('CMD-3: the author of an allowed run may claim and rerun what failed, and no more', async () => {
    const at = await scene();
    expect((await say(at, alice, '/claim a.ts second\n/rerun failed')).outcome).toMatchObject({ done: 2 });
    expect((await say(at, alice, '/rerun\n/rerun a.ts\n/allow')).outcome).toMatchObject({ refused: 3 });
  });

  it('RUN-10: until a stranger is allowed, they have status and help', async () => {
    const at = await scene({ fork: true });
    expect((await say(at, alice, '/status\n/help')).outcome).toMatchObject({ done: 2, refused: 0 });
    expect((await say(at, alice, '/claim a.ts\n/rerun failed\n/allow')).outcome).toMatchObject({
      refused: 3,
    });
    expect((await stage.run(at.run)).allowedRule).toBeNull();
  });

  it('CMD-3: ten commands a person an hour, three replies a minute; beyond that a reaction, no text', async () => {
    const at = await scene();
    for (let n = 1; n <= 3; n++) await say(at, stranger, '/status');
    expect(sticky(at).match(/this comment/g)).toHaveLength(3);
    const fourth = await say(at, stranger, '/status');
    expect(fourth.reactions).toEqual(['eyes', 'rocket']);
    expect(sticky(at).match(/this comment/g)).toHaveLength(3);
    const many = await say(at, stranger, '/help\n'.repeat(8));
    expect(many.outcome).toEqual({ kind: 'answered', done: 6, refused: 2 });
    expect(many.reactions).toEqual(['eyes', 'confused']);
    expect((await say(at, maintainer, '/rerun')).outcome).toMatchObject({ done: 1 });
    for (let n = 0; n < 60; n++) await nextMinute();
    expect((await say(at, stranger, '/status')).outcome).toMatchObject({ done: 1 });
  });

  it('CMD-4: found over an hour late, status, rerun and claim run; the rest is too late', async () => {
    const at = await scene();
    const comment = await at.pull.comment(
      maintainer,
      '/status\n/rerun\n/claim a.ts second\n/release a.ts\n/help\n/allow',
    );
    await stage.database.moveClock(3_700_000);
    const outcome = await runCommand(stage.deps, inputOf(at, comment, { reconciled: true }));
    stage.gh.advance(3_700_000);
    expect(outcome).toEqual({ kind: 'answered', done: 3, refused: 3 });
    expect(sticky(at)).toContain('too late');
  });

  it('RUN-7: on a closed pull request only status and help are answered, and no row is added', async () => {
    const at = await scene();
    await at.pull.close(alice);
    await stage.sync(at.run);
    const before = await kinds(at);
    expect((await say(at, maintainer, '/status\n/rerun')).outcome).toEqual({
      kind: 'answered',
      done: 1,
      refused: 1,
    });
    expect((await say(at, stranger, '/rerun')).outcome).toMatchObject({ refused: 1 });
    expect(await kinds(at)).toEqual(before);
    expect(sticky(at)).toContain('The pull request is closed.');
  });
});

describe('allow', () => {
  it('RUN-10: a stranger waits until write allows the head that was shown; a push needs it again', async () => {
    const at = await scene({ fork: true });
    expect((await say(at, maintainer, '/allow')).outcome).toMatchObject({ refused: 1 });
    expect(sticky(at)).toContain('no verdict was shown before your comment');
    await publish(at);
    await nextMinute();
    const { outcome } = await say(at, maintainer, '/allow');
    expect(outcome).toMatchObject({ done: 1 });
    expect(await stage.run(at.run)).toMatchObject({
      allowedRule: 'person',
      allowedScope: 'head',
      allowedHead: at.pull.head.sha,
    });
    expect(await stage.jobs()).toContain(`sync-run:${at.run}`);
    const rows = await kinds(at);
    expect(rows.slice(-2)).toEqual(['human.acted', 'run.allowed']);
    await say(at, maintainer, '/allow');
    expect(await kinds(at)).toEqual(rows);
    await nextMinute();
    await at.pull.push({ files: { 'a.ts': 'a4\n' } });
    await stage.gh.idle();
    await stage.sync(at.run);
    expect((await stage.run(at.run)).allowedRule).toBeNull();
  });

  it('GAT-6, case 49: a comment binds to the head shown before it; another present head is said, and clears nothing', async () => {
    const at = await scene({ fork: true });
    await publish(at);
    const seen = at.pull.head.sha;
    await nextMinute();
    const comment = await at.pull.comment(maintainer, '/allow');
    await nextMinute();
    await at.pull.push({ files: { 'a.ts': 'evil\n' } });
    await stage.gh.idle();
    await stage.sync(at.run);
    await publish(at);
    expect(await runCommand(stage.deps, inputOf(at, comment))).toMatchObject({ refused: 1 });
    expect(sticky(at)).toContain(
      `\`${seen.slice(0, 12)}\` is not the present head, so nothing was allowed. Accepted: \`/allow `,
    );
    expect((await stage.run(at.run)).allowedRule).toBeNull();
    await say(at, maintainer, `/allow ${seen.slice(0, 10)}`);
    expect((await stage.run(at.run)).allowedRule).toBeNull();
    await nextMinute();
    expect((await say(at, maintainer, `/allow ${at.pull.head.sha.slice(0, 7)}`)).outcome).toMatchObject({
      done: 1,
    });
  });

  it('RUN-10: /allow author covers later heads until one touches a guarded path', async () => {
    const at = await scene({ fork: true });
    await publish(at);
    await nextMinute();
    await say(at, maintainer, '/allow author');
    await at.pull.push({ files: { 'a.ts': 'a5\n' } });
    await stage.gh.idle();
    await stage.sync(at.run);
    expect(await stage.run(at.run)).toMatchObject({ allowedRule: 'person', allowedScope: 'author' });
    await at.pull.push({ files: { CODEOWNERS: '* @alice\n' } });
    await stage.gh.idle();
    await stage.sync(at.run);
    expect((await stage.run(at.run)).allowedRule).toBeNull();
  });
});

describe('claims', () => {
  it('OWN-7: without a block the path goes to the block that touched it last; a repeat adds no row', async () => {
    const at = await scene();
    expect((await stage.files(at.run))['a.ts']).toBe('L2 first owned');
    await say(at, alice, '/claim a.ts');
    const rows = await kinds(at);
    expect(rows.slice(-3)).toEqual(['human.acted', 'block.released', 'block.claimed']);
    expect(sticky(at)).toContain('`a.ts` belongs to block `second`, no longer to `first`.');
    await say(at, alice, '/claim a.ts second');
    expect(await kinds(at)).toEqual(rows);
    expect(sticky(at)).toContain('already');
    await stage.sync(at.run);
    expect((await stage.files(at.run))['a.ts']).toBe('L2 second owned');
  });

  it('OWN-7: /release undoes a claim: the block it was taken from has it again', async () => {
    const at = await scene();
    await say(at, maintainer, '/claim a.ts second');
    await stage.sync(at.run);
    expect((await say(at, maintainer, '/release a.ts')).outcome).toMatchObject({ done: 1 });
    await stage.sync(at.run);
    expect((await stage.files(at.run))['a.ts']).toBe('L2 first owned');
    const twice = await say(at, maintainer, '/release b.ts');
    expect(twice.outcome).toMatchObject({ refused: 1 });
    expect(sticky(at)).toContain('no block claimed that path');
  });

  it('OWN-3: each unowned_change has a command that clears it, in another block’s declaration too', async () => {
    const repository = await stage.repository({ 'src/a.ts': 'a\n' });
    repository.setCollaborator(maintainer, 'write');
    const commit = (slug: string, trailers: Record<string, string>, text: string) =>
      repository.commit({
        branch: 'topic',
        message: slug,
        trailers: { Block: slug, ...trailers },
        files: { 'src/a.ts': text },
      });
    await commit('owner', { Owns: 'src/' }, 'a2\n');
    await commit('guest', {}, 'a3\n');
    const pull = await repository.openPull({ head: 'topic', user: alice });
    const at = { repository, pull, run: await stage.open(pull) };
    await stage.sync(at.run);
    expect((await stage.files(at.run))['src/a.ts']).toMatch(/^L2 unowned unowned_change/);
    await say(at, maintainer, '/claim src/a.ts guest');
    await stage.sync(at.run);
    expect((await stage.files(at.run))['src/a.ts']).toBe('L2 guest owned');
    const released = (await stage.rows(at.run)).filter((row) => row.kind === 'block.released');
    expect(released.map((row) => row.data.block)).toEqual(['owner']);
  });

  it('OWN-5, OWN-7, OWN-8: guards, links, globs and unknown blocks are refused', async () => {
    const at = await scene();
    await at.pull.push({ files: { 'AGENTS.md': 'x\n', 'my file.ts': 'x\n' } });
    await stage.sync(at.run);
    const refusals: [string, string][] = [
      ['/claim AGENTS.md first', 'guarded'],
      ['/claim *.ts first', 'no directory and no glob'],
      ['/claim .GIT/config first', 'it lies in .git'],
      ['/claim a.ts nobody', 'there is no open block `nobody`'],
    ];
    for (const [body, text] of refusals) {
      await nextMinute();
      expect((await say(at, maintainer, body)).outcome, body).toMatchObject({ refused: 1 });
      expect(sticky(at)).toContain(text);
    }
    expect(await kinds(at)).not.toContain('block.claimed');
    await nextMinute();
    expect((await say(at, maintainer, '/claim my file.ts first')).outcome).toMatchObject({ done: 1 });
  });
});

describe('rerun', () => {
  it('TKT-1: asks for the next round of all, of what failed, of a block or of a path', async () => {
    const at = await scene();
    await say(
      at,
      maintainer,
      '/rerun\n/rerun failed\n/rerun block first\n/rerun a.ts\n/rerun block none\n/rerun c.ts',
    );
    const { rows } = await stage.database.database.pool.query<{ payload: Record<string, unknown> }>(
      `select j.payload from graphile_worker._private_jobs j where j.key like $1 order by j.id`,
      [`cut-tickets:${at.run}:%`],
    );
    expect(rows.map((row) => row.payload['rerun'])).toEqual([
      { scope: 'all' },
      { scope: 'failed' },
      { scope: 'block', value: 'first' },
      { scope: 'path', value: 'a.ts' },
    ]);
    const acts = (await stage.rows(at.run)).filter((row) => row.kind === 'human.acted');
    expect(acts.map((row) => row.data.clause)).toEqual(['all', 'failed', 'block', 'path']);
    expect(acts[0]?.data).toMatchObject({
      act: 'rerun',
      head: at.pull.head.sha,
      permission: 'write',
      self: false,
    });
    expect(acts[0]?.cause).toMatchObject({ kind: 'comment' });
  });

  it('RUN-10: lets a pull request begin that was open at enrolment; a stranger’s still waits for /allow', async () => {
    const repository = await stage.repository({ 'a.ts': 'a\n' });
    repository.setCollaborator(maintainer, 'write');
    const fork = await repository.fork(alice);
    await fork.commit({ branch: 'topic', message: 'Theirs', files: { 'a.ts': 'a3\n' } });
    await repository.commit({ branch: 'topic', message: 'Ours', files: { 'a.ts': 'a2\n' } });
    const ours = await repository.openPull({ head: 'topic', user: maintainer });
    const theirs = await repository.openPull({ head: 'topic', user: alice, fork });
    await stage.gh.idle();
    const waiting: Scene[] = [];
    for (const pull of [ours, theirs]) {
      const run = await stage.open(pull, 'enrolled');
      await stage.sync(run);
      expect((await stage.run(run)).allowedRule).toBeNull();
      waiting.push({ repository, pull, run });
    }
    for (const at of waiting) {
      expect((await say(at, maintainer, '/rerun')).outcome).toMatchObject({ done: 1 });
      expect(sticky(at)).toContain('It begins once this pull request may be reviewed.');
      await stage.sync(at.run);
    }
    const rules = await Promise.all(waiting.map(async ({ run }) => (await stage.run(run)).allowedRule));
    expect(rules).toEqual(['same_repository', null]);
  });
});
