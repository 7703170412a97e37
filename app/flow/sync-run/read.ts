/** What GitHub and git say of a pull request now, and what the base says how to treat it (RUN-2, RUN-8, GIT-1). */

import { createHash } from 'node:crypto';
import type { Repository } from '../../../db/store/installation.ts';
import type { Run } from '../../../db/store/run.ts';
import { blockSlug } from '../../domain/block/trailers.ts';
import type { AttributesFile } from '../../domain/file-set/attributes.ts';
import { entryFault } from '../../domain/ownership/entry.ts';
import { decodePath, encodePath, pathKey, type WirePath } from '../../domain/path.ts';
import { isGlob } from '../../domain/policy/pattern.ts';
import { POLICY_PATH, type Policy, parsePolicy } from '../../domain/policy.ts';
import type { HeldKey } from '../../domain/setting/hold.ts';
import { Fault } from '../../errors.ts';
import type { GitReader, PullReading } from '../../github/port/git.ts';
import type { GitHub, PullInfo } from '../../github/port.ts';
import { cloneUrl } from '../clone-url.ts';
import type { Deps } from '../deps.ts';
import { heldPolicy } from '../held-policy.ts';
import { withSimilar } from './read-similar.ts';
import { BARE_POLICY, type Repair, readRepair } from './repair.ts';

/** The policy at the base commit. */
export type BasePolicy =
  | {
      readonly state: 'valid';
      readonly hash: string;
      readonly bytes: Buffer;
      readonly policy: Policy;
      readonly commit: string;
      /** Keys that the settings of the installation hold (POL-2). */
      readonly held: readonly HeldKey[];
    }
  | {
      readonly state: 'invalid';
      readonly hash: string;
      readonly commit: string;
      readonly error: { readonly code: string; readonly line: number; readonly message: string };
    }
  | { readonly state: 'absent'; readonly commit: string };

/** The content of a pull request with all that its decisions need of git. */
export interface Content {
  readonly reading: PullReading;
  /** `.gitattributes` at the merge base, of every folder that holds a changed path. */
  readonly attributes: readonly AttributesFile[];
  /** Lines of head blobs; empty unless a route asks for lines. */
  readonly lines: ReadonlyMap<string, number>;
  /** Mode of what each exact `Owns` entry names at the head, else at the merge base, by text. */
  readonly entryModes: ReadonlyMap<string, string>;
  /** Paths that GitHub names and git does not have, asked only where the counts differ (GIT-4). */
  readonly unseen: readonly string[];
  /** Whether the earlier head is an ancestor of this one; null when there is none or git cannot tell. */
  readonly ancestor: boolean | null;
  /** Pairs of paths of the head before and of this one that git calls similar (REV-5). */
  readonly similar?: readonly { readonly from: WirePath; readonly to: WirePath }[];
}

/** An open pull request as it is now. `content` is null where the base has no valid policy, unless the head repairs it. */
export interface Truth {
  readonly pull: PullInfo;
  readonly policy: BasePolicy;
  /** The policy that the head brings in place of one that is not valid (RUN-9); null: it is no such repair. */
  readonly repair: Repair | null;
  /** Whether the head adds or changes the policy file. */
  readonly touchesPolicy: boolean;
  readonly content: Content | null;
}

/** A commit list that grew longer than GitHub answers in one go is still git's to read. */
export interface Source {
  readonly deps: Deps;
  readonly git: GitReader;
  readonly repository: Repository;
  readonly url: string;
  readonly token: string;
}

/** Where git reads a repository from. */
export async function sourceOf(deps: Deps, github: GitHub, repository: Repository): Promise<Source> {
  return {
    deps,
    git: deps.git,
    repository,
    url: cloneUrl(deps.settings, repository),
    token: await github.readToken(repository),
  };
}

/** Reads an open pull request; throws `git_unavailable`, `no_merge_base` and what GitHub's calls throw. */
export async function readTruth(source: Source, github: GitHub, run: Run, pull: PullInfo): Promise<Truth> {
  const { repository } = source;
  const base = (await github.getBranchHead(repository, pull.baseRef)) ?? pull.base;
  // only a head or base that was not read yet needs GitHub's answer
  const hint =
    run.head === pull.head && run.base === base
      ? run.mergeBase
      : await github.getMergeBase(repository, base, pull.head);
  // before the policy: its fetch brings the base as well
  const reading = await source.git.readPull({
    repository,
    cloneUrl: source.url,
    token: source.token,
    pull: pull.number,
    head: pull.head,
    base,
    mergeBase: hint,
    commits: pull.commits,
  });
  const policy = await readBasePolicy(source, base);
  const touchesPolicy = reading.files.some(
    (file) => pathKey(file.path) === POLICY_PATH && file.blobHead !== null,
  );
  const repair = policy.state === 'invalid' ? await readRepair(source, reading) : null;
  const given = policy.state === 'valid' ? policy.policy : repair === null ? null : BARE_POLICY;
  if (given === null) return { pull, policy, repair, touchesPolicy, content: null };
  return withSimilar(source, run, {
    pull,
    policy,
    repair,
    touchesPolicy,
    content: {
      reading,
      attributes: await readAttributes(source, reading),
      lines: await readLines(source, given, reading),
      entryModes: await readEntryModes(source, reading),
      unseen: await unseenPaths(source, github, pull, reading),
      ancestor: await ancestorOf(source, github, run.head, reading),
    },
  });
}

