/**
 * A trusted command (REV-1a): the file alone in an empty folder at its path, the config that the base
 * policy names beside it, an environment of PATH and HOME. What it did not say cleanly it did not say (REV-10).
 */
import { createHash } from 'node:crypto';
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { linesOf } from '../../app/domain/finding.ts';
import { compilePatterns } from '../../app/domain/ownership/match.ts';
import { decodePath, showPath, type WirePath } from '../../app/domain/path.ts';
import type { LeasedTicket, ReviewerSpec } from '../../app/protocol/runner.ts';
import { type Exit, runProgram } from '../process.ts';
import type { Parsed, Parser } from './formats/format.ts';
import type { ReviewOutcome, ReviewTask } from './reviewer.ts';

type Command = NonNullable<ReviewerSpec['command']>;

/** Most of standard output that is read; more is `truncated`. */
const MAX_STDOUT = 32 * 1024 * 1024;
/** Characters of standard error that a record shows, from its end (REV-10). */
const STDERR_SHOWN = 350;
/** The parser of each output, loaded when a ticket first needs it (ACT-1). */
const parsers: Readonly<Record<Command['output'], () => Promise<Parser>>> = {
  sarif: async () => (await import('./formats/sarif.ts')).parseSarif,
  rdjson: async () => (await import('./formats/rdjson.ts')).parseRdjson,
  checkstyle: async () => (await import('./formats/checkstyle.ts')).parseCheckstyle,
  'eslint-json': async () => (await import('./formats/eslint-json.ts')).parseEslintJson,
  countersign: async () => (await import('./formats/countersign.ts')).parseCountersign,
};

/** Whether the command may be given this ticket's file: inside its `paths`, and deletions only where it takes them. */
export function takesFile(command: Command, ticket: LeasedTicket): boolean {
  if (ticket.blob.head === null && !command.deletions) return false;
  return compilePatterns(command.paths)(ticket.path);
}

