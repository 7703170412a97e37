/**
 * A program that is started held (VER-2): its process is there, in a group of its own, and waits; its start is
 * recorded; then it is let go. What could not be recorded never runs, and exits 125. It always ends as a whole:
 * TERM to the group, two seconds, KILL, then whatever left the group with our mark in its environment.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { NOT_STARTED_EXIT } from '../../app/protocol/receipt.ts';

/** How it ended. */
export type HeldExit = Readonly<{
  /** Whether it was let go. */
  started: boolean;
  code: number | null;
  signal: NodeJS.Signals | null;
  timedOut: boolean;
  cancelled: boolean;
  /** From letting it go to its end. */
  ms: number;
}>;

const KILL_AFTER_MS = 2000;
/** After KILL, until its pipes are no longer waited for: what hides from us may hold them for ever. */
const FORSAKE_AFTER_MS = 1000;
/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Waits for one line on descriptor 3 and becomes the program. The text is ours alone: the argv arrives as
 * arguments, of which some shells take a first one that begins with - for an option of exec. End of file without
 * the line is what a runner that died leaves, and starts nothing.
 */
const HOLD = `IFS= read -r go <&3 || exit ${NOT_STARTED_EXIT}; [ "$go" = go ] || exit ${NOT_STARTED_EXIT}; exec 3<&-; unset go; case $1 in -*) exit 127;; esac; exec "$@"`;

/** Runs `argv` to its end; `record` must resolve before it is let go. Throws what spawning throws, and nothing else. */
export async function runHeld(options: {
  argv: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** `NAME=value` of the environment, by which what left the group is found. */
  mark: string;
  timeoutMs: number;
  signal: AbortSignal;
  record: (pid: number) => Promise<void>;
  onOutput: (stream: 'stdout' | 'stderr', chunk: Buffer) => void;
}): Promise<HeldExit> {
  const child = spawn('/bin/sh', ['-c', HOLD, 'countersign', ...options.argv], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const closing = closeOf(child);
  child.stdout?.on('data', (chunk: Buffer) => options.onOutput('stdout', chunk));
  child.stderr?.on('data', (chunk: Buffer) => options.onOutput('stderr', chunk));
  const gate = child.stdio[3] as Writable;
  gate.on('error', () => undefined);

  let started = false;
  let timedOut = false;
  let from = performance.now();
  let killTimer: NodeJS.Timeout | null = null;
  let forsakeTimer: NodeJS.Timeout | null = null;
  const kill = (signal: NodeJS.Signals): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, signal);
    } catch {
      // the group is gone already
    }
  };
  const end = (): void => {
    if (killTimer !== null) return;
    kill('SIGTERM');
    killTimer = setTimeout(() => {
      kill('SIGKILL');
      void endMarked(options.mark);
      forsakeTimer = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, FORSAKE_AFTER_MS);
    }, KILL_AFTER_MS);
  };
  let timer: NodeJS.Timeout | null = null;
  options.signal.addEventListener('abort', end, { once: true });
  // a grandchild may hold the pipes open after its parent left: the whole group has to go
  child.on('exit', end);
  try {
    // a process that could not be made ends the wait below with its error
    if (child.pid !== undefined && (await recorded(options.record, child.pid)) && !options.signal.aborted) {
      started = true;
      from = performance.now();
      timer = setTimeout(
        () => {
          timedOut = true;
          end();
        },
        Math.min(options.timeoutMs, LONGEST_TIMER_MS),
      );
      gate.end('go\n');
    } else gate.destroy();
    const { code, signal } = await closing;
    const ms = Math.round(performance.now() - from);
    if (started) return { started, code, signal, timedOut, cancelled: options.signal.aborted, ms };
    return {
      started,
      code: NOT_STARTED_EXIT,
      signal: null,
      timedOut: false,
      cancelled: options.signal.aborted,
      ms: 0,
    };
  } finally {
    if (timer !== null) clearTimeout(timer);
    if (killTimer !== null) clearTimeout(killTimer);
    if (forsakeTimer !== null) clearTimeout(forsakeTimer);
    options.signal.removeEventListener('abort', end);
    kill('SIGKILL');
    await endMarked(options.mark);
  }
}

async function recorded(record: (pid: number) => Promise<void>, pid: number): Promise<boolean> {
  try {
    await record(pid);
    return true;
  } catch {
    return false;
  }
}

function closeOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.on('close', (code, signal) => resolve({ code, signal }));
    child.on('error', (error) => {
      if (child.pid === undefined) reject(error);
    });
  });
}

/** Ends processes that have the mark in the environment they were started with; one pass may miss what they start. */
async function endMarked(mark: string): Promise<void> {
  for (let pass = 0; pass < 5; pass++) {
    const pids = (await readdir('/proc').catch((): string[] => [])).filter((name) => /^\d+$/.test(name));
    const found = (
      await Promise.all(
        pids.map(async (pid) => {
          if (Number(pid) === process.pid) return false;
          const env = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
          return env.split('\0').includes(mark) && end(Number(pid));
        }),
      )
    ).filter(Boolean);
    if (found.length === 0) return;
  }
}

function end(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    // it ended by itself
    return false;
  }
}
