/**
 * Runs a program in a process group of its own and always ends it (ACT-5): TERM to the group, two
 * seconds, KILL; the run is over only when the process has closed. Nothing of our environment
 * is handed on but what is named.
 */
import { spawn } from 'node:child_process';

/** How a program ended; `stdout` is whole unless `truncated`. */
export type Exit = Readonly<{
  code: number | null;
  signal: string | null;
  /** Error code of the operating system when it could not be started (`ENOENT`). */
  notStarted: string | null;
  stdout: Buffer;
  truncated: boolean;
  /** The end of standard error, at most 8000 characters: redact before cutting it shorter. */
  stderr: string;
  timedOut: boolean;
  aborted: boolean;
  ms: number;
}>;

const KILL_AFTER_MS = 2000;
/** After KILL, until its pipes are no longer waited for: what left the group may hold them for ever. */
const FORSAKE_AFTER_MS = 1000;
const STDERR_KEPT = 8000;
/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Runs `argv` and never throws; `timeoutMs` counts from the start. */
export function runProgram(options: {
  argv: readonly [string, ...string[]];
  cwd: string;
  env: Readonly<Record<string, string>>;
  input?: string | Buffer;
  timeoutMs: number;
  signal: AbortSignal;
  maxStdout: number;
  /** Another user to run as, without any other group; only root can. */
  user?: { uid: number; gid: number };
  /** Ends a program that printed more than `maxStdout`: nothing it says counts any more. */
  endWhenFull?: boolean;
}): Promise<Exit> {
  const from = performance.now();
  return new Promise((resolve) => {
    const [file, ...args] = options.argv;
    const out: Buffer[] = [];
    let size = 0;
    let err = '';
    let notStarted: string | null = null;
    let timedOut = false;
    let killTimer: NodeJS.Timeout | null = null;
    let forsakeTimer: NodeJS.Timeout | null = null;
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      ...options.user,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
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
        forsakeTimer = setTimeout(() => {
          child.stdout.destroy();
          child.stderr.destroy();
        }, FORSAKE_AFTER_MS);
      }, KILL_AFTER_MS);
    };
    const timer = setTimeout(
      () => {
        timedOut = true;
        end();
      },
      Math.min(options.timeoutMs, LONGEST_TIMER_MS),
    );
    if (options.signal.aborted) end();
    options.signal.addEventListener('abort', end, { once: true });
    child.on('error', (error: NodeJS.ErrnoException) => {
      notStarted = error.code ?? 'UNKNOWN';
      if (child.pid === undefined) finish(null, null);
    });
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= options.maxStdout) out.push(chunk);
      else if (options.endWhenFull === true) end();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      err = (err + chunk.toString('utf8')).slice(-STDERR_KEPT);
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
    // a grandchild may hold the pipes open after its parent left: the whole group has to go
    child.on('exit', end);
    child.on('close', finish);

    let finished = false;
    function finish(code: number | null, signal: NodeJS.Signals | null): void {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      if (killTimer !== null) clearTimeout(killTimer);
      if (forsakeTimer !== null) clearTimeout(forsakeTimer);
      options.signal.removeEventListener('abort', end);
      kill('SIGKILL');
      resolve({
        code,
        signal,
        notStarted,
        stdout: Buffer.concat(out),
        truncated: size > options.maxStdout,
        stderr: err.trim(),
        timedOut,
        aborted: options.signal.aborted,
        ms: Math.round(performance.now() - from),
      });
    }
  });
}
