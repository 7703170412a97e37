/** What people say of findings, on a real database, real git and the sandbox's REST: rows, table, gate and reply agree. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cutTickets } from '../../../app/flow/cut-tickets.ts';
import { decideGate } from '../../../app/flow/decide-gate.ts';
import { runCommand } from '../../../app/flow/run-command.ts';
import { listFindings } from '../../../db/store/finding.ts';
import { readTexts } from '../../../db/store/text.ts';
import { listActiveTickets } from '../../../db/store/ticket.ts';
import type { User } from '../../../sandbox/model.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import type { Repository } from '../../../sandbox/repository.ts';
import { type Found, report, standing } from '../../helpers/findings.ts';
import { readAll, type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
let alice: User;
let mara: User;
let max: User;
let reader: User;
beforeAll(async () => {
  stage = await syncStage();
  [alice, mara, max, reader] = ['alice', 'mara', 'max', 'reader'].map((name) =>
    stage.gh.createUser(name),
  ) as [User, User, User, User];
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

/** Alice's pull request on a.ts, with what `lint` found in it. */
async function scene(found: readonly Found[], policy = readAll()): Promise<Scene> {
  const repository = await stage.repository({ 'a.ts': 'a\n' }, policy);
  repository.setCollaborator(alice, 'write');
  for (const one of [mara, max]) repository.setCollaborator(one, 'write');
  repository.setCollaborator(reader, 'read');
  await repository.commit({
    branch: 'topic',
    message: 'Work',
    author: alice,
    files: { 'a.ts': 'a2\nbad\n' },
  });
  const pull = await repository.openPull({ head: 'topic', user: alice });
  const run = await stage.open(pull);
  await stage.sync(run);
  await report(stage.deps, run, await stage.state(run), 'a.ts', found);
  return { repository, pull, run };
}

/** Says it and gives the reply to it. */
async function say(at: Scene, who: User, body: string): Promise<string> {
  const comment = await at.pull.comment(who, body);
  await runCommand(stage.deps, {
    repository: String(at.pull.repository.id),
    pull: String(at.pull.number),
    comment: String(comment.id),
    author: { id: String(who.id), login: who.login, bot: false },
    body,
    createdAt: comment.createdAt,
    reconciled: false,
  });
  const sticky = stage.gh.comments(at.pull).find((one) => one.viaApp !== null)?.body ?? '';
  await stage.database.moveClock(61_000);
  stage.gh.advance(61_000);
  return sticky.split('**To ')[1] ?? '';
}
const seen = async ({ run }: Scene) => standing(stage.deps, run, await stage.state(run));
const kinds = async ({ run }: Scene, from: number) =>
  (await stage.rows(run)).slice(from).map((row) => row.kind);
async function blocking({ run }: Scene): Promise<readonly number[]> {
  await decideGate(stage.deps, { run });
  return (await stage.state(run)).gate?.blocking ?? [];
}

describe('FND-2: /answer', () => {
  it('marks the finding, opens the next round of its file, blocks as before, and reaches the reviewer', async () => {
    const at = await scene([{ quote: 'bad' }]);
    await cutTickets(stage.deps, { run: at.run });
    const before = (await stage.rows(at.run)).length;
    expect(await say(at, alice, '/answer F1 it is a constant: ghp_0123456789abcdef0123456789')).toContain(
      'F1 is answered',
    );
    expect(await kinds(at, before)).toEqual(['human.acted', 'finding.answered']);
    expect(await seen(at)).toEqual(['F1 answered a.ts']);
    expect(await blocking(at)).toEqual([1]);
    const rounds = async () =>
      (await listActiveTickets(stage.deps.database.db, at.run)).map((one) => `${one.round} ${one.state}`);
    await cutTickets(stage.deps, { run: at.run, rerun: { scope: 'answer', value: 'a.ts' } });
    expect(await rounds()).toEqual(['0 pending']);
    const [stored] = await listFindings(stage.deps.database.db, at.run);
    const texts = await readTexts(stage.deps.database.db, [stored?.answer ?? '']);
    expect([...texts.values()]).toEqual(['it is a constant: [redacted:github_token]']);
    const acted = (await stage.rows(at.run)).find((row) => row.kind === 'human.acted');
    expect(acted?.data).toMatchObject({ act: 'answer', clause: 'F1', self: true, paths: ['a.ts'] });
    expect(acted?.kind === 'human.acted' && acted.data.redacted?.map((one) => one.kind)).toEqual([
      'github_token',
    ]);
    // found again in that round, it is open again and keeps what was said
    await report(stage.deps, at.run, await stage.state(at.run), 'a.ts', [{ quote: 'bad' }]);
    expect(await seen(at)).toEqual(['F1 open a.ts']);
    expect((await stage.state(at.run)).findings.get(1)?.answer).toBe(stored?.answer);
  });

  it('refuses who has no part, what is over, and what was never found', async () => {
    const at = await scene([{ quote: 'bad' }]);
    expect(await say(at, reader, '/answer F1 no')).toContain(
      'needs write on this repository, or to be the author',
    );
    expect(await say(at, alice, '/answer F7 what')).toContain('there is no finding F7 here. Accepted: `F1`');
    await say(at, mara, '/dismiss F1 a fixture');
    expect(await say(at, alice, '/answer F1 thanks')).toContain('needs no answer: it is dismissed');
    expect(await seen(at)).toEqual(['F1 dismissed a.ts']);
  });
});

