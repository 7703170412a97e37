import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

// facts/github.md §8: SIGINT, 7.5 s, SIGTERM, 2.5 s, kill.
const AFTER_INTERRUPT = 7500;
const AFTER_TERMINATE = 2500;

/** Starts a step's process in a group of its own, with no more environment than it is given. */
export function startProcess(
  file: string,
  args: readonly string[],
  options: { cwd: string; env: Readonly<Record<string, string>>; onLine: (line: string) => void },
): { process: ChildProcess; ended: Promise<number> } {
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', options.onLine);
  const ended = new Promise<number>((resolve) => {
    child.on('error', (error) => {
      options.onLine(`##[error]${error.message}`);
      resolve(127);
    });
    child.on('close', (code) => resolve(code ?? 1));
    // What a step left behind keeps the pipes open: the runner cleans orphans up when the step ends.
    child.on('exit', () => killGroup(child));
  });
  return { process: child, ended };
}

/** Ends a process as the runner does on cancel. */
export async function cancelProcess(child: ChildProcess): Promise<void> {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGINT');
  if (await within(gone, AFTER_INTERRUPT)) return;
  child.kill('SIGTERM');
  if (await within(gone, AFTER_TERMINATE)) return;
  killGroup(child);
}

/** Kills a process and everything it started, at once: a runner that is lost. */
export function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing of the group is left.
  }
}

async function within(event: Promise<void>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const result = await Promise.race([event.then(() => true), late]);
  clearTimeout(timer);
  return result;
}
