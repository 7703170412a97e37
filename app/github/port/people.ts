/** What the flow asks of GitHub about people: who made commits, who reviewed, who may write (GAT-6). */
import type { RepositoryAddress } from '../port.ts';

/** Accounts that a commit's signatures map to; null: to none. */
export interface CommitAccounts {
  readonly author: string | null;
  readonly committer: string | null;
}

/** A review as GitHub tells it now; `author` is null for a ghost, `commit` the head it was given for. */
export interface ReviewInfo {
  readonly id: string;
  readonly author: { readonly id: string; readonly login: string; readonly bot: boolean } | null;
  readonly state: 'approved' | 'changes_requested' | 'commented' | 'dismissed' | 'pending';
  readonly commit: string | null;
  /** ISO; null while it is pending. */
  readonly submittedAt: string | null;
}

/** A part of port.ts's `GitHub`; what it throws is told there. */
export interface PeopleCalls {
  /** Accounts of a pull request's commits by commit id; one that GitHub does not list is absent. */
  listCommitAccounts(
    repo: RepositoryAddress,
    of: {
      readonly pull: string;
      readonly base: string;
      readonly head: string;
      /** The commits that are asked for. */
      readonly commits: readonly string[];
    },
  ): Promise<ReadonlyMap<string, CommitAccounts>>;
  /** Everybody's reviews of a pull request, in the order they were made; our own pending ones too. */
  listReviews(repo: RepositoryAddress, pull: string): Promise<ReviewInfo[]>;
  getReview(repo: RepositoryAddress, pull: string, id: string): Promise<ReviewInfo | null>;
  /** Ids of at most two accounts that have write, maintain or admin. */
  listWriters(repo: RepositoryAddress): Promise<string[]>;
}
