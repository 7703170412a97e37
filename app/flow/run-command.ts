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
import {
  countCommands,
  countReplies,
  endCommand,
  listCommands,
  takeCommand,
} from '../../db/store/command.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { findRunOfPull, type Run } from '../../db/store/run.ts';
import { refusedReply, unknownReply } from '../domain/command/reply.ts';
import { isForAnyone } from '../domain/command/rights.ts';
import { type NearMiss, type ParsedCommand, type ParsedComment, parseComment } from '../domain/command.ts';
import { type Policy, parsePolicy } from '../domain/policy.ts';
import { md } from '../domain/summary/markdown.ts';
import { Fault, Refusal, type RefusalCode } from '../errors.ts';
import type { GitHub, Permission } from '../github/port.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { judgeRun } from './judge-run.ts';
import type { CommandComment } from './queue-command.ts';
import { answer } from './run-command/answer.ts';
import { execute } from './run-command/execute.ts';
import { Declined } from './run-command/given.ts';
import { lastTouch } from './run-command/last-touch.ts';

/** A comment as it was created; edited ones never come here (case 46). */
export type CommandInput = Omit<CommandComment, 'cause'>;

/** What came of it. */
export type CommandOutcome =
  | { readonly kind: 'ignored'; readonly why: 'no_run' | 'bot' | 'no_command' }
  | { readonly kind: 'hinted'; readonly hint: NonNullable<ParsedComment['hint']> }
  | { readonly kind: 'answered'; readonly done: number; readonly refused: number };

/** Commands of a person in a run within an hour, replies of a run within a minute (CMD-3). */
const MOST_COMMANDS_AN_HOUR = 10;
const MOST_REPLIES_A_MINUTE = 3;
const LATE_MS = 3_600_000;
/** Words that are no command are kept under indexes that no command has. */
const FIRST_MISS = 1_000;

/** Reads a comment and does what it asks. */
export async function runCommand(deps: Deps, input: CommandInput): Promise<CommandOutcome> {
  const outcome = await carryOut(deps, input);
  const { repository, pull, comment, reconciled } = input;
  deps.log.info({ repository, pull, comment, reconciled, ...outcome }, 'run-command');
  return outcome;
}

async function carryOut(deps: Deps, input: CommandInput): Promise<CommandOutcome> {
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
  const work: Work = { deps, input, run, repository, github, prefix, permission: undefined };
  for (const command of parsed.commands) await one(work, command);
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

interface Work {
  readonly deps: Deps;
  readonly input: CommandInput;
  readonly run: Run;
  readonly repository: Repository;
  readonly github: GitHub;
  readonly prefix: string;
  /** Looked up once a comment, when a command first needs it; null where that failed. */
  permission: Permission | null | undefined;
}

async function policyOf(deps: Deps, run: Run): Promise<Policy | null> {
  const bytes = run.policyHash === null ? null : await loadPolicy(deps.database.db, run.policyHash);
  const reading = bytes === null ? null : parsePolicy(bytes);
  return reading?.ok === true ? reading.policy : null;
}

/** What GitHub no longer lets us do (a deleted comment, a locked conversation) is no reason to fail; what may pass is. */
async function attempt(deps: Deps, what: string, call: () => Promise<void>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof Fault) || error.retryable) throw error;
    deps.log.warn({ what, code: error.code }, 'run-command-unanswered');
  }
}

async function one(work: Work, parsed: ParsedCommand): Promise<void> {
  const { deps, run, input } = work;
  const { command } = parsed;
  const readable = !('message' in command);
  if (readable && !isForAnyone(command) && work.permission === undefined)
    work.permission = await lookUp(work);
  const touched =
    readable && command.name === 'claim' && command.block === null
      ? await lastTouch(deps, run, work.repository, command.path)
      : null;
  await withRun(deps, run.id, async (unit) => {
    const name = parsed.name;
    if (!(await take(unit, work, parsed.index, name))) return;
    const said = await mayReply(unit, work);
    if (await isTooMany(unit, work, parsed.index)) {
      return endCommand(unit.tx, input.comment, parsed.index, {
        state: 'refused',
        code: 'rate_limited',
        reply: null,
      });
    }
    try {
      const reply = await execute({
        deps,
        unit,
        judged: await judgeRun(deps, unit.tx, unit.run, unit.now),
        parsed,
        permission: work.permission ?? null,
        user: { id: input.author.id, bot: input.author.bot },
        cause: { kind: 'comment', id: input.comment, sha256: sha256(input.body) },
        prefix: work.prefix,
        commentMs: Date.parse(input.createdAt),
        late: unit.now.getTime() - Date.parse(input.createdAt) > LATE_MS,
        touched,
      });
      const end = { state: 'done', code: null, reply: said ? reply.text : null } as const;
      await endCommand(unit.tx, input.comment, parsed.index, end);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await refuse(unit, work, parsed, error, said);
    }
  });
}

async function missed(work: Work, index: number, miss: NearMiss): Promise<void> {
  await withRun(work.deps, work.run.id, async (unit) => {
    if (!(await take(unit, work, index, 'unknown'))) return;
    const quiet = !(await mayReply(unit, work)) || (await isTooMany(unit, work, index));
    const reply = quiet ? null : unknownReply(work.prefix, miss.word, miss.nearest).text;
    await endCommand(unit.tx, work.input.comment, index, { state: 'refused', code: 'bad_command', reply });
  });
}

function take(unit: RunUnit, { run, input }: Work, index: number, name: string): Promise<boolean> {
  return takeCommand(unit.tx, {
    commentId: input.comment,
    index,
    runId: run.id,
    repositoryId: run.repositoryId,
    userId: input.author.id,
    login: input.author.login,
    name,
  });
}

async function isTooMany(unit: RunUnit, { run, input }: Work, index: number): Promise<boolean> {
  const given = { runId: run.id, userId: input.author.id, commentId: input.comment, index };
  return (await countCommands(unit.tx, given)) >= MOST_COMMANDS_AN_HOUR;
}

async function mayReply(unit: RunUnit, { run, input }: Work): Promise<boolean> {
  return (await countReplies(unit.tx, run.id, input.comment)) < MOST_REPLIES_A_MINUTE;
}

/** Refusals that are facts of a run: somebody asked for what they may not have. */
const RECORDED: ReadonlySet<RefusalCode> = new Set(['denied', 'lookup_failed']);

async function refuse(
  unit: RunUnit,
  { input, prefix }: Work,
  { index, name }: ParsedCommand,
  error: Refusal,
  said: boolean,
): Promise<void> {
  const { code, message, accepted } = error;
  const closed = unit.run.status === 'closed' || unit.run.status === 'merged';
  if (RECORDED.has(code) && !closed) {
    unit.append('command.refused', {
      block: null,
      actor: { kind: input.author.bot ? 'bot' : 'person', id: input.author.id, via: 'comment' },
      cause: { kind: 'comment', id: input.comment, sha256: sha256(input.body) },
      data: { command: name, code },
    });
  }
  const why = error instanceof Declined ? error.says : md`${message}`;
  const reply = said ? refusedReply(prefix, name, why, accepted ?? null).text : null;
  await endCommand(unit.tx, input.comment, index, { state: 'refused', code, reply });
}

/** The permission that the repository's API tells now; null when it did not tell, or told it of somebody else (case 47). */
async function lookUp({ deps, github, repository, input }: Work): Promise<Permission | null> {
  try {
    const { permission, userId } = await github.getPermission(repository, input.author.login);
    return userId === input.author.id ? permission : null;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ code: error.code, comment: input.comment }, 'run-command-lookup');
    return null;
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
