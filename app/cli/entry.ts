/** What a command of the command line is, and how it refuses a wrong call. */
import { createLog } from '../server/log.ts';

/** A wrong call: the command's usage is shown on standard error, and the process ends with `code`. */
export class Usage extends Error {
  override readonly name = 'Usage';
  /** 3, but for commands whose own answers use it. */
  readonly code: number;
  constructor(message: string, code = 3) {
    super(message);
    this.code = code;
  }
}

/** A command, with all that `--help` and docs/command-line.md say of it. */
export interface Entry {
  /** Each way to call it, without `countersign`. */
  readonly usage: readonly string[];
  /** What it does, as words that go on from its name. */
  readonly what: string;
  /** Flag and meaning. */
  readonly options?: readonly (readonly [flag: string, means: string])[];
  /** Its exit codes where they are not 0 done, 1 refused or failed, 3 a wrong call. */
  readonly exits?: readonly (readonly [code: number, means: string])[];
  /** Resolves to the exit code, or to null while the process goes on. */
  readonly run: (args: readonly string[]) => Promise<number | null>;
}

/** Refuses any argument. */
export function none(args: readonly string[]): void {
  if (args.length > 0) throw new Usage(`no arguments are taken: ${args.join(' ')}`);
}

/** What `parse` gives; what it throws is a wrong call. */
export function read<T>(parse: () => T, code = 3): T {
  try {
    return parse();
  } catch (error) {
    throw new Usage((error as Error).message, code);
  }
}

/** A log that says nothing: commands print their answer and nothing else. */
export function quiet() {
  return createLog('silent');
}
