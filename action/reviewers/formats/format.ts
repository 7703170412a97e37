/** What every output format of a command is read into (REV-1a). */
import type { ReviewerSpec } from '../../../app/protocol/runner.ts';
import type { RawFinding } from '../reviewer.ts';

/** What a parser needs to know of the file that was given to the command. */
export type ParseContext = Readonly<{
  /** The working directory, with symbolic links resolved. */
  dir: string;
  /** Whether a path below the working directory is the reviewed file. */
  isReviewed: (path: string) => boolean;
  lines: readonly string[];
  lens: string;
  severity: NonNullable<ReviewerSpec['command']>['severity'];
}>;

/** A parsed output; `reported` counts everything the tool raised, placed or not. */
export type Parsed =
  | Readonly<{ ok: true; findings: readonly RawFinding[]; unplaced: readonly string[]; reported: number }>
  | Readonly<{ ok: false; detail: string }>;

/** Reads the whole of standard output, or says why it is not a complete document of its format. */
export type Parser = (stdout: string, context: ParseContext) => Parsed;
