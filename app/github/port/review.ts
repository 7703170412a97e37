/** What the flow asks of GitHub for reviews of ours (PUB-5). */
import type { RepositoryAddress } from '../port.ts';

/** A part of port.ts's `GitHub`; what it throws is told there. */
export interface ReviewCalls {
  /**
   * Makes a review of ours on a head, event COMMENT alone: all of its comments or, with `github_refused`, none
   * (PUB-5). Lines are of the head's side and inside one hunk of the diff.
   */
  createReview(
    repo: RepositoryAddress,
    pull: string,
    input: {
      readonly commit: string;
      readonly body: string;
      readonly comments: readonly {
        readonly path: string;
        readonly startLine: number;
        readonly endLine: number;
        readonly body: string;
      }[];
    },
  ): Promise<{ readonly id: string }>;
  /** The newest review of a login whose text begins with a marker, which that login alone can have made; null: none. */
  findReview(
    repo: RepositoryAddress,
    pull: string,
    login: string,
    marker: string,
  ): Promise<{ readonly id: string } | null>;
  /** The diff of a pull request as GitHub shows it, at most 3,000 files; null for a file whose patch it leaves out. */
  listPatches(
    repo: RepositoryAddress,
    pull: string,
  ): Promise<{ readonly path: string; readonly patch: string | null }[]>;
}
