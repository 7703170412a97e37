/** What the flow reads by git, in plain types. Calls throw `Fault`s with the codes that each names. */
import type { WirePath } from '../../domain/path.ts';
import type { RepositoryAddress } from '../port.ts';

/** A commit as git tells it. */
export interface Commit {
  readonly oid: string;
  readonly parents: readonly string[];
  readonly tree: string;
  readonly authorName: string;
  readonly authorEmail: string;
  /** Seconds since the epoch; a claim of the author, never an order. */
  readonly authorTime: number;
  readonly committerEmail: string;
  readonly message: string;
  /** Trailers as git parses them, in order, only of the last paragraph. */
  readonly trailers: readonly { readonly key: string; readonly value: string }[];
  /** Paths that differ from the first parent; for a merge, only those that differ from all parents. */
  readonly changes: readonly Change[];
}

/** One changed path of a raw diff, without rename detection. */
export interface Change {
  readonly path: WirePath;
  readonly status: 'A' | 'M' | 'D' | 'T';
  readonly modeBase: string | null;
  readonly modeHead: string | null;
  readonly blobBase: string | null;
  readonly blobHead: string | null;
}

/** What git read of a pull request (GIT-1…GIT-4). */
export interface PullReading {
  readonly head: string;
  readonly base: string;
  readonly mergeBase: string;
  /** Merge base to head, oldest first, none of the base's own. */
  readonly commits: readonly Commit[];
  readonly files: readonly Change[];
  /** Pairs of a deleted and an added path with equal or similar blobs; they group, never hide. */
  readonly renames: readonly { readonly from: WirePath; readonly to: WirePath; readonly exact: boolean }[];
}

/** What git read of a merge group (GAT-5). */
export interface GroupReading {
  /** What of `base…head` changed. */
  readonly reading: PullReading;
  /** The group's tree, and that of the clean merge of base and member heads; null where there is none or a head cannot be had. */
  readonly tree: string;
  readonly merged: string | null;
}

/** The git side: a bare partial clone per repository that can be deleted at any time (GIT-1). */
export interface GitReader {
  /** Reads a pull request; throws `Fault` `git_unavailable` (retryable, with the limit named) or `no_merge_base`. */
  readPull(input: {
    readonly repository: RepositoryAddress;
    readonly cloneUrl: string;
    readonly token: string;
    readonly pull: string;
    readonly head: string;
    readonly base: string;
    readonly mergeBase: string | null;
    /** How many commits GitHub counts: the first fetch goes that deep. */
    readonly commits?: number;
  }): Promise<PullReading>;
  /**
   * Reads a merge group's commit against the branch it goes to, and merges its members' heads in order by git's
   * own means; throws as `readPull` does. `base` must be an ancestor of `head`, else `no_merge_base`.
   */
  readGroup(input: {
    readonly repository: RepositoryAddress;
    readonly cloneUrl: string;
    readonly token: string;
    readonly head: string;
    readonly base: string;
    readonly members: readonly { readonly pull: string; readonly head: string }[];
  }): Promise<GroupReading>;
  /** Blobs by object id, fetched on demand; missing ones are absent from the map. */
  readBlobs(
    repository: RepositoryAddress,
    cloneUrl: string,
    token: string,
    oids: readonly string[],
  ): Promise<Map<string, Buffer>>;
  /** The bytes of one path at a commit already fetched or fetchable; null when absent. */
  readPath(
    repository: RepositoryAddress,
    cloneUrl: string,
    token: string,
    commit: string,
    path: WirePath,
  ): Promise<Buffer | null>;
  /** What lies at each path of a commit, by path key; absent ones are not in the map. */
  readEntries(
    repository: RepositoryAddress,
    cloneUrl: string,
    token: string,
    commit: string,
    paths: readonly WirePath[],
  ): Promise<Map<string, { readonly mode: string; readonly oid: string }>>;
  /**
   * Pairs of files of two heads whose contents git calls similar (50 %), by blob alone; each file is in
   * at most one pair. Over 1,000 files a side, or where a blob cannot be had, there is no pair.
   */
  pairSimilar(
    repository: RepositoryAddress,
    cloneUrl: string,
    token: string,
    gone: readonly { readonly path: WirePath; readonly blob: string }[],
    came: readonly { readonly path: WirePath; readonly blob: string }[],
  ): Promise<{ readonly from: WirePath; readonly to: WirePath }[]>;
  /** Whether `ancestor` is an ancestor of `commit` as far as the cache reaches; null when it lacks one of them or is cut between them. */
  isAncestor(repository: RepositoryAddress, ancestor: string, commit: string): Promise<boolean | null>;
}
