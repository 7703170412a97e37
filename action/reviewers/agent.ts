/**
 * A command-line agent as a reviewer (REV-11, REV-7): text in, text out. It runs in a cell of its own
 * with an environment built from nothing; its log says what it did, and one tool event ends it.
 */
import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { evidenceOf } from '../../app/domain/transcript/evidence.ts';
import { CUT_OFF } from '../../app/domain/transcript/messages.ts';
import { type AgentKind, readTranscript, type Transcript } from '../../app/domain/transcript.ts';
import { type Exit, runProgram } from '../process.ts';
import { type Cell, openCell, withKeyTurn } from './agent/cell.ts';
import { type Agent, agents } from './agent/kinds.ts';
import type { Call, Key } from './asking.ts';
import { endOfStatus } from './provider-error.ts';
import type { ReviewTask, Unavailable } from './reviewer.ts';

/** Most of a log that is read; more ends the session as `truncated`. */
const MAX_LOG = 8 * 1024 * 1024;
/** A program that tells its version takes a moment. */
const PROBE_MS = 20_000;
/** Characters of standard error that a record shows, from its end (REV-10). */
const STDERR_SHOWN = 300;

/** Why a session of an agent brought no answer. */
type Failure = Omit<Extract<Call, { kind: 'failed' }>, 'kind' | 'exit' | 'log'>;

type Task = Pick<ReviewTask, 'path' | 'redact' | 'signal'>;

/** Kinds that were found held on a PATH, so that each is looked at once. */
const held = new Set<string>();

const unsafe = (detail: string): Failure => ({
  end: 'reviewer_unsafe',
  session: 'failed',
  detail,
  retryAfterMs: null,
});

/** Whether this machine has the agent in a version that can be held without tools; null, or why not. Spends nothing. */
export async function whyNotHeld(task: Task, kind: AgentKind): Promise<Failure | null> {
  const known = `${kind} ${task.path}`;
  if (held.has(known)) return null;
  const cell = await openCell();
  if ('unsafe' in cell) return unsafe(cell.unsafe);
  try {
    const why = await probe(task, agents[kind], cell);
    if (why === null) held.add(known);
    return why;
  } finally {
    await cell.close();
  }
}

async function probe(task: Task, agent: Agent, cell: Cell): Promise<Failure | null> {
  const { program, since } = agent;
  const run = (argv: readonly string[]) => runIn(task, cell, agent, argv, {}, '', PROBE_MS);
  const first = await run([program, '--version']);
  if (first.notStarted !== null)
    return {
      ...unsafe(`${program} cannot be started by user ${cell.user.uid} of this job (${first.notStarted})`),
      end: 'worker_error',
    };
  // a machine that is too busy to answer is no verdict on the program
  if (first.timedOut) return { ...unsafe(`${program} did not tell its version in time`), end: 'timeout' };
  const version = /\b(\d+)\.(\d+)\.(\d+)\b/.exec(first.stdout.toString('utf8').slice(0, 1000));
  if (first.code !== 0 || version === null) return unsafe(`${program} does not tell its version`);
  const told = version.slice(1, 4).map(Number);
  const accepted = `${since.join('.')} up to the next major version`;
  if (told[0] !== since[0] || isBefore(told, since))
    return unsafe(`${program} ${told.join('.')} is not known to hold its tools off; accepted: ${accepted}`);
  if (agent.listing === null) return null;
  const second = await run(agent.listing.argv);
  if (second.timedOut) return { ...unsafe(`${program} did not list what it can do in time`), end: 'timeout' };
  const wrong =
    second.code === 0
      ? agent.listing.wrong(second.stdout.toString('utf8'))
      : 'it does not list what it can do';
  return wrong === null ? null : unsafe(`${program} ${told.join('.')}: ${wrong}`);
}

function isBefore(version: readonly number[], since: readonly number[]): boolean {
  const at = since.findIndex((part, i) => version[i] !== part);
  return at !== -1 && (version[at] ?? 0) < (since[at] ?? 0);
}

