import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const PLAIN = /^refs(?:\/\w[\w.-]*)+$/;
/** What git refuses in a name, or takes for its own. */
const ODD = /\.\.|\.(?:lock)?(?:\/|$)/;

const isPlain = (name: string) => PLAIN.test(name) && !ODD.test(name);
const hasPacked = (directory: string) => existsSync(join(directory, 'packed-refs'));

/** The id in a ref's own file; null where there is no such ref, the name itself where git has to say. */
export async function readRef(directory: string, name: string): Promise<string | null> {
  if (!isPlain(name)) return name;
  const written = await readFile(join(directory, name), 'utf8').catch(() => null);
  if (written === null) return hasPacked(directory) ? name : null;
  return /^[0-9a-f]{40,64}\n$/.test(written) ? written.trim() : name;
}

/**
 * Points a ref at a commit that is here, as git does, under its lock; false where git has to: an odd name,
 * packed refs, another ref in the way, another writer.
 */
export async function writeRef(directory: string, ref: string, id: string): Promise<boolean> {
  if (!isPlain(ref) || hasPacked(directory)) return false;
  const file = join(directory, ref);
  const lock = `${file}.lock`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(lock, `${id}\n`, { flag: 'wx' });
  } catch {
    return false;
  }
  return rename(lock, file).then(
    () => true,
    () => rm(lock).then(() => false),
  );
}
