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
import { type BlockNote, blockSlug, type Declared, readDeclared, type Trailer } from './block/trailers.ts';
import { decodePath, type WirePath } from './path.ts';

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
  /** Digest of author e-mail, author time, subject and ordinal. */
  readonly author: string;
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
}

/** A block of the present head. */
export interface Block {
  readonly id: string;
  /** SHA-256 of what it was first recognised by; stays over rewrites. */
  readonly identity: string;
  readonly title: string;
  readonly named: boolean;
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

interface Group {
  readonly slug: string | null;
  readonly commits: BlockCommit[];
  readonly notes: BlockNote[];
  seed: Seed;
}

/** The blocks of a head in order of their first commit. `prior` are all blocks the run ever had, in order of position. */
export function mapBlocks(commits: readonly BlockCommit[], prior: readonly PriorBlock[]): Block[] {
  const groups = groupCommits(commits);
  const matches = matchPrior(groups, prior);
  const taken = new Set<string>([...PSEUDO_BLOCKS, ...prior.map((block) => block.id)]);
  // named blocks are asked for by name, so they choose first
  const ids = new Map<Group, string>();
  for (const named of [true, false]) {
    for (const group of groups) {
      if ((group.slug !== null) !== named) continue;
      ids.set(group, matches.get(group)?.id ?? freeId(group, taken));
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

/** The first line of a message. */
export function subjectOf(message: string): string {
  return (message.split('\n', 1)[0] ?? '').trim();
}

function groupCommits(commits: readonly BlockCommit[]): Group[] {
  const groups: Group[] = [];
  const named = new Map<string, Group>();
  const ofCommit = new Map<string, Group>();
  const bySubject = new Map<string, string>();
  const ordinals = new Map<string, number>();
  for (const commit of commits) {
    const { slug, bad } = blockSlug(commit.trailers);
    const target = slug === null ? targetOf(commit, bySubject, ofCommit) : null;
    let group = slug === null ? (target === null ? undefined : ofCommit.get(target)) : named.get(slug);
    const seed = seedOf(commit, ordinals);
    if (group === undefined) {
      group = { slug, commits: [], notes: [], seed };
      groups.push(group);
      if (slug !== null) named.set(slug, group);
    }
    group.commits.push(commit);
    if (bad !== null && group.notes.length < 20) {
      group.notes.push({ code: 'bad_trailer', detail: `Block: ${[...bad].slice(0, 80).join('')}` });
    }
    ofCommit.set(commit.oid, group);
    const subject = subjectOf(commit.message);
    if (!bySubject.has(subject)) bySubject.set(subject, commit.oid);
  }
  return groups;
}

/** The earlier commit of the run that a fixup, squash, amend or revert is of (BLK-2); null: of none. */
function targetOf(
  commit: BlockCommit,
  bySubject: ReadonlyMap<string, string>,
  ofCommit: ReadonlyMap<string, unknown>,
): string | null {
  let subject = subjectOf(commit.message);
  let joined = false;
  for (let fix = FIX.exec(subject); fix !== null; fix = FIX.exec(subject)) {
    joined = true;
    subject = subject.slice(fix[0].length);
  }
  if (joined) {
    const found = bySubject.get(subject);
    if (found !== undefined) return found;
    return /^[0-9a-f]{7,64}$/.test(subject) ? byPrefix(subject, ofCommit) : null;
  }
  const reverted = /^This reverts commit ([0-9a-f]{7,64})\b/m.exec(commit.message)?.[1];
  return reverted === undefined ? null : byPrefix(reverted, ofCommit);
}

const FIX = /^(?:fixup|squash|amend)! /;

function byPrefix(prefix: string, ofCommit: ReadonlyMap<string, unknown>): string | null {
  if (ofCommit.has(prefix)) return prefix;
  for (const oid of ofCommit.keys()) if (oid.startsWith(prefix)) return oid;
  return null;
}

function seedOf(commit: BlockCommit, ordinals: Map<string, number>): Seed {
  const who = JSON.stringify([commit.authorEmail, commit.authorTime, subjectOf(commit.message)]);
  const ordinal = (ordinals.get(who) ?? 0) + 1;
  ordinals.set(who, ordinal);
  return { oid: commit.oid, diff: diffDigest(commit), author: sha256(`author\0${ordinal}\0${who}`) };
}

function diffDigest(commit: BlockCommit): string | null {
  if (commit.changes.length === 0) return null;
  const hash = createHash('sha256');
  for (const change of commit.changes) {
    hash.update(decodePath(change.path));
    hash.update(`\0${change.modeBase} ${change.modeHead} ${change.blobBase} ${change.blobHead}\n`);
  }
  return hash.digest('hex');
}

/** Which known block each group is: named by name, others by their first commit, then by its diff, then by its author. */
function matchPrior(groups: readonly Group[], prior: readonly PriorBlock[]): Map<Group, PriorBlock> {
  const matches = new Map<Group, PriorBlock>();
  const byIdentity = new Map(prior.filter((b) => b.named).map((b) => [b.identity, b]));
  const left = new Set(groups.filter((group) => group.slug === null));
  for (const group of groups) {
    const known = group.slug === null ? undefined : byIdentity.get(namedIdentity(group.slug));
    if (known !== undefined) matches.set(group, known);
  }
  const free = new Set(prior.filter((block) => !block.named && block.seed !== null));
  const keys: ((seed: Seed) => string | null)[] = [(s) => s.oid, (s) => s.diff, (s) => s.author];
  for (const key of keys) {
    const index = new Map<string, PriorBlock[]>();
    for (const block of free) {
      const value = block.seed === null ? null : key(block.seed);
      if (value === null) continue;
      const known = index.get(value);
      if (known === undefined) index.set(value, [block]);
      else known.push(block);
    }
    for (const group of left) {
      const value = key(group.seed);
      const block = value === null ? undefined : index.get(value)?.shift();
      if (block === undefined) continue;
      matches.set(group, block);
      free.delete(block);
      left.delete(group);
    }
  }
  return matches;
}

function toBlock(group: Group, id: string, prior: PriorBlock | undefined): Block {
  const [first] = group.commits;
  const commits = group.commits.map((commit) => commit.oid);
  const declared = readDeclared(
    group.commits
      .filter((commit) => blockSlug(commit.trailers).slug !== null)
      .map((commit) => commit.trailers),
  );
  const identity =
    prior?.identity ??
    (group.slug === null
      ? sha256(`commit\0${group.seed.oid}\0${group.seed.author}`)
      : namedIdentity(group.slug));
  return {
    id,
    identity,
    title: first === undefined ? id : subjectOf(first.message) || id,
    named: group.slug !== null,
    merge: group.commits.length === 1 && (first?.parents.length ?? 0) > 1,
    attempt: prior === undefined ? 1 : attemptOf(prior, commits),
    commits,
    seed: group.seed,
    declared: { ...declared, notes: [...group.notes, ...declared.notes].slice(0, 20) },
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

function freeId(group: Group, taken: Set<string>): string {
  const wanted =
    group.slug ?? (slugOf(subjectOf(group.commits[0]?.message ?? '')) || group.seed.oid.slice(0, 7));
  let id = wanted;
  for (let n = 2; taken.has(id); n++) id = `${wanted.slice(0, 63 - String(n).length)}-${n}`;
  taken.add(id);
  return id;
}

function namedIdentity(slug: string): string {
  return sha256(`named\0${slug}`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
