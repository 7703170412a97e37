/**
 * The reading side of GitHub: the git binary on a bare partial clone per repository (GIT-1…GIT-5).
 * Reads cost no REST quota and know every commit, path, mode and blob id. The code of a pull request
 * is data here: no work tree, no hooks, no filters, no submodules.
 */
import { pathKey } from '../domain/path.ts';
import { RepositoryCache } from './git/cache.ts';
import { GIT_LIMITS, type GitLimits, type Remote } from './git/command.ts';
import { readGroup } from './git/group.ts';
import { fetchMissing, missingObjects, readEntries, readObjects, type TreeEntry } from './git/objects.ts';
import { readPull } from './git/pull.ts';
import { pairSimilar } from './git/renames.ts';
import type { GitReader } from './port/git.ts';

/** How the reader works. */
export interface GitReaderSettings {
  /** Folder of the caches; made when it is not there, may be deleted at any time. */
  readonly directory: string;
  /** What git inherits, of GIT_INHERITED; default: a PATH of the usual places. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly limits?: Partial<GitLimits>;
}

/** The reader by the git binary, version 2.38 or newer; one cache per repository id. */
export function createGitReader(settings: GitReaderSettings): GitReader {
  const kept = {
    directory: settings.directory,
    environment: settings.environment ?? {
      PATH: '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/homebrew/bin',
    },
    limits: { ...GIT_LIMITS, ...settings.limits },
  };
  const caches = new Map<string, RepositoryCache>();
  const cacheOf = (repositoryId: string): RepositoryCache => {
    const known = caches.get(repositoryId);
    if (known !== undefined) return known;
    const made = new RepositoryCache(kept, repositoryId);
    caches.set(repositoryId, made);
    return made;
  };
  /** Runs a read; a cache that somebody deleted or a crash broke is rebuilt once. */
  const reading = async <T>(
    repositoryId: string,
    work: (cache: RepositoryCache) => Promise<T>,
  ): Promise<T> => {
    const cache = cacheOf(repositoryId);
    return cache.exclusive(async () => {
      try {
        return await work(cache);
      } catch (error) {
        if (await cache.sound()) throw error;
        await cache.remove();
        return work(cache);
      }
    });
  };
  const entriesAt = async (
    cache: RepositoryCache,
    remote: Remote,
    commit: string,
    paths: Parameters<typeof readEntries>[2],
  ): Promise<(TreeEntry | null)[]> => {
    await cache.ensure(commit);
    if ((await missingObjects(cache, [commit])).length > 0) await cache.fetch(remote, [commit], 1);
    return readEntries(cache, commit, paths);
  };

  return {
    readPull: (input) =>
      reading(input.repository.id, (cache) =>
        readPull(
          cache,
          { url: input.cloneUrl, token: input.token },
          {
            pull: input.pull,
            head: input.head,
            base: input.base,
            mergeBase: input.mergeBase,
            commits: input.commits ?? null,
          },
        ),
      ),

    readGroup: (input) =>
      reading(input.repository.id, (cache) =>
        readGroup(cache, { url: input.cloneUrl, token: input.token }, input),
      ),

    readBlobs: (repository, cloneUrl, token, oids) =>
      reading(repository.id, async (cache) => {
        const wanted = [...new Set(oids)];
        const [first] = wanted;
        if (first === undefined) return new Map();
        await cache.ensure(first);
        await fetchMissing(cache, { url: cloneUrl, token }, wanted);
        const objects = await readObjects(cache, wanted);
        return new Map(objects.flatMap((o) => (o?.type === 'blob' ? [[o.oid, o.bytes] as const] : [])));
      }),

    readPath: (repository, cloneUrl, token, commit, path) =>
      reading(repository.id, async (cache) => {
        const remote = { url: cloneUrl, token };
        const [entry] = await entriesAt(cache, remote, commit, [path]);
        if (entry === null || entry === undefined || !isBlob(entry.mode)) return null;
        await fetchMissing(cache, remote, [entry.oid]);
        const [object] = await readObjects(cache, [entry.oid]);
        return object?.bytes ?? null;
      }),

    readEntries: (repository, cloneUrl, token, commit, paths) =>
      reading(repository.id, async (cache) => {
        const entries = await entriesAt(cache, { url: cloneUrl, token }, commit, paths);
        return new Map(
          paths.flatMap((path, i) => {
            const entry = entries[i];
            return entry === null || entry === undefined ? [] : [[pathKey(path), entry] as const];
          }),
        );
      }),

    pairSimilar: (repository, cloneUrl, token, gone, came) =>
      reading(repository.id, (cache) => pairSimilar(cache, { url: cloneUrl, token }, gone, came)),

    isAncestor: (repository, ancestor, commit) =>
      reading(repository.id, async (cache) => {
        if (!(await cache.present())) return null;
        if ((await missingObjects(cache, [ancestor, commit])).length > 0) return null;
        const told = await cache.read(['merge-base', '--is-ancestor', ancestor, commit], undefined, [0, 1]);
        if (told.exit === 0) return true;
        // what lies behind a cut that `ancestor` does not share is not known here
        const cut = await cache.shallow();
        if (cut.size === 0) return false;
        const own = await cache.read(['rev-list', commit, `^${ancestor}`]);
        return own.stdout
          .toString('latin1')
          .split('\n')
          .some((oid) => cut.has(oid))
          ? null
          : false;
      }),
  };
}

/** A file or a symlink (whose blob is the link's text); never a folder or a submodule. */
function isBlob(mode: string): boolean {
  return mode === '100644' || mode === '100755' || mode === '120000';
}
