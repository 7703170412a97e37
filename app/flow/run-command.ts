/**
 * Carries out the commands of one new comment (CMD-1…CMD-5): each at most once, with the rights that
 * GitHub tells at this moment, one reply for all. Doing it again finishes what was not done.
 *
 * Reads: run, policy, verified rows, command. Writes: command, sticky, and what each command writes.
 * Calls: GitHub (permission, reactions, comments) and git, in no transaction. Queues: sync-run,
 * cut-tickets, decide-gate. May fail with: `github_unavailable`, `github_rate_limited`, `lock_busy`
 * (retryable); what a person did wrong is an answer and never a failure.
 */
import { createHash } from 'node:crypto';
import { endCommand, listCommands } from '../../db/store/command.ts';
import { findRepository } from '../../db/store/installation.ts';
import { findRunOfPull } from '../../db/store/run.ts';
import { unknownReply } from '../domain/command/reply.ts';
import { type NearMiss, type ParsedComment, parseComment } from '../domain/command.ts';
import { withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import type { CommandComment } from './queue-command.ts';
import { answer } from './run-command/answer.ts';
import {
  attempt,
  carryOut,
  isTooMany,
  mayReply,
  policyOf,
  take,
  type Work,
} from './run-command/carry-out.ts';

/** A comment as it was created; edited ones never come here (case 46). */
export type CommandInput = Omit<CommandComment, 'cause'>;

/** What came of it. */
export type CommandOutcome =
  | { readonly kind: 'ignored'; readonly why: 'no_run' | 'bot' | 'no_command' }
  | { readonly kind: 'hinted'; readonly hint: NonNullable<ParsedComment['hint']> }
  | { readonly kind: 'answered'; readonly done: number; readonly refused: number };

/** Words that are no command are kept under indexes that no command has. */
const FIRST_MISS = 1_000;

/** Reads a comment and does what it asks. */
export async function runCommand(deps: Deps, input: CommandInput): Promise<CommandOutcome> {
  const outcome = await readComment(deps, input);
  const { repository, pull, comment, reconciled } = input;
  deps.log.info({ repository, pull, comment, reconciled, ...outcome }, 'run-command');
  return outcome;
}

async function readComment(deps: Deps, input: CommandInput): Promise<CommandOutcome> {
  const { db } = deps.database;
  const repository = await findRepository(db, input.repository);
  if (repository === null) return { kind: 'ignored', why: 'no_run' };
  const { installationId } = repository;
  const run = await findRunOfPull(db, { installationId, repositoryId: repository.id, pull: input.pull });
  if (run === null) return { kind: 'ignored', why: 'no_run' };
  const policy = await policyOf(deps, run);
  const prefix = policy?.commands.prefix ?? '';
  if (input.author.bot && policy?.commands.bots.includes(input.author.id) !== true)
    return { kind: 'ignored', why: 'bot' };
  const parsed = parseComment(input.body, { prefix, mention: await deps.github.slug() });
  if (parsed.hint === undefined && parsed.commands.length + parsed.nearMisses.length === 0) {
    return { kind: 'ignored', why: 'no_command' };
  }
  const github = await deps.github.installation(installationId);
  const react = (content: 'eyes' | 'rocket' | 'confused') =>
    attempt(deps, 'reaction', () => github.addReaction(repository, input.comment, content));
  if (parsed.hint !== undefined) {
    await react('confused');
    return { kind: 'hinted', hint: parsed.hint };
  }
  await react('eyes');
  const source = {
    id: input.comment,
    via: 'comment',
    author: input.author,
    cause: { kind: 'comment', id: input.comment, sha256: sha256(input.body) },
    atMs: Date.parse(input.createdAt),
  } as const;
  const work: Work = { deps, source, run, repository, github, prefix, permission: undefined };
  for (const { index, name, command } of parsed.commands) await carryOut(work, index, name, [command]);
  for (const [i, miss] of parsed.nearMisses.entries()) await missed(work, FIRST_MISS + i, miss);
  const ends = await listCommands(db, input.comment);
  const refused = ends.filter((end) => end.state === 'refused').length;
  if (ends.some((end) => end.reply !== null)) {
    await attempt(deps, 'reply', () =>
      answer(deps, github, repository, { ...run, pull: input.pull }, prefix),
    );
  }
  await react(refused > 0 ? 'confused' : 'rocket');
  return { kind: 'answered', done: ends.length - refused, refused };
}

async function missed(work: Work, index: number, miss: NearMiss): Promise<void> {
  await withRun(work.deps, work.run.id, async (unit) => {
    if (!(await take(unit, work, index, 'unknown'))) return;
    const quiet = !(await mayReply(unit, work)) || (await isTooMany(unit, work, index));
    const reply = quiet ? null : unknownReply(work.prefix, miss.word, miss.nearest).text;
    await endCommand(unit.tx, work.source.id, index, { state: 'refused', code: 'bad_command', reply });
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
