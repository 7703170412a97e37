/** One pull request read from the cache: complete or not at all (GIT-1…GIT-5, case 14). */
import { Fault } from '../../errors.ts';
import type { Change, Commit, PullReading } from '../port/git.ts';
import { type RepositoryCache, WHOLE_HISTORY } from './cache.ts';
import type { Remote } from './command.ts';
import { missingObjects } from './objects.ts';
import { LOG_FORMAT, parseLog, parseRaw } from './parse.ts';
import { pairRenames } from './renames.ts';

/** What is asked for: see `GitReader.readPull`. */
export interface PullRequest {
  readonly pull: string;
  readonly head: string;
  readonly base: string;
  readonly mergeBase: string | null;
  /** How many commits GitHub counts; null: not told. */
  readonly commits: number | null;
  /** Where the head is fetched from; default: the pull request's ref. */
  readonly source?: string;
}

/** What the cache holds of a pull request: all, or why not. */
type Finding =
  | {
      readonly kind: 'complete';
      readonly mergeBase: string;
      readonly commits: Commit[];
      readonly cut: ReadonlySet<string>;
    }
  | { readonly kind: 'absent' | 'shallow' }
  | { readonly kind: 'unrelated'; readonly whole: boolean };

/** Depth of a first fetch when nobody told how many commits there are. */
const FIRST_DEPTH = 50;

/**
 * Reads a pull request. What the cache lacks is fetched, deeper each time, until every listed commit
 * has its parents here; a list that could still lack the base's history is never answered. Throws
 * `git_unavailable` (retryable) or `no_merge_base`.
 */
export async function readPull(
  cache: RepositoryCache,
  remote: Remote,
  request: PullRequest,
): Promise<PullReading> {
  await cache.ensure(request.head);
  let depth = 0;
  let counted = false;
  for (;;) {
    const found = await inspect(cache, request);
    if (found.kind === 'complete') {
      // a count that differs may be GitHub's lag or our cut history: one deeper look decides
      const doubt =
        request.commits !== null && found.commits.length !== request.commits && found.cut.size > 0;
      if (!doubt || counted) return finish(cache, remote, request, found);
      counted = true;
    }
    if (found.kind === 'unrelated' && (found.whole || depth === WHOLE_HISTORY)) {
      throw new Fault('no_merge_base', `${request.head} and ${request.base} have no common commit`);
    }
    if ((found.kind === 'absent' && depth > 0) || depth === WHOLE_HISTORY) {
      throw new Fault('git_unavailable', `the head ${request.head} is not fetchable yet`, {
        retryable: true,
      });
    }
    depth = deeper(depth, request.commits);
    await fetchPull(cache, remote, request, depth);
  }
}

function deeper(depth: number, commits: number | null): number {
  // one more than the commits: the merge base itself
  if (depth === 0) return (commits ?? FIRST_DEPTH) + 1;
  const next = depth * 8;
  return next > 20_000 ? WHOLE_HISTORY : next;
}

async function fetchPull(
  cache: RepositoryCache,
  remote: Remote,
  request: PullRequest,
  depth: number,
): Promise<void> {
  const ours = `refs/countersign/${request.pull}`;
  const source = request.source ?? `refs/pull/${request.pull}/head`;
  const refspecs = [`+${source}:${ours}/head`, `+${request.base}:${ours}/base`];
  if (request.mergeBase !== null && request.mergeBase !== request.base) {
    refspecs.push(`+${request.mergeBase}:${ours}/merge-base`);
  }
  await cache.fetch(remote, refspecs, depth);
}

async function inspect(cache: RepositoryCache, request: PullRequest): Promise<Finding> {
  const ids = [request.head, request.base, ...(request.mergeBase === null ? [] : [request.mergeBase])];
  const missing = await missingObjects(cache, ids);
  if (missing.length > 0) return { kind: 'absent' };
  const before = await cache.shallow();
  // GitHub's merge base where git confirms that the head descends from it, else git's own
  const told = request.mergeBase === null ? null : await inspectRange(cache, request, request.mergeBase);
  if (told !== null && told.kind !== 'foreign') return told;
  const own = await cache.read(['merge-base', request.base, request.head], undefined, [0, 1]);
  if (own.exit !== 0) return { kind: 'unrelated', whole: before.size === 0 };
  const found = await inspectRange(cache, request, own.stdout.toString('latin1').trim());
  return found.kind === 'foreign' ? { kind: 'shallow' } : found;
}

/** The commits from a merge base to the head; `foreign`: the head does not descend from it. */
async function inspectRange(
  cache: RepositoryCache,
  request: PullRequest,
  mergeBase: string,
): Promise<Finding | { readonly kind: 'foreign' }> {
  const before = await cache.shallow();
  const { stdout } = await cache.read([
    'log',
    '-z',
    '--reverse',
    '--topo-order',
    '--raw',
    '-c',
    '--no-renames',
    '--no-abbrev',
    '--no-mailmap',
    '--encoding=UTF-8',
    `--format=${LOG_FORMAT}`,
    `${mergeBase}..${request.head}`,
    '--',
  ]);
  const commits = parseLog(stdout);
  const cut = await cache.shallow();
  // a commit without its parents here: what lies behind it could be the base's own
  if (commits.some((commit) => before.has(commit.oid) || cut.has(commit.oid))) return { kind: 'shallow' };
  // every way from the head to the merge base ends in a commit of the list
  const descends = mergeBase === request.head || commits.some((commit) => commit.parents.includes(mergeBase));
  return descends ? { kind: 'complete', mergeBase, commits, cut } : { kind: 'foreign' };
}

async function finish(
  cache: RepositoryCache,
  remote: Remote,
  request: PullRequest,
  found: { readonly mergeBase: string; readonly commits: Commit[] },
): Promise<PullReading> {
  const { stdout } = await cache.read([
    'diff-tree',
    '-r',
    '-z',
    '--raw',
    '--no-renames',
    '--no-abbrev',
    found.mergeBase,
    request.head,
    '--',
  ]);
  const files: Change[] = parseRaw(stdout);
  return {
    head: request.head,
    base: request.base,
    mergeBase: found.mergeBase,
    commits: found.commits,
    files,
    renames: await pairRenames(cache, remote, found.mergeBase, request.head, files),
  };
}
