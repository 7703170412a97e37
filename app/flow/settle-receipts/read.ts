/** What GitHub shows of the jobs that a run's receipts wait for, read outside of any transaction (VER-3). */

import type { JobCommand } from '../../domain/policy/verify.ts';
import { commandDigest } from '../../domain/receipt/input-hash.ts';
import type { JudgeFacts, SeenJob, SeenRun, Standing, Telling } from '../../domain/receipt/judge.ts';
import { isRunOf, judgeReceipt, withTelling } from '../../domain/receipt/judge.ts';
import type { ReceiptFact } from '../../domain/receipt.ts';
import type { JobInfo } from '../../github/port/job.ts';
import type { GitHub, RepositoryAddress } from '../../github/port.ts';
import {
  RECEIPT_TITLE,
  type ReceiptDetail,
  readReceiptMessage,
  receiptTrouble,
} from '../../protocol/receipt.ts';

/** How long after the end of a job what it told may take to be readable. */
const DETAIL_GRACE_MS = 60_000;

/** A receipt with the policy's word on its command. */
export interface Followed {
  readonly receipt: ReceiptFact;
  readonly command: JobCommand;
}

/** How a receipt stands at GitHub, with what its job told. */
export interface Look {
  readonly receipt: ReceiptFact;
  readonly standing: Standing;
  readonly detail: ReceiptDetail | null;
}

/** The runs on a head that may prove any of these commands, each with its jobs. */
export async function readRuns(
  github: GitHub,
  repository: RepositoryAddress,
  head: string,
  followed: readonly Followed[],
): Promise<SeenRun[]> {
  const runs = await github.listRunsOnHead(repository, head);
  const seen: SeenRun[] = [];
  for (const run of runs) {
    if (!followed.some(({ command }) => isRunOf(command, run))) continue;
    const jobs = await github.listJobs(repository, run.id);
    seen.push({ ...run, jobs: jobs.map(seenJob) });
  }
  return seen;
}

function seenJob(job: JobInfo): SeenJob {
  const [started, ended] = [Date.parse(job.startedAt ?? ''), Date.parse(job.completedAt ?? '')];
  return {
    id: job.id,
    attempt: job.attempt,
    name: job.name,
    status: job.status,
    conclusion: job.conclusion,
    endedMs: Number.isFinite(ended) ? ended : 0,
    ms: Number.isFinite(started) && Number.isFinite(ended) ? Math.max(0, ended - started) : 0,
    selfHosted: isSelfHosted(job),
    checkRun: job.checkRun,
  };
}

/** Labels of runners that GitHub hosts begin with their system; what is neither of these nor of GitHub's group may be anybody's machine. */
function isSelfHosted({ labels, runnerGroup }: JobInfo): boolean {
  if (labels.some((label) => label.toLowerCase() === 'self-hosted')) return true;
  if (runnerGroup === null || runnerGroup === 'GitHub Actions') return false;
  return !labels.some((label) => /^(ubuntu|windows|macos)-/i.test(label));
}

/** How one receipt stands. Annotations are read of a job that ended and that the receipt does not tell of yet. */
export async function look(
  github: GitHub,
  repository: RepositoryAddress,
  { receipt, command }: Followed,
  runs: readonly SeenRun[],
  facts: JudgeFacts,
  now: Date,
): Promise<Look> {
  const standing = judgeReceipt(command, receipt.commands, runs, facts);
  const { job, checkRun } = standing;
  const over = standing.state === 'passed' || standing.state === 'failed';
  if (command.from !== 'action' || checkRun === null || job === null || !over)
    return { receipt, standing, detail: null };
  // what is on record of this very attempt stands; only a detail that had not come yet may come later
  const known =
    receipt.job?.job === job.job && receipt.job.attempt === job.attempt && receipt.reused === null;
  if (
    known &&
    receipt.conclusion === standing.conclusion &&
    receipt.why !== 'no_detail' &&
    receipt.state !== 'running'
  )
    return { receipt, standing: { ...standing, state: receipt.state, why: receipt.why }, detail: null };
  const annotations = await github.listAnnotations(repository, checkRun);
  const told = annotations
    .filter((one) => one.title === RECEIPT_TITLE)
    .map((one) => readReceiptMessage(one.message))
    .filter((one) => one === null || receipt.commands.includes(one.command));
  const tellings = told.map((one): Telling | 'unreadable' =>
    one === null ? 'unreadable' : { trouble: receiptTrouble(one), command: one.command_sha256 },
  );
  // the one that named the trouble is the one to keep
  const detail =
    told.find((one) => one !== null && receiptTrouble(one) !== null) ?? told.find((one) => one !== null);
  const weighed = withTelling(standing, tellings, commandDigest(command));
  // an annotation may come after the end of its job: looked for again with the next event, or pass
  if (weighed.why === 'no_detail' && now.getTime() - standing.endedMs < DETAIL_GRACE_MS)
    return { receipt, standing: { ...standing, state: 'running' }, detail: null };
  return { receipt, standing: weighed, detail: detail ?? null };
}
