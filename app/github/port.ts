/**
 * What the flow asks of GitHub, in plain types. `octokit.ts` is the only implementation of the REST
 * side, `git.ts` of the reading side; tests run both against the sandbox. All ids are decimal
 * strings. Calls throw `Fault` with `github_unavailable`, `github_rate_limited`, `github_not_found`,
 * `permissions_missing`, `installation_gone` or `github_refused`; creates are never retried inside.
 */
import type { CheckCalls } from './port/check.ts';
import type { JobCalls } from './port/job.ts';
import type { PeopleCalls } from './port/people.ts';
import type { ReviewCalls } from './port/review.ts';

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
  /** Whether it could be merged without a conflict; null while GitHub works it out, absent where nobody asked. */
  readonly mergeable?: boolean | null;
  /** When the head was last pushed as far as GitHub tells; null when it does not. */
  readonly pushedAt: string | null;
}

/** A repository permission as the collaborator API answers it (CMD-3). */
export type Permission = 'admin' | 'maintain' | 'write' | 'triage' | 'read' | 'none';

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

/** A pull request that waits in a merge queue; nulls where GitHub does not tell (yet). */
export interface QueueEntry {
  readonly position: number;
  readonly pull: string | null;
  /** The pull request's head. */
  readonly head: string | null;
  /** The commit that was made of everything up to this entry, and what it was made on. */
  readonly groupHead: string | null;
  readonly base: string | null;
}

/** A branch's merge queue, front first (GAT-5). */
export interface MergeQueue {
  readonly entries: readonly QueueEntry[];
  /** How long it waits for a check, in ms. */
  readonly timeoutMs: number | null;
}

/** The REST side for one installation, and the merge queue, which only GraphQL tells. */
export interface GitHub extends CheckCalls, JobCalls, PeopleCalls, ReviewCalls {
  /** The merge queue of a branch; null where it has none. `permissions_missing` without "Merge queues: read". */
  getQueue(repo: RepositoryAddress, branch: string): Promise<MergeQueue | null>;
  /** How long an active rule of the branch lets its merge queue wait for a check, in ms; null: no such rule. */
  getQueueTimeout(repo: RepositoryAddress, branch: string): Promise<number | null>;
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
    readonly event: string;
    readonly headSha: string;
    /** Null where it ran on no branch. */
    readonly headBranch: string | null;
    /** The workflow's file, `.github/workflows/…`; some servers add `@` and a ref. */
    readonly path: string;
    /** Login of who started it; null for a ghost. */
    readonly actor: string | null;
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

/** Who a person is by GitHub's word, and where to look for what they may see. */
export interface PersonInfo {
  readonly id: string;
  readonly login: string;
  /** Installations of our App that they can reach. */
  readonly installations: readonly string[];
}

/** Signing people in by the App's own OAuth web flow (OPS-8). */
export interface GitHubSignIn {
  /** Where a browser is sent; `challenge` is the S256 challenge of PKCE. */
  authorizeUrl(flow: {
    readonly state: string;
    readonly challenge: string;
    readonly redirectUri: string;
  }): string;
  /**
   * Who comes back with a code. The token that it brings asks that and is forgotten. Throws `Refusal`
   * `unauthorized` for a code that is not good (any more), `Fault` `config_value` when GitHub does not know
   * our id or secret, and what any call throws.
   */
  identify(answer: {
    readonly code: string;
    readonly verifier: string;
    readonly redirectUri: string;
  }): Promise<PersonInfo>;
}
