/**
 * What GitHub shows of a command's job on a head, made a receipt's state (VER-1, VER-3). Runs are known by their
 * workflow file and jobs by their name, on the commit itself; a check run that somebody else gave the same name
 * is none of them, and time decides nothing.
 *
 * Of several runs on the head (a push and a pull request; a pull request that was reopened) the newest attempt of
 * each counts, and the worst of them is the receipt: nobody gets rid of a failure by making another run. Runs that
 * were cancelled, or skipped the job, count only where no other ran it.
 */
import { type JobCommand, verifyJobName } from '../policy/verify.ts';
import type { ReceiptFact } from '../receipt.ts';
import type { ReceiptWhy } from './words.ts';

/** A workflow run on the head, with its jobs' newest executions. */
export interface SeenRun {
  readonly id: string;
  readonly attempt: number;
  readonly workflow: string;
  readonly event: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly jobs: readonly SeenJob[];
}

/** A job as GitHub shows it. */
export interface SeenJob {
  readonly id: string;
  readonly attempt: number;
  readonly name: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly ms: number;
  /** When it ended, in ms; 0 where GitHub does not tell. Nothing is decided by it but how long a detail is waited for. */
  readonly endedMs: number;
  /** Whether the runner is, or may be, one that somebody hosts themselves. */
  readonly selfHosted: boolean;
  /** Id of its check run. */
  readonly checkRun: string;
}

/** How a receipt stands by GitHub's word. */
export type Standing = Pick<ReceiptFact, 'state' | 'why' | 'job' | 'conclusion' | 'ms'> & {
  /** The workflow run it rests on, with or without the job; null: there is none. */
  readonly run: { readonly id: string; readonly attempt: number } | null;
  /** The check run in whose annotations a detail may be; null where there is no job. */
  readonly checkRun: string | null;
  /** When the job ended, in ms; 0 where it did not. */
  readonly endedMs: number;
};

/** What counts besides the runs. */
export interface JudgeFacts {
  readonly fork: boolean;
  /** Whether the pull request conflicts with its base: then no workflow starts. */
  readonly conflict: boolean;
}

/** Events whose runs are of the head as it was pushed: a dispatch may carry inputs, and other events run other commits. */
const EVENTS: Readonly<Record<JobCommand['from'], ReadonlySet<string>>> = {
  ci: new Set(['pull_request', 'push']),
  action: new Set(['pull_request']),
};

/** Names of the jobs that run a command, under any of its names. */
export function jobNames(command: JobCommand, names: readonly string[]): string[] {
  return command.from === 'ci' ? [command.job] : names.map(verifyJobName);
}

/** Whether a run is one that may prove a command. */
export function isRunOf(command: JobCommand, run: Pick<SeenRun, 'workflow' | 'event'>): boolean {
  return run.workflow === command.workflow && EVENTS[command.from].has(run.event);
}

/** How a command stands on the head that `runs` are of. */
export function judgeReceipt(
  command: JobCommand,
  names: readonly string[],
  runs: readonly SeenRun[],
  facts: JudgeFacts,
): Standing {
  const wanted = new Set(jobNames(command, names));
  const found = runs
    .filter((run) => isRunOf(command, run))
    .flatMap((run) => candidates(run, wanted, facts).map((standing) => ({ run, standing })));
  if (found.length === 0) return nothing(facts.conflict ? 'conflict' : 'no_run');
  const strong = found.filter(({ standing }) => standing.why !== 'cancelled' && standing.why !== 'skipped');
  const counting = strong.length === 0 ? newest(found) : strong;
  const worst = Math.max(...counting.map(({ standing }) => RANK[standing.state]));
  const [first] = newest(counting.filter(({ standing }) => RANK[standing.state] === worst));
  return first?.standing ?? nothing('no_run');
}

const RANK: Readonly<Record<ReceiptFact['state'], number>> = {
  passed: 0,
  reserved: 1,
  waiting: 1,
  running: 2,
  aborted: 3,
  failed: 4,
};

/** By the number of the run: ids of 64 bits that only rise. */
function newest<T extends { readonly run: SeenRun }>(found: readonly T[]): T[] {
  return [...found].sort((a, b) => (BigInt(a.run.id) < BigInt(b.run.id) ? 1 : -1)).slice(0, 1);
}

