/** What the flow asks of GitHub about check runs, and whose turn its writes are. */
import type { RepositoryAddress } from '../port.ts';

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

/** Whose turn a write is while the budget is short, first to last (PUB-1). */
export const WRITE_TURNS = ['verdict', 'work', 'findings', 'block', 'comment', 'old'] as const;
/**
 * The turn of a write: `verdict` the first gate of a head and its conclusion, `work` what moves a run on
 * (updates under way, dispatches, a green that has to go), `old` what nobody looks at.
 */
export type WriteTurn = (typeof WRITE_TURNS)[number];

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

/** A part of port.ts's `GitHub`; what it throws is told there. */
export interface CheckCalls {
  createCheckRun(
    repo: RepositoryAddress,
    input: CheckRunContent & { readonly name: string; readonly headSha: string; readonly externalId: string },
    turn?: WriteTurn,
  ): Promise<{ readonly id: string }>;
  updateCheckRun(
    repo: RepositoryAddress,
    id: string,
    content: CheckRunContent,
    turn?: WriteTurn,
  ): Promise<void>;
  getCheckRun(repo: RepositoryAddress, id: string): Promise<CheckRunInfo | null>;
  /** Every check run of our App on a commit (filter=all), newest created first. */
  listCheckRuns(repo: RepositoryAddress, sha: string, name?: string): Promise<CheckRunInfo[]>;
  /** The newest check run of each App that bears a name on a commit: theirs prove nothing (case 38). */
  listChecksNamed(repo: RepositoryAddress, sha: string, name: string): Promise<CheckRunInfo[]>;
}
