/** Real child processes of TypeScript files under test/processes. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

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

/**
 * Starts `test/processes/<name>.ts` with arguments, and with this environment instead of the test's.
 * It runs in one process, so that a kill ends the program itself.
 */
export function startChild(name: string, args: readonly string[], env = process.env): Child {
  const file = fileURLToPath(new URL(`../processes/${name}.ts`, import.meta.url));
  // the loader and not its command line: that would be a parent, and killing it would leave the program
  const loader = createRequire(import.meta.url).resolve('tsx');
  const child = spawn(process.execPath, ['--import', loader, file, ...args], {
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
