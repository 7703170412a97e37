/** What people without write can do by comments, in any order: nothing that moves a gate toward green. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BUTTONS, type ButtonId } from '../../app/domain/button.ts';
import { judgeRun } from '../../app/flow/judge-run.ts';
import { pressButton } from '../../app/flow/press-button.ts';
import { runCommand } from '../../app/flow/run-command.ts';
import { notePress } from '../../db/store/press.ts';
import type { User } from '../../sandbox/model.ts';
import { type SyncStage, syncStage } from '../helpers/sync.ts';

let stage: SyncStage;
beforeAll(async () => {
  stage = await syncStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

const paths = ['a.ts', 'b.ts', 'AGENTS.md', 'none.ts', '*', '.git/config'];
const line = fc.oneof(
  fc.constantFrom(
    '/status',
    '/help',
    '/allow',
    '/allow author',
    '/rerun',
    '/rerun all',
    '/rerun failed',
    '/stop',
    '/seal x',
  ),
  fc.constantFrom(
    '/approve unreviewed ok',
    '/approve guarded',
    '/dismiss F1 no',
    '/override please',
    '/rerun block first',
  ),
  fc.constantFrom(...paths).map((path) => `/claim ${path} first`),
  fc.constantFrom(...paths).map((path) => `/release ${path}`),
  fc.constantFrom(...paths).map((path) => `/rerun ${path}`),
);

it('CMD-3, PUB-6, RUN-10: no sequence of commands and buttons by a stranger, or by an author who waits, changes a verdict or adds a fact', async () => {
  const alice = stage.gh.createUser('alice');
  const passer = stage.gh.createUser('passer');
  const repository = await stage.repository({ 'a.ts': 'a\n', 'b.ts': 'b\n' });
  const fork = await repository.fork(alice);
  await fork.commit({
    branch: 'topic',
    message: 'Change both',
    author: alice,
    trailers: { Block: 'first' },
    files: { 'a.ts': 'a2\n', 'b.ts': 'b2\n', 'AGENTS.md': 'x\n' },
  });
  const pull = await repository.openPull({ head: 'topic', user: alice, fork });
  await stage.gh.idle();
  const run = await stage.open(pull);
  await stage.sync(run);
  const verdict = async () => {
    const { decision } = await judgeRun(
      stage.deps,
      stage.database.database.db,
      await stage.run(run),
      new Date(),
    );
    return { conclusion: decision.conclusion, reasons: decision.reasons.map((reason) => reason.code) };
  };
  const before = await verdict();
  expect(before.reasons).toContain('needs_allow');
  const facts = async () => (await stage.rows(run)).filter((row) => row.kind !== 'command.refused').length;
  const rows = await facts();
  const jobs = await stage.jobs();
  const say = async (who: User, body: string) => {
    const comment = await pull.comment(who, body);
    await runCommand(stage.deps, {
      repository: String(repository.id),
      pull: String(pull.number),
      comment: String(comment.id),
      author: { id: String(who.id), login: who.login, bot: false },
      body: comment.body,
      createdAt: comment.createdAt,
      reconciled: false,
    });
  };
  // few comments of many lines: the client spaces what it writes to GitHub
  let presses = 0;
  const button = fc.constantFrom(...(Object.keys(BUTTONS) as ButtonId[]));
  const nothingComesOf = (speaker: fc.Arbitrary<User>, numRuns: number) =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(speaker, fc.array(line, { minLength: 4, maxLength: 9 }), button), {
          minLength: 1,
          maxLength: 2,
        }),
        async (said) => {
          for (const [who, lines, action] of said) {
            const press = await notePress(stage.database.database.db, {
              delivery: `press-${++presses}`,
              repositoryId: String(repository.id),
              sha: pull.head.sha,
              name: 'countersign',
              action,
              userId: String(who.id),
              login: who.login,
              bot: false,
            });
            await pressButton(stage.deps, { press });
            await say(who, lines.join('\n'));
          }
          // past the hourly limit, so that it is rights that refuse and not the count
          await stage.database.moveClock(3_601_000);
          stage.gh.advance(3_601_000);
        },
      ),
      { numRuns },
    );
  await nothingComesOf(fc.constantFrom<User>(alice, passer), 4);
  expect(await facts()).toBe(rows);
  expect(await verdict()).toEqual(before);
  expect(await stage.jobs()).toEqual(jobs);
  await stage.sync(run);
  expect((await stage.run(run)).allowedRule).toBeNull();

  // once somebody with write allowed it, a passer-by can do as little as before
  await say(repository.owner, `/allow ${pull.head.sha}`);
  await stage.sync(run);
  const [allowed, rowsThen, jobsThen] = [await verdict(), await facts(), await stage.jobs()];
  expect(allowed.reasons).toEqual(expect.arrayContaining(['reviews_pending', 'guarded']));
  expect(allowed.reasons).not.toContain('needs_allow');
  await nothingComesOf(fc.constant<User>(passer), 3);
  expect(await facts()).toBe(rowsThen);
  expect(await verdict()).toEqual(allowed);
  expect(await stage.jobs()).toEqual(jobsThen);
}, 240_000);
