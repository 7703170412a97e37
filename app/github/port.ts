/**
 * What the flow asks of GitHub, in plain types. `octokit.ts` is the only implementation of the REST
 * side, `git.ts` of the reading side; tests run both against the sandbox. All ids are decimal
 * strings. Calls throw `Fault` with `github_unavailable`, `github_rate_limited`, `github_not_found`,
 * `permissions_missing`, `installation_gone` or `github_refused`; creates are never retried inside.
 */
import type { WirePath } from '../domain/path.ts';

/** Where a repository is addressed today; identity is `id` (RUN-1). */
export interface RepositoryAddress {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
}

/** A repository as GitHub describes it. */
export interface RepositoryInfo extends RepositoryAddress {
  readonly ownerId: string;
  readonly defaultBranch: string;
  readonly private: boolean;
}

/** A pull request as GitHub describes it now. */
export interface PullInfo {
  readonly number: string;
  readonly state: 'open' | 'closed';
  readonly merged: boolean;
  readonly draft: boolean;
  readonly title: string;
  readonly body: string;
  readonly author: { readonly id: string; readonly login: string } | null;
  readonly head: string;
  readonly headRef: string;
  /** Null when the fork was deleted (case 9). */
  readonly headRepositoryId: string | null;
  readonly baseRef: string;
  readonly base: string;
  readonly commits: number;
  readonly changedFiles: number;
  readonly updatedAt: string;
  /** When it was opened (ISO); absent where the caller does not need it. */
  readonly createdAt?: string;
  /** When the head was last pushed as far as GitHub tells; null when it does not. */
  readonly pushedAt: string | null;
}

/** A repository permission as the collaborator API answers it (CMD-3). */
export type Permission = 'admin' | 'maintain' | 'write' | 'triage' | 'read' | 'none';

/** One annotation within GitHub's limits (PUB-3). */
export interface Annotation {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number;
  readonly start_column?: number;
  readonly end_column?: number;
  readonly annotation_level: 'notice' | 'warning' | 'failure';
  readonly message: string;
  readonly title?: string;
}

/** What a check run shows. `conclusion` present means completed. */
export interface CheckRunContent {
  readonly status: 'queued' | 'in_progress' | 'completed';
  readonly conclusion?: 'success' | 'failure' | 'action_required' | 'cancelled' | 'timed_out';
  readonly title: string;
  readonly summary: string;
  readonly text?: string;
  readonly detailsUrl?: string;
  /** At most 50 a request; GitHub appends them. */
  readonly annotations?: readonly Annotation[];
  readonly actions?: readonly {
    readonly label: string;
    readonly description: string;
    readonly identifier: string;
  }[];
}

/** A check run as GitHub lists it. */
export interface CheckRunInfo {
  readonly id: string;
  readonly name: string;
  readonly headSha: string;
  readonly externalId: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly annotations: number;
  readonly appId: string;
  readonly summary: string | null;
}

/** A comment as GitHub lists it; author fields are null for a ghost. */
export interface CommentInfo {
  readonly id: string;
  readonly userId: string | null;
  readonly login: string | null;
  readonly bot: boolean;
  readonly body: string;
  readonly createdAt: string;
  readonly appId: string | null;
}

