/** Which commits of a head belong together (BLK-2): by `Block:`, by what they fix up, amend or revert, else alone. */
import { createHash } from 'node:crypto';
import type { BlockCommit, Seed } from '../block.ts';
import { decodePath } from '../path.ts';
import { type BlockNote, blockSlug } from './trailers.ts';

/** Commits that are one block of a head, before it is known which block of the run they are. */
export interface Group {
  readonly slug: string | null;
  readonly commits: BlockCommit[];
  readonly notes: BlockNote[];
  readonly seed: Seed;
  /** Beginning of an id that its first commit fixes up or reverts and that this head lacks; null: none. */
  readonly past: string | null;
}

/** Values by commit id, found by the beginning of one; strangers write those, so a look-up costs no walk over all. */
export class PrefixMap<T> {
  readonly #buckets = new Map<string, { readonly oid: string; readonly value: T }[]>();

  add(oid: string, value: T): void {
    const start = oid.slice(0, SHORTEST);
    const bucket = this.#buckets.get(start);
    if (bucket === undefined) this.#buckets.set(start, [{ oid, value }]);
    else bucket.push({ oid, value });
  }

  /** The first that was added of those whose id begins so; at least seven digits. */
  find(prefix: string): T | undefined {
    return this.#buckets.get(prefix.slice(0, SHORTEST))?.find(({ oid }) => oid.startsWith(prefix))?.value;
  }
}

/** Digits that git abbreviates an id to at the least, and that the patterns below ask for. */
const SHORTEST = 7;

/** The groups of a head's commits, oldest first, in order of their first commit. */
export function groupCommits(commits: readonly BlockCommit[]): Group[] {
  const groups: Group[] = [];
  const named = new Map<string, Group>();
  const ofCommit = new PrefixMap<Group>();
  const bySubject = new Map<string, string>();
  const ordinals = new Map<string, number>();
  for (const commit of commits) {
    const { slug, bad } = blockSlug(commit.trailers);
    const target = slug === null ? targetOf(commit, bySubject) : null;
    let group = slug !== null ? named.get(slug) : target === null ? undefined : ofCommit.find(target.oid);
    const seed = seedOf(commit, ordinals);
    if (group === undefined) {
      group = { slug, commits: [], notes: [], seed, past: target?.oid ?? null };
      groups.push(group);
      if (slug !== null) named.set(slug, group);
    }
    group.commits.push(commit);
    for (const text of bad.slice(0, 20 - group.notes.length)) {
      group.notes.push({ code: 'bad_trailer', detail: `Block: ${[...text].slice(0, 80).join('')}` });
    }
    ofCommit.add(commit.oid, group);
    const subject = subjectOf(commit.message);
    if (!bySubject.has(subject)) bySubject.set(subject, commit.oid);
  }
  return groups;
}

/** The first line of a message. */
export function subjectOf(message: string): string {
  return (message.split('\n', 1)[0] ?? '').trim();
}

const FIX = /^(?:fixup|squash|amend)! /;

/** What a commit fixes up, amends or reverts: a commit met before by its subject, or the beginning of an id; null: nothing. */
function targetOf(
  commit: BlockCommit,
  bySubject: ReadonlyMap<string, string>,
): { readonly oid: string } | null {
  let subject = subjectOf(commit.message);
  let joined = false;
  for (let fix = FIX.exec(subject); fix !== null; fix = FIX.exec(subject)) {
    joined = true;
    subject = subject.slice(fix[0].length);
  }
  if (joined) {
    const found = bySubject.get(subject);
    if (found !== undefined) return { oid: found };
    return /^[0-9a-f]{7,64}$/.test(subject) ? { oid: subject } : null;
  }
  const reverted = /^This reverts commit ([0-9a-f]{7,64})\b/m.exec(commit.message)?.[1];
  return reverted === undefined ? null : { oid: reverted };
}

function seedOf(commit: BlockCommit, ordinals: Map<string, number>): Seed {
  const who = JSON.stringify([commit.authorEmail, commit.authorTime, subjectOf(commit.message)]);
  const ordinal = (ordinals.get(who) ?? 0) + 1;
  ordinals.set(who, ordinal);
  const author = createHash('sha256').update(`author\0${ordinal}\0${who}`).digest('hex');
  return { oid: commit.oid, diff: diffDigest(commit), author };
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
