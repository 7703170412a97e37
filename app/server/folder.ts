/** The data directory: made step by step and tried before anything starts in it. */
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '../errors.ts';

/**
 * Makes a directory with its parents and sees to it that files can be made in it; throws `config_value`
 * naming the part that does not let us. One level at a time: Node's recursive mkdir never ends on a file
 * system that answers ENOENT for a parent that is there, as /proc does.
 */
export function openFolder(folder: string): void {
  try {
    if (!isThere(folder)) {
      const parent = dirname(folder);
      if (parent !== folder) openFolder(parent);
      make(folder);
    }
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    throw refused(folder, (cause as NodeJS.ErrnoException).code ?? 'unknown', cause);
  }
}

function isThere(folder: string): boolean {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found !== undefined && !found.isDirectory()) throw refused(folder, 'it is no directory');
  return found !== undefined;
}

function make(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    // another process was faster
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function refused(folder: string, why: string, cause?: unknown): Fault {
  return new Fault(
    'config_value',
    `COUNTERSIGN_DATA_DIR cannot be used: ${folder} (${why}); give a directory that this user may write to`,
    { cause },
  );
}