/** The REST side for one installation. */
export interface GitHub {
  getRepository(repo: RepositoryAddress): Promise<RepositoryInfo>;
  getPull(repo: RepositoryAddress, number: string): Promise<PullInfo>;
  listOpenPulls(repo: RepositoryAddress): Promise<PullInfo[]>;
  /** Changed paths as GitHub lists them, old paths of renames too: at most 3,000 entries, only a hint (GIT-4). */
  listPullPaths(repo: RepositoryAddress, number: string): Promise<string[]>;
  /** The merge base of two commits by GitHub's compare; null when there is none. */
  getMergeBase(repo: RepositoryAddress, base: string, head: string): Promise<string | null>;
  /** Head commit of a branch; null when it does not exist. */
  getBranchHead(repo: RepositoryAddress, branch: string): Promise<string | null>;
  /** A file's bytes at a commit or ref; null when it does not exist there. */
  getContent(repo: RepositoryAddress, path: string, ref: string): Promise<Buffer | null>;
  /** Whether an active rule of the branch requires a check of this name, and bound to which app id. */
  getRequiredCheck(
    repo: RepositoryAddress,
    branch: string,
    name: string,
  ): Promise<{ readonly appId: string | null } | null>;
  getPermission(
    repo: RepositoryAddress,
    login: string,
  ): Promise<{ readonly permission: Permission; readonly userId: string | null }>;
  createCheckRun(
    repo: RepositoryAddress,
    input: CheckRunContent & { readonly name: string; readonly headSha: string; readonly externalId: string },
  ): Promise<{ readonly id: string }>;
  updateCheckRun(repo: RepositoryAddress, id: string, content: CheckRunContent): Promise<void>;
  getCheckRun(repo: RepositoryAddress, id: string): Promise<CheckRunInfo | null>;
  /** Every check run of our App on a commit (filter=all), newest created first. */
  listCheckRuns(repo: RepositoryAddress, sha: string, name?: string): Promise<CheckRunInfo[]>;
  createComment(repo: RepositoryAddress, pull: string, body: string): Promise<{ readonly id: string }>;
  updateComment(repo: RepositoryAddress, id: string, body: string): Promise<void>;
  /** Comments of a pull request, oldest first, created after `since` (ISO) when given. */
  listComments(repo: RepositoryAddress, pull: string, since?: string): Promise<CommentInfo[]>;
  /** Comments of all issues and pull requests changed at or after `since` (ISO), oldest change first. */
  listRecentComments(
    repo: RepositoryAddress,
    since: string,
  ): Promise<(CommentInfo & { readonly number: string; readonly updatedAt: string })[]>;
  addReaction(
    repo: RepositoryAddress,
    commentId: string,
    content: 'eyes' | 'rocket' | 'confused',
  ): Promise<void>;
  /** Starts a workflow on a ref; the run id where the server returns it (POOL-4). */
  dispatchWorkflow(
    repo: RepositoryAddress,
    workflow: string,
    ref: string,
    inputs: Readonly<Record<string, string>>,
  ): Promise<{ readonly workflowRunId: string | null }>;
  getWorkflowRun(
    repo: RepositoryAddress,
    id: string,
  ): Promise<{
    readonly status: string;
    readonly conclusion: string | null;
    readonly attempt: number;
    readonly title: string;
  } | null>;
  /** Workflow runs of one workflow file since a moment (ISO), newest first, at most 100. */
  listWorkflowRuns(
    repo: RepositoryAddress,
    workflow: string,
    since: string,
  ): Promise<
    {
      readonly id: string;
      readonly status: string;
      readonly conclusion: string | null;
      readonly attempt: number;
      readonly title: string;
    }[]
  >;
  countJobs(repo: RepositoryAddress, workflowRunId: string): Promise<number>;
  cancelWorkflowRun(repo: RepositoryAddress, id: string): Promise<void>;
  /** A token that reads this one repository's contents, for git; null-free, never logged. */
  readToken(repo: RepositoryAddress): Promise<string>;
}

/** The App's own side (app JWT). */
export interface GitHubApp {
  readonly appId: string;
  /** The App's slug, once asked. */
  slug(): Promise<string>;
  listInstallations(): Promise<
    {
      readonly id: string;
      readonly accountId: string;
      readonly accountLogin: string;
      readonly suspended: boolean;
      readonly permissions: Readonly<Record<string, string>>;
    }[]
  >;
  listRepositories(installationId: string): Promise<RepositoryInfo[]>;
  /** Deliveries newest first; a page is at most 100, `cursor` null at the end. */
  listDeliveries(cursor: string | null): Promise<{
    readonly deliveries: {
      readonly id: string;
      readonly guid: string;
      readonly deliveredAt: string;
      readonly ok: boolean;
      readonly event: string;
    }[];
    readonly cursor: string | null;
  }>;
  redeliver(id: string): Promise<void>;
  installation(id: string): Promise<GitHub>;
}

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
  /** Whether `ancestor` is an ancestor of `commit` as far as the cache reaches; null when it lacks one of them. */
  isAncestor(repository: RepositoryAddress, ancestor: string, commit: string): Promise<boolean | null>;
}