/** The policy file at a commit, read by git and held to the settings. */
export async function readBasePolicy(source: Source, commit: string): Promise<BasePolicy> {
  const { repository, url, token } = source;
  const file = await source.git.readPath(repository, url, token, commit, POLICY_PATH);
  if (file === null) return { state: 'absent', commit };
  const { bytes, held } = await heldPolicy(source.deps.database.db, repository.installationId, file);
  const hash = createHash('sha256').update(bytes).digest('hex');
  const parsed = parsePolicy(bytes);
  if (parsed.ok) return { state: 'valid', hash, bytes, policy: parsed.policy, commit, held };
  const [error] = parsed.errors;
  if (error === undefined) throw new Fault('bug', 'a policy was refused without an error');
  return { state: 'invalid', hash, commit, error };
}

/** `.gitattributes` at the merge base, of every folder that holds a changed path. */
export async function readAttributes(source: Source, reading: PullReading): Promise<AttributesFile[]> {
  const folders = new Set(['']);
  for (const { path } of reading.files) {
    const key = pathKey(path);
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      folders.add(key.slice(0, slash + 1));
    }
  }
  const { git, repository, url, token } = source;
  const wanted = [...folders].map((folder) => ({ folder, path: bytePath(`${folder}.gitattributes`) }));
  const entries = await git.readEntries(
    repository,
    url,
    token,
    reading.mergeBase,
    wanted.map((one) => one.path),
  );
  const found = wanted.flatMap(({ folder, path }) => {
    const entry = entries.get(pathKey(path));
    return entry?.mode.startsWith('100') === true ? [{ folder, oid: entry.oid }] : [];
  });
  if (found.length === 0) return [];
  const blobs = await git.readBlobs(
    repository,
    url,
    token,
    found.map(({ oid }) => oid),
  );
  return found.flatMap(({ folder, oid }) => {
    const bytes = blobs.get(oid);
    return bytes === undefined ? [] : [{ folder: Buffer.from(folder, 'latin1').toString('utf8'), bytes }];
  });
}

/** Lines of head blobs by id; empty unless a route asks for lines. */
export async function readLines(
  source: Source,
  policy: Policy,
  reading: PullReading,
): Promise<Map<string, number>> {
  const lines = new Map<string, number>();
  if (!policy.routes.some((route) => route.when.lines !== undefined)) return lines;
  const oids = reading.files.flatMap((file) =>
    file.blobHead !== null && file.modeHead?.startsWith('100') === true ? [file.blobHead] : [],
  );
  const blobs = await source.git.readBlobs(source.repository, source.url, source.token, oids);
  for (const [oid, bytes] of blobs) lines.set(oid, countLines(bytes));
  return lines;
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count++;
  return bytes.length > 0 && bytes.at(-1) !== 0x0a ? count + 1 : count;
}

/** OWN-2: an exact entry records what it was when it was first claimed. */
export async function readEntryModes(source: Source, reading: PullReading): Promise<Map<string, string>> {
  const exact = new Set<string>();
  for (const { trailers } of reading.commits) {
    if (blockSlug(trailers).slug === null) continue;
    for (const { key, value } of trailers) {
      if (key.toLowerCase() !== 'owns' || entryFault(value) !== null) continue;
      if (!isGlob(value) && !value.endsWith('/')) exact.add(value);
    }
  }
  const modes = new Map<string, string>();
  if (exact.size === 0) return modes;
  const { git, repository, url, token } = source;
  for (const commit of [reading.mergeBase, reading.head]) {
    const entries = await git.readEntries(repository, url, token, commit, [...exact]);
    for (const text of exact) {
      const entry = entries.get(pathKey(text));
      if (entry !== undefined) modes.set(text, entry.mode);
    }
  }
  return modes;
}

/** GIT-4: completeness is git's, GitHub's list is a hint. A rename is two paths here and one file there. */
async function unseenPaths(
  source: Source,
  github: GitHub,
  pull: PullInfo,
  reading: PullReading,
): Promise<string[]> {
  const { files, renames } = reading;
  if (pull.changedFiles >= files.length - renames.length && pull.changedFiles <= files.length) return [];
  const told = await github.listPullPaths(source.repository, pull.number);
  const seen = new Set(files.map((file) => decodePath(file.path).toString('utf8')));
  const unseen = told.filter((path) => !seen.has(path));
  if (unseen.length === 0) return [];
  // the list may already be of a newer head, which the next sync reads
  const now = await github.getPull(source.repository, pull.number);
  return now.head === pull.head && now.baseRef === pull.baseRef ? unseen : [];
}

/** What git's cache is cut too short for, GitHub is asked: an ancestor is a merge base with itself. */
async function ancestorOf(
  source: Source,
  github: GitHub,
  prior: string | null,
  reading: PullReading,
): Promise<boolean | null> {
  if (prior === null || prior === reading.head) return null;
  if (prior === reading.mergeBase || reading.commits.some((commit) => commit.oid === prior)) return true;
  const told = await source.git.isAncestor(source.repository, prior, reading.head);
  if (told !== null) return told;
  const base = await github.getMergeBase(source.repository, prior, reading.head).catch((error: unknown) => {
    // that it cannot be told holds nothing up
    if (error instanceof Fault) return null;
    throw error;
  });
  return base === null ? null : base === prior;
}

function bytePath(key: string): WirePath {
  return encodePath(Buffer.from(key, 'latin1'));
}