describe('FND-2: /dismiss', () => {
  it('is for write that had no part in it; at critical for two people; and it sticks', async () => {
    const at = await scene([
      { quote: 'bad', severity: 'critical' },
      { quote: 'a2' },
      { quote: 'a2 bad', severity: 'low' },
    ]);
    expect(await blocking(at)).toEqual([1, 2]);
    expect(await say(at, reader, '/dismiss F2 fine')).toContain('it needs write on this repository');
    expect(await say(at, alice, '/dismiss F2 fine')).toContain('on your own work: somebody else with write');
    expect(await say(at, alice, '/dismiss F3 taste')).toContain('F3 (low) is dismissed');
    expect(await say(at, mara, '/dismiss F2 a fixture')).toContain('F2 (high) is dismissed');
    expect(await blocking(at)).toEqual([1]);
    expect(await say(at, mara, '/dismiss F1 a fixture')).toContain('1 of 2: F1 is critical');
    expect(await say(at, mara, '/explain F1')).toContain('open, and it blocks; dismissed by 1 of 2');
    expect(await say(at, mara, '/dismiss F1 a fixture')).toContain('you dismissed F1 already');
    expect(await seen(at)).toEqual(['F1 open a.ts', 'F2 dismissed a.ts', 'F3 dismissed a.ts']);
    expect(await blocking(at)).toEqual([1]);
    expect(await say(at, max, '/dismiss F1 looked at it')).toContain('F1 (critical) is dismissed');
    expect(await blocking(at)).toEqual([]);
    // the next round says it all again: what people took off the scale stays off, unless it got worse
    await report(stage.deps, at.run, await stage.state(at.run), 'a.ts', [
      { quote: 'bad', severity: 'critical' },
      { quote: 'a2' },
      { quote: 'a2 bad', severity: 'low' },
    ]);
    expect(await seen(at)).toEqual(['F1 dismissed a.ts', 'F2 dismissed a.ts', 'F3 dismissed a.ts']);
    await report(stage.deps, at.run, await stage.state(at.run), 'a.ts', [
      { quote: 'a2', severity: 'critical' },
      { quote: 'a2 bad', severity: 'high' },
    ]);
    expect(await seen(at)).toEqual(['F1 dismissed a.ts', 'F2 open a.ts', 'F3 open a.ts']);
    expect(await say(at, mara, '/dismiss F9 x')).toContain('there is no finding F9 here');
  });

  it('policy: people.dismiss raises who may', async () => {
    const at = await scene([{ quote: 'bad' }], readAll('people: { dismiss: maintain }\n'));
    expect(await say(at, mara, '/dismiss F1 fine')).toContain(
      'to dismiss it takes maintain on this repository',
    );
    at.repository.setCollaborator(max, 'maintain');
    expect(await say(at, max, '/dismiss F1 fine')).toContain('F1 (high) is dismissed');
  });
});

describe('CMD-3: /explain', () => {
  it('tells what is stored to whoever may read, neutralised', async () => {
    const at = await scene([{ quote: 'bad' }]);
    await say(at, alice, '/answer F1 see @acme/team and <b>this</b>');
    const told = await say(at, reader, '/explain F1');
    for (const words of ['**F1** high, `security`, at `a.ts:1`', 'answered, and it blocks', 'because of bad'])
      expect(told).toContain(words);
    expect(told).not.toMatch(/@acme|<b>/);
  });
});
