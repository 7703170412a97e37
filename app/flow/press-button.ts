/**
 * Does what a button of the check means (PUB-6): the command of that name, on the head whose check it
 * was, with the rights that GitHub tells of the presser at this moment. Answered in the sticky comment.
 *
 * Reads: press, check runs, run, files, policy. Writes: command, sticky, and what the command writes.
 * Calls: GitHub (permission, comments) and git, in no transaction. Queues: sync-run, cut-tickets,
 * decide-gate. May fail with: `github_unavailable`, `github_rate_limited`, `lock_busy` (retryable).
 */
import { listChecks } from '../../db/store/check.ts';
import { listCommands } from '../../db/store/command.ts';
import { listFiles } from '../../db/store/file.ts';
import { findRepository } from '../../db/store/installation.ts';
import { findPress, type Press } from '../../db/store/press.ts';
import { findRun, listRunsOfHead, type Run } from '../../db/store/run.ts';
import { BUTTONS, type ButtonId, commandsOf, isButton } from '../domain/button.ts';
import { encodePath } from '../domain/path.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { answer } from './run-command/answer.ts';
import { attempt, carryOut, policyOf, type Work } from './run-command/carry-out.ts';

/** Which press to work. */
export interface PressButtonInput {
  readonly press: string;
}

/** What came of it. */
export type PressButtonOutcome =
  | { readonly kind: 'ignored'; readonly why: 'unknown_press' | 'unknown_action' | 'no_run' | 'bot' }
  | { readonly kind: 'answered'; readonly done: number; readonly refused: number };

/** Works a press; doing it again finishes what was not done, and does nothing twice. */
export async function pressButton(deps: Deps, input: PressButtonInput): Promise<PressButtonOutcome> {
  const outcome = await work(deps, input);
  deps.log.info({ ...input, ...outcome }, 'press-button');
  return outcome;
}

async function work(deps: Deps, input: PressButtonInput): Promise<PressButtonOutcome> {
  const { db } = deps.database;
  const press = await findPress(db, input.press);
  if (press === null) return { kind: 'ignored', why: 'unknown_press' };
  if (!isButton(press.action)) return { kind: 'ignored', why: 'unknown_action' };
  const repository = await findRepository(db, press.repositoryId);
  const run = await runShown(deps, press);
  if (repository === null || run === null || run.pull === null) return { kind: 'ignored', why: 'no_run' };
  const policy = await policyOf(deps, run);
  const prefix = policy?.commands.prefix ?? '';
  if (press.bot && policy?.commands.bots.includes(press.userId) !== true)
    return { kind: 'ignored', why: 'bot' };
  const github = await deps.github.installation(repository.installationId);
  const doing: Work = {
    deps,
    // no comment of GitHub's has an id below 1
    source: {
      id: `-${press.id}`,
      via: 'button',
      author: { id: press.userId, login: press.login, bot: press.bot },
      cause: { kind: 'delivery', id: press.delivery, sha256: null },
      atMs: press.pressedAtMs,
    },
    run,
    repository,
    github,
    prefix,
    permission: undefined,
  };
  const orphans = press.action === 'claim-orphans' ? await orphansOf(deps, run) : [];
  const button = press.action;
  const commands = commandsOf(button, press.sha, orphans);
  // asked of the locked run: a push may have come meanwhile
  const refusal = (now: Run) => refusalOf(press, button, now, commands);
  await carryOut(doing, 0, BUTTONS[button].command, commands, refusal);
  const ends = await listCommands(db, doing.source.id);
  const refused = ends.filter((end) => end.state === 'refused').length;
  if (ends.some((end) => end.reply !== null)) {
    const pull = run.pull;
    await attempt(deps, 'reply', () => answer(deps, github, repository, { ...run, pull }, prefix));
  }
  return { kind: 'answered', done: ends.length - refused, refused };
}

/** The run whose verdict that check run showed (RUN-5), by our own records of commit and name (PUB-8). */
async function runShown(deps: Deps, press: Press): Promise<Run | null> {
  const { db } = deps.database;
  const { repositoryId, sha, name } = press;
  const [shown] = await listChecks(db, { repositoryId, sha, name });
  const run = shown === undefined ? null : await findRun(db, shown.runId);
  return run ?? (await listRunsOfHead(db, repositoryId, sha))[0] ?? null;
}

async function orphansOf(deps: Deps, run: Run): Promise<string[]> {
  const files = await listFiles(deps.database.db, run.id);
  return files.flatMap((file) => {
    const path = encodePath(file.path);
    // a name that is no text can be claimed by no command
    return file.ownership === 'orphan' && typeof path === 'string' ? [path] : [];
  });
}

/** A button never acts on another head than the one whose check it was on. */
function refusalOf(press: Press, button: ButtonId, run: Run, commands: readonly unknown[]): Refusal | null {
  if (run.toldHead !== press.sha)
    return new Refusal(
      'conflict',
      `the button was on the check of ${press.sha.slice(0, 12)}, which is not the present head`,
      'the buttons of the newest commit',
    );
  if (commands.length === 0) return new Refusal('conflict', `nothing is left for "${BUTTONS[button].label}"`);
  return null;
}
