/** Objects by id and by path (GIT-1): trees are always here, blobs are fetched in one batch when they are wanted. */
import { decodePath, type WirePath } from '../../domain/path.ts';
import { Fault } from '../../errors.ts';
import type { GitObject } from './batch.ts';
import type { RepositoryCache } from './cache.ts';
import type { Remote } from './command.ts';
import { parseTree } from './parse.ts';

/** What lies at a path of a commit. */
export interface TreeEntry {
  readonly mode: string;
  readonly oid: string;
}

/** Objects in the order they were named; null where one is not here. Names are ids or `<id>^{tree}`. */
export async function readObjects(
  cache: RepositoryCache,
  names: readonly string[],
): Promise<(GitObject | null)[]> {
  if (names.length === 0) return [];
  return cache.objects().contents(names);
}

/** Which of these objects are not here. */
export async function missingObjects(cache: RepositoryCache, oids: readonly string[]): Promise<string[]> {
  if (oids.length === 0) return [];
  return cache.objects().missing(oids);
}

/** Fetches those of the objects that are not here; ones the server does not have stay missing. */
export async function fetchMissing(
  cache: RepositoryCache,
  remote: Remote,
  oids: readonly string[],
): Promise<void> {
  const missing = await missingObjects(cache, [...new Set(oids)]);
  if (missing.length === 0) return;
  try {
    await cache.fetchObjects(remote, missing);
  } catch (error) {
    // one unknown id refuses the whole batch: halve it, unless it is the server that is away
    if (!(await cache.reachable(remote))) throw error;
    if (missing.length === 1) return;
    const half = Math.ceil(missing.length / 2);
    await fetchMissing(cache, remote, missing.slice(0, half));
    await fetchMissing(cache, remote, missing.slice(half));
  }
}

/** What lies at each path of a commit, null where nothing does. Walks trees level by level, in bytes. */
export async function readEntries(
  cache: RepositoryCache,
  commit: string,
  paths: readonly WirePath[],
): Promise<(TreeEntry | null)[]> {
  const [root] = await readObjects(cache, [`${commit}^{tree}`]);
  if (root === null || root === undefined) {
    throw new Fault('git_unavailable', `commit ${commit} is not here`, { retryable: true });
  }
  const oidBytes = root.oid.length === 64 ? 32 : 20;
  const trees = new Map<string, ReturnType<typeof parseTree>>();
  trees.set(root.oid, parseTree(root.bytes, oidBytes));
  const walks = paths.map((path) => ({
    segments: decodePath(path).toString('latin1').split('/'),
    depth: 0,
    entry: { mode: '040000', oid: root.oid } as TreeEntry | null,
  }));
  for (;;) {
    const wanted = new Set<string>();
    for (const walk of walks) {
      while (walk.entry !== null && walk.depth < walk.segments.length) {
        if (walk.entry.mode !== '040000') {
          walk.entry = null;
          break;
        }
        const tree = trees.get(walk.entry.oid);
        if (tree === undefined) {
          wanted.add(walk.entry.oid);
          break;
        }
        walk.entry = tree.get(walk.segments[walk.depth] ?? '') ?? null;
        walk.depth++;
      }
    }
    if (wanted.size === 0) return walks.map((walk) => walk.entry);
    const oids = [...wanted];
    const objects = await readObjects(cache, oids);
    objects.forEach((object, i) => {
      if (object === null)
        throw new Fault('git_unavailable', 'a tree is missing in the cache', { retryable: true });
      trees.set(oids[i] ?? '', parseTree(object.bytes, oidBytes));
    });
  }
}
