/** A merge group read from the cache, and the merge that git itself makes of its members (GAT-5). */
import { Fault } from '../../errors.ts';
import type { GroupReading } from '../port/git.ts';
import type { RepositoryCache } from './cache.ts';
import type { Remote } from './command.ts';
import { fetchMissing, readObjects } from './objects.ts';
import { parseRaw } from './parse.ts';
import { readPull } from './pull.ts';

/** What is asked for: see `GitReader.readGroup`. */
export interface GroupRequest {
  readonly head: string;
  readonly base: string;
  readonly members: readonly { readonly pull: string; readonly head: string }[];
}

/** Most blobs that a merge may need; past them the group is known by content alone. */
const MOST_BLOBS = 20_000;
const WHO = ['-c', 'user.name=countersign', '-c', 'user.email=countersign@localhost'];

/** Reads a group; members whose heads cannot be had leave `merged` null, the group's own commit never. */
export async function readGroup(
  cache: RepositoryCache,
  remote: Remote,
  { head, base, members }: GroupRequest,
): Promise<GroupReading> {
  const reading = await readPull(cache, remote, {
    pull: 'group',
    source: head,
    head,
    base,
    mergeBase: base,
    commits: null,
  });
  if (reading.mergeBase !== base)
    throw new Fault('no_merge_base', `${base} is no ancestor of the group's commit ${head}`);
  const tree = await treeOf(cache, head);
  return { reading, tree, merged: await mergeAll(cache, remote, base, members) };
}

/** The tree of the clean merge of heads onto a base, one after the other; null where one conflicts or is not to be had. */
async function mergeAll(
  cache: RepositoryCache,
  remote: Remote,
  base: string,
  members: readonly { readonly pull: string; readonly head: string }[],
): Promise<string | null> {
  if (members.length === 0) return null;
  let onto = base;
  let tree: string | null = null;
  try {
    for (const { pull, head } of members) {
      // brings the history down to where both part, without which git would merge from a wrong start
      await readPull(cache, remote, { pull, source: head, head, base, mergeBase: null, commits: null });
      tree = await mergeTree(cache, remote, onto, head);
      if (tree === null) return null;
      const made = ['commit-tree', tree, '-p', onto, '-p', head, '-m', 'merge'];
      onto = (await cache.read([...WHO, ...made])).stdout.toString('latin1').trim();
    }
  } catch (error) {
    if (error instanceof Fault && (error.code === 'git_unavailable' || error.code === 'no_merge_base'))
      return null;
    throw error;
  }
  return tree;
}

/** The tree of a clean merge of two commits, without a work tree; null on any conflict. */
export async function mergeTree(
  cache: RepositoryCache,
  remote: Remote,
  ours: string,
  theirs: string,
): Promise<string | null> {
  const found = await cache.read(['merge-base', '--all', ours, theirs], undefined, [0, 1]);
  const bases = found.stdout.toString('latin1').split('\n').filter(Boolean);
  if (bases.length === 0) return null;
  const blobs = new Set<string>();
  for (const base of bases)
    for (const side of [ours, theirs])
      for (const oid of await changedBlobs(cache, base, side)) blobs.add(oid);
  if (blobs.size > MOST_BLOBS) return null;
  await fetchMissing(cache, remote, [...blobs]);
  // exit 1: it conflicts; the first line is the tree in either case
  const merged = await cache.read(
    ['merge-tree', '--write-tree', '--no-messages', ours, theirs],
    undefined,
    [0, 1],
  );
  if (merged.exit !== 0) return null;
  return merged.stdout.toString('latin1').split('\n', 1)[0]?.trim() ?? null;
}

/** Both sides' blobs of what differs between two commits. */
async function changedBlobs(cache: RepositoryCache, base: string, side: string): Promise<string[]> {
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', base, side, '--'];
  const { stdout } = await cache.read(args);
  return parseRaw(stdout).flatMap((change) => [
    ...(change.blobBase === null || change.modeBase === '160000' ? [] : [change.blobBase]),
    ...(change.blobHead === null || change.modeHead === '160000' ? [] : [change.blobHead]),
  ]);
}

async function treeOf(cache: RepositoryCache, commit: string): Promise<string> {
  const [tree] = await readObjects(cache, [`${commit}^{tree}`]);
  if (tree == null) throw new Fault('git_unavailable', `commit ${commit} is not here`, { retryable: true });
  return tree.oid;
}
