/** Rename pairs (GIT-4): same blob, else similarity of at least 50 % up to 1,000 candidates a side. They group, never hide. */
import { decodePath, encodePath, pathKey } from '../../domain/path.ts';
import type { Change, PullReading } from '../port/git.ts';
import type { RepositoryCache } from './cache.ts';
import type { Remote } from './command.ts';
import { fetchMissing, missingObjects } from './objects.ts';
import { parseRenames } from './parse.ts';

const CANDIDATES = 1000;

/** Pairs of a deleted and an added path; each path is in at most one. */
export async function pairRenames(
  cache: RepositoryCache,
  remote: Remote,
  mergeBase: string,
  head: string,
  files: readonly Change[],
): Promise<PullReading['renames']> {
  const exact = pairExact(files);
  const taken = new Set(exact.flatMap((pair) => [pathKey(pair.from), pathKey(pair.to)]));
  const left = files.filter((file) => !taken.has(pathKey(file.path)));
  const gone = left.filter((file) => file.status === 'D' && isFile(file.modeBase));
  const added = left.filter((file) => file.status === 'A' && isFile(file.modeHead));
  if (gone.length === 0 || added.length === 0 || gone.length > CANDIDATES || added.length > CANDIDATES)
    return exact;

  // git compares contents itself, so they must be here: one batch for both sides
  const blobs = [...gone.map((file) => file.blobBase), ...added.map((file) => file.blobHead)];
  await fetchMissing(
    cache,
    remote,
    blobs.filter((oid) => oid !== null),
  );
  const { stdout } = await cache.read([
    'diff-tree',
    '-r',
    '-z',
    '--raw',
    '--no-abbrev',
    '-M50%',
    `-l${CANDIDATES}`,
    mergeBase,
    head,
    '--',
  ]);
  const similar = parseRenames(stdout)
    .filter((pair) => !taken.has(pair.from.toString('latin1')) && !taken.has(pair.to.toString('latin1')))
    .map((pair) => ({ from: encodePath(pair.from), to: encodePath(pair.to), exact: false }));
  return [...exact, ...similar];
}

/** Pairs of equal blobs: same file name first, then order of paths, so that the answer never varies. */
function pairExact(files: readonly Change[]): { from: Change['path']; to: Change['path']; exact: boolean }[] {
  const gone = new Map<string, Change[]>();
  for (const file of files) {
    if (file.status !== 'D' || file.blobBase === null || !isFile(file.modeBase)) continue;
    const same = gone.get(file.blobBase);
    if (same === undefined) gone.set(file.blobBase, [file]);
    else same.push(file);
  }
  const pairs: { from: Change['path']; to: Change['path']; exact: boolean }[] = [];
  const waiting: Change[] = [];
  const take = (file: Change, sameName: boolean): boolean => {
    const candidates = gone.get(file.blobHead ?? '') ?? [];
    const at = sameName
      ? candidates.findIndex((candidate) => fileName(candidate) === fileName(file))
      : candidates.length > 0
        ? 0
        : -1;
    const from = candidates[at];
    if (from === undefined) return false;
    candidates.splice(at, 1);
    pairs.push({ from: from.path, to: file.path, exact: true });
    return true;
  };
  for (const file of files) {
    if (file.status === 'A' && isFile(file.modeHead) && !take(file, true)) waiting.push(file);
  }
  for (const file of waiting) take(file, false);
  return pairs;
}

function isFile(mode: string | null): boolean {
  return mode === '100644' || mode === '100755';
}

function fileName(file: Change): string {
  const bytes = decodePath(file.path);
  return bytes.toString('latin1', bytes.lastIndexOf(0x2f) + 1);
}

/** A file of a head by its path and blob. */
export interface HeadFile {
  readonly path: Change['path'];
  readonly blob: string;
}

/**
 * Pairs of similar files of two heads (REV-5), by the measure of `pairRenames`. The blobs are enough:
 * the commit of an earlier head may be gone after a force push. What cannot be had is like nothing.
 */
export async function pairSimilar(
  cache: RepositoryCache,
  remote: Remote,
  gone: readonly HeadFile[],
  came: readonly HeadFile[],
): Promise<{ from: Change['path']; to: Change['path'] }[]> {
  const [first] = gone;
  if (first === undefined || came.length === 0) return [];
  if (gone.length > CANDIDATES || came.length > CANDIDATES) return [];
  await cache.ensure(first.blob);
  const blobs = [...gone, ...came].map((file) => file.blob);
  await fetchMissing(cache, remote, blobs);
  const missing = new Set(await missingObjects(cache, blobs));
  const tree = async (files: readonly HeadFile[], side: string): Promise<string> => {
    // names of our own: git compares contents, and a tree must not hold what a path may be
    const entries = files.flatMap(({ blob }, i) =>
      missing.has(blob) ? [] : [`100644 blob ${blob}\t${side}${i}\0`],
    );
    const { stdout } = await cache.read(['mktree', '-z'], Buffer.from(entries.join('')));
    return stdout.toString('latin1').trim();
  };
  const trees = [await tree(gone, 'g'), await tree(came, 'c')];
  const { stdout } = await cache.read([
    'diff-tree',
    '-r',
    '-z',
    '--raw',
    '--no-abbrev',
    '-M50%',
    `-l${CANDIDATES}`,
    ...trees,
    '--',
  ]);
  return parseRenames(stdout).flatMap(({ from, to }) => {
    const old = gone[Number(from.toString('latin1').slice(1))];
    const now = came[Number(to.toString('latin1').slice(1))];
    return old === undefined || now === undefined ? [] : [{ from: old.path, to: now.path }];
  });
}
