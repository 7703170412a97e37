/**
 * Commits become blocks (BLK-1…BLK-4). Pure: the commits of a head and the blocks known so far give
 * the blocks of that head, each with an id that stays over rewrites.
 *
 * | status | means | becomes |
 * |---|---|---|
 * | `open` | its commits are in the head | `dropped` when none is, `passed` or `failed` by its verdict |
 * | `waiting` | what it comes `After` is not done | `open` |
 * | `awaiting_human_check` | only a person is missing | `passed` |
 * | `passed` `failed` | its verdict | `open` on a push |
 * | `dropped` | no commit of it is in the head | `open` when they come back |
 */
import { createHash } from 'node:crypto';
import { type Group, groupCommits, subjectOf } from './block/group.ts';
import { matchGroups, namedIdentity } from './block/match.ts';
import { blockSlug, type Declared, readDeclared, type Trailer } from './block/trailers.ts';
import type { WirePath } from './path.ts';

/** A commit as far as blocks need it; the git reader's `Commit` is one. */
export interface BlockCommit {
  readonly oid: string;
  readonly parents: readonly string[];
  readonly authorEmail: string;
  readonly authorTime: number;
  readonly message: string;
  readonly trailers: readonly Trailer[];
  readonly changes: readonly {
    readonly path: WirePath;
    readonly modeBase: string | null;
    readonly modeHead: string | null;
    readonly blobBase: string | null;
    readonly blobHead: string | null;
  }[];
}

/** How the first commit of a block is found again after a rewrite. */
export interface Seed {
  readonly oid: string;
  /** Digest of its raw diff; null when it changes nothing. */
  readonly diff: string | null;
  /** Digest of author e-mail, author time, subject and ordinal; null where no row says. */
  readonly author: string | null;
}

/** What was known of a block before. */
export interface PriorBlock {
  readonly id: string;
  readonly identity: string;
  readonly named: boolean;
  readonly open: boolean;
  readonly attempt: number;
  readonly commits: readonly string[];
  readonly seed: Seed | null;
  /** Every commit it ever had; absent: the present ones. */
  readonly past?: readonly string[];
}

/** A block of the present head. */
export interface Block {
  readonly id: string;
  /** SHA-256 of what it was first recognised by; stays over rewrites. */
  readonly identity: string;
  readonly title: string;
  readonly named: boolean;
  /** What its `Block:` says, which others may come `After`; its id is another where that was taken. */
  readonly slug: string | null;
  /** Whether it is a merge commit, which owns only what differs from all parents (BLK-1). */
  readonly merge: boolean;
  readonly attempt: number;
  readonly commits: readonly string[];
  readonly seed: Seed;
  readonly declared: Declared;
  /** Whether it was known, and whether it was dropped then. */
  readonly known: 'new' | 'open' | 'dropped';
}

/** Ids that no block can have: they name the paths that no block owns. */
export const PSEUDO_BLOCKS = ['guarded', 'unowned'] as const;

/** The blocks of a head in order of their first commit. `prior` are all blocks the run ever had, in order of position. */
export function mapBlocks(commits: readonly BlockCommit[], prior: readonly PriorBlock[]): Block[] {
  const { groups, matches } = matchGroups(groupCommits(commits), prior);
  const taken = new Set<string>([...PSEUDO_BLOCKS, ...prior.map((block) => block.id)]);
  const numbers = new Map<string, number>();
  // named blocks are asked for by name, so they choose first
  const ids = new Map<Group, string>();
  for (const named of [true, false]) {
    for (const group of groups) {
      if ((group.slug !== null) !== named) continue;
      ids.set(group, matches.get(group)?.id ?? freeId(group, taken, numbers));
    }
  }
  return groups.map((group) => toBlock(group, ids.get(group) ?? '', matches.get(group)));
}

/** The slug of a subject: lower-case words with hyphens, at most 60 characters; empty when nothing is left. */
export function slugOf(subject: string): string {
  return subject
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 60)
    .replace(/^-+|-+$/g, '');
}

function toBlock(group: Group, id: string, prior: PriorBlock | undefined): Block {
  const [first] = group.commits;
  const commits = group.commits.map((commit) => commit.oid);
  const declared = readDeclared(
    group.commits
      .filter((commit) => blockSlug(commit.trailers).slug !== null)
      .map((commit) => commit.trailers),
  );
  // a person who writes `After:` or `/claim` has to know what it is called here
  const taken =
    group.slug === null || group.slug === id
      ? []
      : [{ code: 'slug_taken' as const, detail: `Block: ${group.slug} is ${id} here` }];
  const identity =
    prior?.identity ??
    (group.slug === null
      ? createHash('sha256').update(`commit\0${group.seed.oid}\0${group.seed.author}`).digest('hex')
      : namedIdentity(group.slug));
  return {
    id,
    identity,
    title: first === undefined ? id : subjectOf(first.message) || id,
    named: group.slug !== null,
    slug: group.slug,
    merge: group.commits.length === 1 && (first?.parents.length ?? 0) > 1,
    attempt: prior === undefined ? 1 : attemptOf(prior, commits),
    commits,
    seed: group.seed,
    declared: { ...declared, notes: [...taken, ...group.notes, ...declared.notes].slice(0, 20) },
    known: prior === undefined ? 'new' : prior.open ? 'open' : 'dropped',
  };
}

/** BLK-4: one more when commits went and others took their place; new ones on top change nothing. */
function attemptOf(prior: PriorBlock, commits: readonly string[]): number {
  const now = new Set(commits);
  const before = new Set(prior.commits);
  const replaced = prior.commits.some((oid) => !now.has(oid)) && commits.some((oid) => !before.has(oid));
  return prior.attempt + (replaced ? 1 : 0);
}

function freeId(group: Group, taken: Set<string>, numbers: Map<string, number>): string {
  const wanted =
    group.slug ?? (slugOf(subjectOf(group.commits[0]?.message ?? '')) || group.seed.oid.slice(0, 7));
  let id = wanted;
  // goes on where the last of this name ended: ten thousand "wip" are not counted from two each
  let n = numbers.get(wanted) ?? 2;
  for (; taken.has(id); n++) id = `${wanted.slice(0, 63 - String(n).length)}-${n}`;
  numbers.set(wanted, n);
  taken.add(id);
  return id;
}
