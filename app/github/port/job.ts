/** What the flow asks of GitHub about jobs of workflows on a commit: what proves a verify command (VER-1, VER-3). */
import type { RepositoryAddress } from '../port.ts';

/** A workflow run on a commit, as GitHub shows it now. */
export interface HeadRun {
  readonly id: string;
  /** Its newest attempt. */
  readonly attempt: number;
  /** Name of its file in `.github/workflows`. */
  readonly workflow: string;
  readonly event: string;
  readonly status: string;
  readonly conclusion: string | null;
}

/** A job of a workflow run, in its newest attempt. */
export interface JobInfo {
  readonly id: string;
  readonly attempt: number;
  /** As GitHub shows it: `name:` or the id, values of a matrix in brackets. */
  readonly name: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly startedAt: string | null;
  readonly completedAt: string | null;
  readonly labels: readonly string[];
  /** Null until a runner has it. */
  readonly runnerGroup: string | null;
  /** Id of its check run, by GitHub Actions. */
  readonly checkRun: string;
}

/** An annotation of a check run, of whoever made that one. */
export interface AnnotationInfo {
  readonly title: string;
  readonly level: string;
  readonly message: string;
}

/** A part of port.ts's `GitHub`; what it throws is told there. */
export interface JobCalls {
  /** Workflow runs on a commit, newest first; no other App's check run is among them. */
  listRunsOnHead(repo: RepositoryAddress, head: string): Promise<HeadRun[]>;
  /** The newest execution of each job of a workflow run. */
  listJobs(repo: RepositoryAddress, workflowRun: string): Promise<JobInfo[]>;
  listAnnotations(repo: RepositoryAddress, checkRun: string): Promise<AnnotationInfo[]>;
  /** Runs one job and what needs it again, as the next attempt of its run. `github_refused` while the run is under way. */
  rerunJob(repo: RepositoryAddress, job: string): Promise<void>;
  /** Runs a workflow run again as its next attempt: all of it, or what failed. */
  rerunWorkflowRun(repo: RepositoryAddress, workflowRun: string, what: 'all' | 'failed'): Promise<void>;
}
