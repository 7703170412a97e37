/**
 * One command on its run, whoever gave it and by what (CMD-3, CMD-4, PUB-6): taken at most once, held
 * against the limits and against the rights that GitHub tells at this moment, its end and its reply kept.
 *
 * Reads: run, verified rows, command. Writes: command, `command.refused`, and what the command writes.
 * Calls: GitHub (permission) and git, in no transaction.
 */
import { countCommands, countReplies, endCommand, takeCommand } from '../../../db/store/command.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { loadPolicy } from '../../../db/store/policy.ts';
import type { Run } from '../../../db/store/run.ts';
import type { ArgumentFault, Command } from '../../domain/command/arguments.ts';
import { refusedReply } from '../../domain/command/reply.ts';
import { isForAnyone } from '../../domain/command/rights.ts';
import type { CommandName } from '../../domain/command/table.ts';
import type { Cause } from '../../domain/ledger/row-fields.ts';
import { type Policy, parsePolicy } from '../../domain/policy.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Fault, Refusal, type RefusalCode } from '../../errors.ts';
import type { GitHub, Permission } from '../../github/port.ts';
import { type RunUnit, withRun } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import { judgeRun } from '../judge-run.ts';
import { isAlone } from '../record-reviews.ts';
import { execute } from './execute.ts';
import { Declined } from './given.ts';
import { seeCheck } from './see-check.ts';
import { seePaths } from './see-path.ts';

/** Who asks, and by what. */
export interface Source {
  /** The comment's id, or minus the number of a press: with the index it names a command for ever. */
  readonly id: string;
  readonly via: 'comment' | 'button';
  readonly author: { readonly id: string; readonly login: string; readonly bot: boolean };
  readonly cause: Cause;
  /** When it was given, in ms; of a comment GitHub tells the whole second. */
  readonly atMs: number;
}

/** What the commands of one source share. */
export interface Work {
  readonly deps: Deps;
  readonly source: Source;
  readonly run: Run;
  readonly repository: Repository;
  readonly github: GitHub;
  readonly prefix: string;
  /** Looked up once a source, when a command first needs it; null where that failed. */
  permission: Permission | null | undefined;
}

/** Commands of a person in a run within an hour, replies of a run within a minute (CMD-3). */
const MOST_COMMANDS_AN_HOUR = 10;
const MOST_REPLIES_A_MINUTE = 3;
const LATE_MS = 3_600_000;
/** Refusals that are facts of a run: somebody asked for what they may not have. */
const RECORDED: ReadonlySet<RefusalCode> = new Set(['denied', 'lookup_failed']);

/**
 * Does a command, which may be several of one name where one press means several; all of them commit
 * together. `refusal` says of the locked run why none of them may be tried at all; null: they may.
 */
export async function carryOut(
  work: Work,
  index: number,
  name: CommandName,
  parts: readonly (Command | ArgumentFault)[],
  refusal: (run: Run) => Refusal | null = () => null,
): Promise<void> {
  const { deps, run, source } = work;
  const readable = parts.filter((part): part is Command => !('message' in part));
  if (readable.some((part) => !isForAnyone(part)) && work.permission === undefined)
    work.permission = await lookUp(work);
  const claims = readable.flatMap((part) => (part.name === 'claim' ? [part] : []));
  const sight = await seePaths(deps, run, work.repository, claims);
  const answersFor = readable.some(
    (part) => part.name === 'approve' || part.name === 'override' || part.name === 'dismiss',
  );
  const alone = answersFor ? await askAlone(work) : false;
  const check = readable.some((part) => part.name === 'status')
    ? await seeCheck(deps, work.github, work.repository, run)
    : null;
  await withRun(deps, run.id, async (unit) => {
    if (!(await take(unit, work, index, name))) return;
    const said = await mayReply(unit, work);
    if (await isTooMany(unit, work, index)) {
      const end = { state: 'refused', code: 'rate_limited', reply: null } as const;
      return endCommand(unit.tx, source.id, index, end);
    }
    const judged = await judgeRun(deps, unit.tx, unit.run, unit.now);
    const replies: Markdown[] = [];
    const refusals: Refusal[] = [];
    const refused = refusal(unit.run);
    if (refused !== null) {
      replies.push(toldOf(work, name, refused));
      refusals.push(refused);
    }
    for (const command of refused === null ? parts : []) {
      try {
        const reply = await execute({
          deps,
          unit,
          judged,
          parsed: { index, line: 0, name, command },
          permission: work.permission ?? null,
          check,
          user: { id: source.author.id, bot: source.author.bot },
          via: source.via,
          cause: source.cause,
          prefix: work.prefix,
          commentMs: source.atMs,
          alone,
          late: unit.now.getTime() - source.atMs > LATE_MS,
          sight,
        });
        replies.push(reply);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        replies.push(toldOf(work, name, error));
        refusals.push(error);
      }
      // a right that one lacks the others lack as well
      if (refusals.some((one) => RECORDED.has(one.code))) break;
    }
    const [first] = refusals;
    // a chain that does not verify is evidence and gets no row on top
    if (first !== undefined && judged.verified !== null) record(unit, work, name, first.code);
    const done = refusals.length < replies.length;
    await endCommand(unit.tx, source.id, index, {
      state: done ? 'done' : 'refused',
      code: first?.code ?? null,
      reply: said ? Markdown.join(replies, ' ').text : null,
    });
  });
}

