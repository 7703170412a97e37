/** Real child processes of the programs under test/processes, and of the app's own. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { join } from 'node:path';
import { inject } from 'vitest';

/** A child process with what it printed so far. */
export interface Child {
  readonly process: ChildProcessWithoutNullStreams;
  /** Complete lines of standard output so far. */
  readonly lines: string[];
  /** Standard error so far. */
  errors(): string;
  /** Resolves with the exit code, or the signal's name. */
  readonly ended: Promise<number | string>;
  /** The next line of standard output that was not asked for yet; rejects when the process ends before. */
  line(): Promise<string>;
  /** kill -9. */
  kill(): void;
}

/** The file to start with Node: `main` or `cli` of the app, or a name under test/processes. */
export function programFile(name: string): string {
  const { folder, failure } = inject('programs');
  if (failure !== null) throw new Error(`the programs could not be bundled: ${failure}`);
  return join(folder, `${name}.mjs`);
}

/**
 * Starts `test/processes/<name>.ts` with arguments, and with this environment instead of the test's.
 * It runs in one process, so that a kill ends the program itself.
 */
export function startChild(name: string, args: readonly string[], env = process.env): Child {
  const child = spawn(process.execPath, [programFile(name), ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env,
  });
  const lines: string[] = [];
  let rest = '';
  let errors = '';
  let asked = 0;
  let wake = () => {};
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
    wake();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdin.on('error', () => {});
  let over = false;
  const ended = new Promise<number | string>((done) => {
    child.once('close', (code, signal) => {
      over = true;
      done(code ?? signal ?? 'unknown');
      wake();
    });
  });
  return {
    process: child,
    lines,
    errors: () => errors,
    ended,
    async line() {
      const index = asked++;
      while (lines[index] === undefined) {
        if (over) throw new Error(`${name} ended before line ${index + 1}:\n${errors}`);
        await new Promise<void>((done) => {
          wake = done;
        });
      }
      return lines[index];
    },
    kill: () => {
      child.kill('SIGKILL');
    },
  };
}