/** Runs the command over the ticket's file and reads what it said. */
export async function reviewByCommand(task: ReviewTask): Promise<ReviewOutcome> {
  const { ticket, spec, review } = task;
  const reviewer = spec.name;
  const unavailable = (
    end: 'worker_error' | 'bad_output' | 'empty_output' | 'truncated' | 'timeout' | 'bad_ticket',
    detail: string,
  ): ReviewOutcome => ({ kind: 'unavailable', reviewer, end, detail, retryAfterMs: null });
  const command = spec.command;
  if (command === undefined) return unavailable('bad_ticket', `${reviewer}: no command in the ticket`);
  if (![ticket.path, ...command.config.map((config) => config.path)].every(isSafePath))
    return unavailable('bad_ticket', `${reviewer}: not a path of a file`);

  const work = join(task.dir, 'work');
  const home = join(task.dir, 'home');
  const placed = placeOf(ticket.path, command);
  await Promise.all([
    mkdir(home, { recursive: true, mode: 0o700 }),
    writeAt(work, Buffer.from(placed, 'utf8'), review.bytes),
  ]);
  for (const { path, blob } of command.config) {
    const bytes = blob === null ? undefined : task.config.get(blob);
    if (bytes !== undefined) await writeAt(work, Buffer.from(path, 'utf8'), bytes);
  }

  const named = placed.startsWith('-') ? `./${placed}` : placed;
  const [file = '', ...args] = command.run.map((arg) => arg.replaceAll('{path}', () => named));
  const real = realpath(work).catch(() => work);
  const exit = await runProgram({
    argv: [file, ...args],
    cwd: work,
    env: { PATH: task.path, HOME: home },
    timeoutMs: ticket.timeout_ms,
    signal: task.signal,
    maxStdout: MAX_STDOUT,
  });
  if (exit.aborted) {
    task.sessions.ran(record(task, exit, 'abandoned', 'stopped'));
    return { kind: 'given_up', why: 'stopping' };
  }
  const fail = (
    end: Parameters<typeof unavailable>[0],
    session: 'failed' | 'invalid' | 'timeout',
    what: string,
  ): ReviewOutcome => {
    // redacted before it is cut: half a secret would not be known any more
    const said = task.redact(exit.stderr).slice(-STDERR_SHOWN);
    const detail = `${reviewer}: ${what}${said === '' ? '' : `: ${said}`}`;
    task.sessions.ran(record(task, exit, session, detail));
    return unavailable(end, detail);
  };
  if (exit.timedOut) return fail('timeout', 'timeout', `no end after ${ticket.timeout_ms} ms`);
  if (exit.notStarted !== null) return fail('worker_error', 'failed', `could not start (${exit.notStarted})`);
  if (exit.code === null || !command.ok_exit.includes(exit.code))
    return fail('worker_error', 'failed', `ended with ${exit.signal ?? `exit ${exit.code}`}`);
  if (exit.truncated) return fail('truncated', 'invalid', `more than ${MAX_STDOUT} bytes of output`);
  const stdout = exit.stdout.toString('utf8');
  if (stdout.trim() === '') return fail('empty_output', 'invalid', `said nothing (exit ${exit.code})`);

  const parse = await parsers[command.output]();
  const parsed: Parsed = parse(stdout, {
    dir: await real,
    isReviewed: (path) => path === placed || path === named,
    lines: linesOf(review.text),
    lens: spec.lenses?.[0] ?? ticket.lenses[0] ?? 'correctness',
    severity: command.severity,
  });
  if (!parsed.ok) return fail('bad_output', 'invalid', parsed.detail);
  // a linter that ignored the file exits non-zero with an empty, valid report
  if (exit.code !== 0 && parsed.reported === 0)
    return fail('bad_output', 'invalid', `exit ${exit.code} without a finding`);
  task.sessions.ran(record(task, exit, 'complete', null));
  return {
    kind: 'reviewed',
    reviewer,
    verdict: parsed.findings.length > 0 || parsed.unplaced.length > 0 ? 'findings' : 'approve',
    findings: parsed.findings,
    unplaced: parsed.unplaced.map((said) => `${reviewer}: ${said}`),
    answers: [],
  };
}

function record(
  task: ReviewTask,
  exit: Exit,
  end: 'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned',
  detail: string | null,
): Parameters<ReviewTask['sessions']['ran']>[0] {
  return {
    reviewer: task.spec.name,
    provider: null,
    model: null,
    end,
    detail,
    exit: exit.code,
    tokens_in: 0,
    tokens_out: 0,
    cost_micro: 0,
    ms: exit.ms,
  };
}

/** Whether a path stays below the folder it is written to (T21): git says so too, but the ticket came over the wire. */
function isSafePath(path: WirePath): boolean {
  const parts = decodePath(path).toString('latin1').split('/');
  return parts.every(
    (part) => part !== '' && part !== '.' && part !== '..' && !part.includes('\0') && !/^\.git$/i.test(part),
  );
}

/**
 * The path the file gets in the working folder: its own, or a stand-in with the same ending when its
 * name is not UTF-8 (it cannot be an argument) or is that of a config file, which must be the base's.
 */
function placeOf(path: WirePath, command: Command): string {
  const own = typeof path === 'string' ? path : null;
  if (own !== null && !command.config.some((config) => config.path === own)) return own;
  const digest = createHash('sha256').update(decodePath(path)).digest('hex').slice(0, 12);
  return `reviewed-${digest}${extname(showPath(path)).replace(/[^A-Za-z0-9.]/g, '')}`;
}

async function writeAt(root: string, path: Buffer, bytes: Buffer): Promise<void> {
  const slash = Math.max(0, path.lastIndexOf(0x2f));
  const below = (part: Buffer): Buffer => Buffer.concat([Buffer.from(`${root}/`), part]);
  await mkdir(below(path.subarray(0, slash)), { recursive: true, mode: 0o700 });
  await writeFile(below(path), bytes, { mode: 0o644 });
}
