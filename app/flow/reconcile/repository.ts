import {
  type Enrolment,
  findInstallation,
  findRepository,
  listEnrolments,
  type Repository,
} from '../../../db/store/installation.ts';
import { addJob } from '../../../db/store/job.ts';
import { listUnsettledRuns } from '../../../db/store/receipt.ts';
import { listOpenRuns, productNow, type Run } from '../../../db/store/run.ts';
import type { Actor, Cause } from '../../domain/ledger/row-fields.ts';
import type { PullInfo } from '../../github/port.ts';
import { closeRun } from '../close-run.ts';
import type { Deps } from '../deps.ts';
import { type EnrolOutcome, enrol } from '../enrol.ts';
import { ensureRun } from '../ensure-run.ts';
import { readComments } from './comments.ts';
import { readReviews } from './reviews.ts';

/** A pull request opened this shortly before its branch was first seen enrolled is no old one: its author is waiting for us. */
const JUST_OPENED_MS = 10 * 60_000;
/** How long a reading of a base branch holds without a push that was seen. */
const REREAD_MS = 60 * 60_000;
const CAUSE: Cause = { kind: 'schedule', id: 'reconcile', sha256: null };

/** What was found and done in one repository. */
export interface RepositoryOutcome {
  readonly kind: 'compared' | 'not_enrolled' | 'parked';
  readonly opened: number;
  readonly told: number;
  readonly closed: number;
  readonly comments: number;
  /** Acts that lost reviews came to. */
  readonly reviews: number;
}

const none = { opened: 0, told: 0, closed: 0, comments: 0, reviews: 0 };

/** Compares a repository's open pull requests with its runs. */
export async function reconcileRepository(deps: Deps, repositoryId: string): Promise<RepositoryOutcome> {
  const { db } = deps.database;
  const repository = await findRepository(db, repositoryId);
  const installation = repository === null ? null : await findInstallation(db, repository.installationId);
  if (repository === null || repository.status !== 'active') return { kind: 'parked', ...none };
  if (installation !== null && installation.status !== 'active') return { kind: 'parked', ...none };

  await followReceipts(deps, repositoryId);
  const branches = await readBranches(deps, repository);
  const runs = await listOpenRuns(db, { repositoryId });
  const wanted = [...branches.values()].some((one) => one.enrolment.state !== 'absent' || one.required);
  if (!wanted && runs.length === 0) return { kind: 'not_enrolled', ...none };

  const github = await deps.github.installation(repository.installationId);
  const pulls = await github.listOpenPulls(repository);
  const counts = { ...none };
  const actor: Actor = { kind: 'app', id: deps.github.appId, via: 'schedule' };
  for (const pull of pulls) {
    const branch = branches.get(pull.baseRef) ?? (await readBranch(deps, repository, pull.baseRef, branches));
    const run = runs.find(
      (one) => one.pull === pull.number && one.installationId === repository.installationId,
    );
    if (run !== undefined) counts.reviews += await readReviews(deps, github, repository, run, pull, CAUSE);
    if (run !== undefined && isTold(run, pull)) {
      // told and never read: its sync was lost with the queue's last attempt
      if (run.head === null && branch.enrolment.state !== 'absent') await queueSync(deps, run.id);
      continue;
    }
    const outcome = await ensureRun(deps, {
      repository: repository.id,
      pull,
      reason: wasOpenAtEnrolment(pull, branch.enrolment) ? 'enrolled' : 'reconciled',
      headIsNews: true,
      enrolment: branch,
      actor,
      cause: CAUSE,
    });
    if (outcome.kind === 'not_enrolled') continue;
    if (outcome.kind === 'opened') counts.opened += 1;
    else counts.told += 1;
  }
  const open = new Set(pulls.map((pull) => pull.number));
  for (const run of runs) {
    if (run.pull === null || open.has(run.pull)) continue;
    const pull = await github.getPull(repository, run.pull);
    if (pull.state === 'open') continue;
    await closeRun(deps, { run: run.id, reason: pull.merged ? 'merged' : 'closed', actor, cause: CAUSE });
    counts.closed += 1;
  }
  counts.comments = await readComments(deps, github, repository, CAUSE);
  return { kind: 'compared', ...counts };
}

/** What the default branch and every base branch that is known say. */
async function readBranches(deps: Deps, repository: Repository): Promise<Map<string, EnrolOutcome>> {
  const branches = new Map<string, EnrolOutcome>();
  const now = (await productNow(deps.database.db)).getTime();
  for (const known of await listEnrolments(deps.database.db, repository.id)) {
    const required = known.error?.code === 'not_enrolled';
    // read again once an hour: the push that changed it may be what was lost, and each reading costs quota
    if (now - known.checkedAt.getTime() < REREAD_MS)
      branches.set(known.baseRef, { enrolment: known, appeared: false, required });
    else await readBranch(deps, repository, known.baseRef, branches);
  }
  if (!branches.has(repository.defaultBranch))
    await readBranch(deps, repository, repository.defaultBranch, branches);
  return branches;
}

async function readBranch(
  deps: Deps,
  repository: Repository,
  name: string,
  branches: Map<string, EnrolOutcome>,
): Promise<EnrolOutcome> {
  const outcome = await enrol(deps, { repository: repository.id, baseRef: name });
  branches.set(name, outcome);
  return outcome;
}

/** Whether the run was told of all that the list tells. */
function isTold(run: Run, pull: PullInfo): boolean {
  return run.toldHead === pull.head && run.baseRef === pull.baseRef && run.draft === pull.draft;
}

/** RUN-10: it waits for a push or a person. */
function wasOpenAtEnrolment(pull: PullInfo, enrolment: Enrolment): boolean {
  const { enrolledAt } = enrolment;
  if (enrolledAt === null || pull.createdAt === undefined) return false;
  return Date.parse(pull.createdAt) < enrolledAt.getTime() - JUST_OPENED_MS;
}

/** VER-4: what proves a verify command is looked at before anything else; its delivery may be what was lost. */
async function followReceipts(deps: Deps, repositoryId: string): Promise<void> {
  const runs = await listUnsettledRuns(deps.database.db, repositoryId);
  if (runs.length === 0) return;
  await deps.database.transaction(async (tx) => {
    for (const run of runs) await addJob(tx, 'settle-receipts', { run }, { key: `settle-receipts:${run}` });
  });
}

async function queueSync(deps: Deps, run: string): Promise<void> {
  await deps.database.transaction((tx) => addJob(tx, 'sync-run', { run }, { key: `sync-run:${run}` }));
}