function candidates(run: SeenRun, wanted: ReadonlySet<string>, facts: JudgeFacts): Standing[] {
  const byName = new Map<string, SeenJob>();
  for (const job of run.jobs) {
    const known = byName.get(job.name);
    if (wanted.has(job.name) && (known === undefined || known.attempt < job.attempt))
      byName.set(job.name, job);
  }
  const { id, attempt } = run;
  const found =
    byName.size === 0 ? [jobless(run)] : [...byName.values()].map((job) => ofJob(run, job, facts));
  return found.map((standing) => ({ ...standing, run: { id, attempt } }));
}

/** A run that has no such job, or not yet: jobs come as what they need ends. */
function jobless(run: SeenRun): Standing {
  if (run.status !== 'completed') return nothing('queued');
  if (run.conclusion === 'action_required') return nothing('needs_approval');
  if (run.conclusion === 'cancelled' || run.conclusion === 'skipped')
    return { ...nothing(run.conclusion), state: run.conclusion === 'cancelled' ? 'aborted' : 'failed' };
  const why = run.conclusion === 'startup_failure' ? 'startup_failure' : 'job_missing';
  return { ...nothing(why), state: 'failed', conclusion: run.conclusion };
}

function ofJob(run: SeenRun, job: SeenJob, { fork }: JudgeFacts): Standing {
  const base: Standing = {
    state: 'running',
    why: null,
    job: { workflowRun: run.id, attempt: job.attempt, job: job.id },
    conclusion: job.conclusion,
    ms: job.ms,
    run: null,
    checkRun: job.checkRun,
    endedMs: job.endedMs,
  };
  if (fork && job.selfHosted) return { ...base, state: 'failed', why: 'self_hosted_fork' };
  if (job.status !== 'completed')
    return run.status === 'completed' && run.attempt === job.attempt
      ? { ...base, state: 'aborted', why: 'lost' }
      : base;
  const [state, why] = CONCLUSIONS[job.conclusion ?? ''] ?? ['failed', 'failed'];
  return { ...base, state, why };
}

/** Only `success` passes: GitHub counts a skipped job as passed, and it ran nothing. */
const CONCLUSIONS: Readonly<Record<string, readonly ['passed' | 'failed' | 'aborted', ReceiptWhy | null]>> = {
  success: ['passed', null],
  failure: ['failed', 'failed'],
  timed_out: ['failed', 'timed_out'],
  skipped: ['failed', 'skipped'],
  neutral: ['failed', 'neutral'],
  action_required: ['failed', 'action_required'],
  cancelled: ['aborted', 'cancelled'],
  stale: ['aborted', 'no_conclusion'],
  '': ['aborted', 'no_conclusion'],
};

function nothing(why: ReceiptWhy): Standing {
  return { state: 'waiting', why, job: null, conclusion: null, ms: 0, run: null, checkRun: null, endedMs: 0 };
}

/** What a job told of one command, as far as it weighs. */
export interface Telling {
  /** Null: it names no trouble. */
  readonly trouble: ReceiptWhy | null;
  /** The command's digest as the runner made it. */
  readonly command: string;
}

/**
 * What was told only makes it worse (VER-3): a job that passed and told of trouble, told nothing, or ran another
 * command did not pass. Of a job that failed it says why. `expected` is `commandDigest` of the policy's command.
 */
export function withTelling(
  standing: Standing,
  tellings: readonly (Telling | 'unreadable')[],
  expected: string,
): Standing {
  const read = tellings.flatMap((one) => (one === 'unreadable' ? [] : [one]));
  const trouble = read.find((one) => one.trouble !== null)?.trouble ?? null;
  if (standing.state === 'failed')
    return standing.why === 'failed' && trouble !== null ? { ...standing, why: trouble } : standing;
  if (standing.state !== 'passed') return standing;
  const why: ReceiptWhy | null =
    trouble ??
    (tellings.length > read.length
      ? 'unreadable'
      : read.length === 0
        ? 'no_detail'
        : read.some((one) => one.command !== expected)
          ? 'other_command'
          : null);
  return why === null ? standing : { ...standing, state: 'failed', why };
}