/** Whether the asker is the only one with write, asked where the policy lets such a one act on their own work (GAT-6). */
async function askAlone(work: Work): Promise<boolean> {
  const { deps, github, repository, run, source } = work;
  if ((await policyOf(deps, run))?.people.solo !== true) return false;
  try {
    return await isAlone(github, repository, source.author.id);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ code: error.code, source: source.id }, 'run-command-lookup');
    return false;
  }
}

/** The policy of a run, as its prefix and its bots are read; null where none is valid. */
export async function policyOf(deps: Deps, run: Run): Promise<Policy | null> {
  const bytes = run.policyHash === null ? null : await loadPolicy(deps.database.db, run.policyHash);
  const reading = bytes === null ? null : parsePolicy(bytes);
  return reading?.ok === true ? reading.policy : null;
}

/** Calls what GitHub may no longer let us do (a deleted comment, a locked conversation): that is no reason to fail; what may pass is. */
export async function attempt(deps: Deps, what: string, call: () => Promise<void>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof Fault) || error.retryable) throw error;
    deps.log.warn({ what, code: error.code }, 'run-command-unanswered');
  }
}

/** Takes a command for execution; false when it was taken before. */
export function take(
  unit: RunUnit,
  { run, source }: Pick<Work, 'run' | 'source'>,
  index: number,
  name: string,
): Promise<boolean> {
  return takeCommand(unit.tx, {
    commentId: source.id,
    index,
    runId: run.id,
    repositoryId: run.repositoryId,
    userId: source.author.id,
    login: source.author.login,
    name,
  });
}

/** Whether this person has had ten commands in this run within the hour. */
export async function isTooMany(
  unit: RunUnit,
  { run, source }: Pick<Work, 'run' | 'source'>,
  index: number,
): Promise<boolean> {
  const given = { runId: run.id, userId: source.author.id, commentId: source.id, index };
  return (await countCommands(unit.tx, given)) >= MOST_COMMANDS_AN_HOUR;
}

/** Whether this run may be answered with text: at most three times a minute. */
export async function mayReply(
  unit: RunUnit,
  { run, source }: Pick<Work, 'run' | 'source'>,
): Promise<boolean> {
  return (await countReplies(unit.tx, run.id, source.id)) < MOST_REPLIES_A_MINUTE;
}

function toldOf({ prefix }: Work, name: CommandName, error: Refusal): Markdown {
  const why = error instanceof Declined ? error.says : md`${error.message}`;
  return refusedReply(prefix, name, why, error.accepted ?? null);
}

function record(unit: RunUnit, { source }: Work, name: CommandName, code: RefusalCode): void {
  const closed = unit.run.status === 'closed' || unit.run.status === 'merged';
  if (!RECORDED.has(code) || closed) return;
  unit.append('command.refused', {
    block: null,
    actor: { kind: source.author.bot ? 'bot' : 'person', id: source.author.id, via: source.via },
    cause: source.cause,
    data: { command: name, code },
  });
}

/** The permission that the repository's API tells now; null when it did not tell, or told it of somebody else (case 47). */
async function lookUp({ deps, github, repository, source }: Work): Promise<Permission | null> {
  try {
    const { permission, userId } = await github.getPermission(repository, source.author.login);
    return userId === source.author.id ? permission : null;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ code: error.code, source: source.id }, 'run-command-lookup');
    return null;
  }
}
