/** What every command is carried out with: the locked run as its verified rows say, who asks, and under what words. */
import type { Reader } from '../../../db/client.ts';
import { listFiles, type StoredFile } from '../../../db/store/file.ts';
import type { Asker } from '../../domain/command/rights.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import type { Actor, Cause } from '../../domain/ledger/row-fields.ts';
import { encodePath, pathKey, type WirePath } from '../../domain/path.ts';
import type { Markdown } from '../../domain/summary/markdown.ts';
import { Refusal, type RefusalCode } from '../../errors.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import type { Judged } from '../judge-run.ts';
import { wholeRows } from '../verify-run.ts';

/** A command's surroundings inside its unit of work. */
export interface Given {
  readonly deps: Deps;
  readonly unit: RunUnit;
  readonly judged: Judged;
  readonly asker: Asker;
  readonly actor: Actor;
  readonly cause: Cause;
  /** The policy's `commands.prefix`. */
  readonly prefix: string;
  /** When the comment was made, GitHub's whole second in milliseconds. */
  readonly commentMs: number;
  /** Whether GitHub answered that nobody else has write, asked only where `people.solo` makes it matter. */
  readonly alone: boolean;
  /** Names the command for jobs that must not be merged with others. */
  readonly name: string;
}

/** A refusal whose words hold names that must stay readable, as code. */
export class Declined extends Refusal {
  readonly says: Markdown;
  constructor(code: RefusalCode, says: Markdown, accepted?: string) {
    super(code, says.text, accepted);
    this.says = says;
  }
}

/** The rows of the run; refused with `conflict` where they do not verify, since nothing may be built on them. */
export async function rowsOf(given: Given): Promise<readonly AnyRow[]> {
  const rows = await wholeRows(given.deps, given.unit.run, { reader: given.unit.tx });
  if (rows === null) throw new Refusal('conflict', 'the ledger of this run does not verify');
  return rows;
}

/** A changed path of the present head. */
export interface ChangedFile {
  readonly file: StoredFile;
  readonly path: WirePath;
  readonly from: WirePath | null;
}

/** The changed paths of the present head by path key. */
export async function changedFiles(reader: Reader, runId: string): Promise<Map<string, ChangedFile>> {
  const files = await listFiles(reader, runId);
  return new Map(
    files.map((file) => {
      const path = encodePath(file.path);
      const from = file.fromPath === null ? null : encodePath(file.fromPath);
      return [pathKey(path), { file, path, from }];
    }),
  );
}

/** Queues what reads the run again and decides its gate again. */
export function readAgain({ unit }: Given): void {
  unit.enqueue('sync-run', { run: unit.run.id }, { key: `sync-run:${unit.run.id}` });
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
}
