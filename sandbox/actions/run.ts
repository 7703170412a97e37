import type { ChildProcess } from 'node:child_process';
import type { CheckRun, CheckSuite, User } from '../model.ts';
import type { Repository } from '../repository.ts';

/** A workflow file as GitHub registers it once it is on the default branch. */
export interface WorkflowFile {
  readonly id: number;
  readonly repositoryId: number;
  readonly path: string;
  readonly name: string;
  readonly createdAt: string;
}

/** States of a run; `pending` waits for its concurrency group. */
export type RunStatus = 'queued' | 'pending' | 'in_progress' | 'completed';

/** How a run or job ended. */
export type RunConclusion = 'success' | 'failure' | 'cancelled' | 'skipped' | 'startup_failure' | 'timed_out';

/** One step as it went. */
export interface StepResult {
  readonly number: number;
  readonly name: string;
  status: 'queued' | 'in_progress' | 'completed';
  conclusion: 'success' | 'failure' | 'cancelled' | 'skipped' | null;
  startedAt: string | null;
  completedAt: string | null;
}

/** A printed `::error::`, `::warning::` or `::notice::`. */
export interface PrintedAnnotation {
  readonly level: 'error' | 'warning' | 'notice';
  readonly title: string | null;
  /** `.github` and line 1 where the command names none. */
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** One job of a run; its id is the id of its check run, by github-actions. */
export interface Job {
  readonly id: number;
  readonly checkRun: CheckRun;
  readonly key: string;
  /** The attempt of the run it was executed in: a re-run of other jobs leaves it. */
  readonly attempt: number;
  readonly name: string;
  readonly labels: readonly string[];
  readonly environment: string | null;
  status: 'queued' | 'in_progress' | 'completed';
  conclusion: Exclude<RunConclusion, 'startup_failure'> | null;
  readonly createdAt: string;
  startedAt: string;
  completedAt: string | null;
  readonly steps: StepResult[];
  /** What its steps printed, secrets and masked values as ***. */
  log: string;
  /** Markdown of all step summaries. */
  summary: string;
  /** Outputs by step id. */
  readonly outputs: Record<string, Record<string, string>>;
  readonly annotations: PrintedAnnotation[];
  /** The step's process while one runs. */
  process: ChildProcess | null;
}

/** Whether it runs a pull request from elsewhere: with a read-only token and without secrets (facts/github.md §15). */
export function isFromFork(run: WorkflowRun): boolean {
  return run.event === 'pull_request' && run.headRepository !== run.repository;
}

/** One run of a workflow. */
export interface WorkflowRun {
  readonly id: number;
  readonly repository: Repository;
  readonly workflow: WorkflowFile;
  readonly number: number;
  attempt: number;
  readonly event: string;
  readonly ref: string;
  /** GITHUB_SHA: the commit that runs; of a pull request the test merge (facts/github.md §15). */
  readonly commit: string;
  readonly headSha: string;
  readonly headBranch: string;
  /** Where the head comes from; null once that is deleted. */
  readonly headRepository: Repository | null;
  /** GITHUB_BASE_REF: empty but for pull requests. */
  readonly baseRef: string;
  readonly actor: User;
  readonly inputs: Readonly<Record<string, string>>;
  readonly suite: CheckSuite;
  displayTitle: string;
  status: RunStatus;
  conclusion: RunConclusion | null;
  /** Why it could not start (startup_failure). */
  failure: string | null;
  /** Concurrency group, lower-cased: groups are case-insensitive (facts/github.md §8). */
  group: string | null;
  readonly createdAt: string;
  updatedAt: string;
  startedAt: string;
  jobs: Job[];
  cancelled: 'no' | 'asked' | 'forced';
  /** Runner lost: no more is heard of its job until `reportLost`. */
  lost: boolean;
}