/** Runs one session of an agent with this prompt; its kind must have been found held before. */
export async function askAgent(
  task: Task & Pick<ReviewTask, 'ticket'>,
  spec: { uses: AgentKind; model: string },
  key: Key | null,
  prompt: string,
): Promise<Call> {
  const agent = agents[spec.uses];
  const cell = await openCell();
  if ('unsafe' in cell) return { kind: 'failed', ...unsafe(cell.unsafe) };
  if (key === null) return { kind: 'failed', ...unsafe('no variable of a key is named') };
  try {
    const promptFile = join(cell.work, 'prompt.txt');
    if (agent.reads === 'file') {
      await writeFile(promptFile, prompt, { mode: 0o600 });
      await chown(promptFile, cell.user.uid, cell.user.gid);
    }
    const secret = { [agent.keyAs(key.name)]: key.value };
    const argv = agent.argv({ model: spec.model, promptFile });
    const input = agent.reads === 'stdin' ? prompt : '';
    const exit = await withKeyTurn(`${key.name} ${key.value}`, () =>
      runIn(task, cell, agent, argv, secret, input, task.ticket.timeout_ms),
    );
    const printed = exit.stdout.toString('utf8');
    const log = evidenceOf(spec.uses, printed, task.redact);
    if (exit.aborted) return { kind: 'stopped', exit: exit.code, log };
    const read = readTranscript(spec.uses, printed);
    const failure = failureOf(task, exit, read);
    if (failure !== null) return { kind: 'failed', ...failure, exit: exit.code, log };
    if (read.kind !== 'answered') throw new Error('an answer that is none');
    const { text, finish, usage } = read;
    return { kind: 'answer', text, finish, usage, exit: exit.code, log };
  } finally {
    await cell.close();
  }
}

function runIn(
  task: Task,
  cell: Cell,
  agent: Agent,
  argv: readonly string[],
  secret: Readonly<Record<string, string>>,
  input: string,
  timeoutMs: number,
): Promise<Exit> {
  const [file = agent.program, ...args] = argv;
  return runProgram({
    argv: [file, ...args],
    cwd: cell.work,
    env: { ...secret, ...agent.env, PATH: task.path, HOME: cell.home, TMPDIR: cell.temp },
    input,
    timeoutMs,
    signal: task.signal,
    maxStdout: MAX_LOG,
    user: cell.user,
    endWhenFull: true,
  });
}

/** What is wrong with a session, worst first: what it did counts whatever else became of it (REV-7, REV-10). */
function failureOf(task: Task & Pick<ReviewTask, 'ticket'>, exit: Exit, read: Transcript): Failure | null {
  const said = task.redact(exit.stderr).slice(-STDERR_SHOWN);
  const fail = (end: Unavailable, session: Failure['session'], what: string): Failure => ({
    end,
    session,
    retryAfterMs: null,
    detail: `${what}${said === '' || end === 'rule_break' ? '' : `: ${said}`}`,
  });
  if (read.kind === 'rule_break')
    return fail(
      'rule_break',
      'invalid',
      `used a tool: ${task.redact(read.entry)} (line ${read.line} of its log)`,
    );
  if (read.kind === 'unsafe') return fail('reviewer_unsafe', 'invalid', `${read.why} (line ${read.line})`);
  if (exit.timedOut) return fail('timeout', 'timeout', `no end after ${task.ticket.timeout_ms} ms`);
  if (exit.notStarted !== null) return fail('worker_error', 'failed', `could not start (${exit.notStarted})`);
  if (exit.truncated) return fail('truncated', 'invalid', `more than ${MAX_LOG} bytes of log`);
  if (read.kind === 'failed')
    return fail(
      read.code === CUT_OFF ? 'truncated' : endOfStatus(read.status),
      read.code === CUT_OFF ? 'invalid' : 'failed',
      `status ${read.status ?? 'none'} ${read.code ?? ''}`.trim(),
    );
  if (exit.code !== 0)
    return fail('worker_error', 'failed', `ended with ${exit.signal ?? `exit ${exit.code}`}`);
  if (read.kind === 'empty') return fail('empty_output', 'invalid', 'printed no log');
  if (read.kind === 'unstructured')
    return fail(
      read.cutOff ? 'truncated' : 'bad_output',
      'invalid',
      `its log is not structured: ${read.why} (line ${read.line})`,
    );
  return null;
}
