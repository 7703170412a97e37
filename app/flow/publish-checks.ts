/**
 * Publishes one check run name on one commit (PUB-1…PUB-4): reconciles what GitHub shows with what
 * the verified rows say, one process at a time per (repository, sha, name). Create is not idempotent:
 * the intent is committed, then GitHub is asked once, then its id is committed; an intent without an
 * id is looked up by `external_id` first.
 *
 * Reads: runs of that head, their ledgers, check runs. Writes: check runs, a ledger's reason, decide-gate
 * jobs. Calls: GitHub's check runs, git for line counts. May fail with: `lock_busy`, what Postgres does; what
 * GitHub does waits in the check run's `due_at`.
 */
import {
  type CheckUnit,
  deferCheck,
  listChecks,
  listDueChecks,
  type StoredCheck,
  wantCheck,
} from '../../db/store/check.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { addJobs } from '../../db/store/job.ts';
import { withLock } from '../../db/store/lock.ts';
import {
  blockOfCheckName,
  FINDINGS_NAME,
  GROUP_NAME,
  isGateName,
  isStuck,
  PREVIEW_NAME,
  publishKey,
} from '../domain/check.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';
import type { Judged } from './judge-run.ts';
import { proveRun } from './prove-run.ts';
import { nextStep, settle } from './publish-checks/next-step.ts';
import { postRemarks } from './publish-checks/post-remarks.ts';
import { wantBlock } from './publish-checks/want-block.ts';
import { type WantedFindings, wantFindings } from './publish-checks/want-findings.ts';
import { judgeHead, placesOf, type Wanted, wantGate } from './publish-checks/want-gate.ts';
import { wantGroup } from './publish-checks/want-group.ts';
import { wantPreview } from './publish-checks/want-preview.ts';
import { WATCH_MS, write } from './publish-checks/write.ts';

/** What to publish. */
export interface PublishChecksInput {
  readonly repository: string;
  readonly sha: string;
  readonly name: string;
  /** Somebody asked for the check again, and GitHub may show it as queued by itself: what was written is written once more (case 41). */
  readonly again?: boolean;
}

/** What became of it. */
export type PublishChecksOutcome =
  /** GitHub shows what it should, by this call or before. */
  | { readonly kind: 'created' | 'updated' | 'unchanged'; readonly n: number }
  /** There is nothing to show, or it has to be decided first. */
  | { readonly kind: 'nothing' | 'undecided' }
  /** The row waits: for the interval between updates, or for GitHub. */
  | { readonly kind: 'waiting'; readonly code: string };

/** How long another process may hold the unit before the job is tried again. */
const LOCK_MS = 30_000;
const BACKOFF_MIN_MS = 2_000;
const BACKOFF_MAX_MS = 10 * 60_000;
/** After so many failures in a row (OPS-10) it is looked at once an hour. */
const BACKOFF_LAST_MS = 3_600_000;
const WAITS: ReadonlySet<string> = new Set([
  'github_unavailable',
  'github_rate_limited',
  'github_refused',
  'github_not_found',
  'permissions_missing',
  'installation_gone',
]);

/** Publishes one unit. Running it twice, late or at once writes nothing twice. */
export async function publishChecks(deps: Deps, input: PublishChecksInput): Promise<PublishChecksOutcome> {
  const unit: CheckUnit = { repositoryId: input.repository, sha: input.sha, name: input.name };
  const key = publishKey(unit.repositoryId, unit.sha, unit.name);
  const outcome = await withLock(deps.database, key, LOCK_MS, () =>
    publishLocked(deps, unit, input.again ?? false),
  );
  deps.log.info(
    { repository: unit.repositoryId, sha: unit.sha, name: unit.name, ...outcome },
    'publish-checks',
  );
  return outcome;
}

/** Hands units whose time has come to jobs: coalesced updates, failed writes, writes of a process that died. */
export async function sweepChecks(deps: Deps): Promise<number> {
  const due = await listDueChecks(deps.database.db, 500);
  await addJobs(
    deps.database.db,
    due.map((unit) => ({
      task: 'publish-checks',
      payload: { repository: unit.repositoryId, sha: unit.sha, name: unit.name },
      key: publishKey(unit.repositoryId, unit.sha, unit.name),
      priority: isGateName(unit.name) ? 1 : 3,
    })),
  );
  return due.length;
}

async function publishLocked(deps: Deps, unit: CheckUnit, again: boolean): Promise<PublishChecksOutcome> {
  const { db } = deps.database;
  const repository = await findRepository(db, unit.repositoryId);
  if (repository === null || repository.status !== 'active') return { kind: 'nothing' };
  const [shown] = await listChecks(db, unit);
  // a preview, and what a merge group found, show no verdict of a run of this head, so that none has to be decided before it
  const alone = unit.name === PREVIEW_NAME || unit.name === GROUP_NAME;
  const judged = alone ? [] : await judgeHead(deps, unit);
  if (judged === null) return { kind: 'undecided' };
  const wanted = await want(unit.name)(deps, unit, repository, judged, shown);
  if (wanted === null) {
    if (again && shown?.state === 'concluded') await owe(deps, unit, shown);
    else if (shown?.dueAtMs != null) await settle(deps, unit, shown);
    return { kind: 'nothing' };
  }
  const step = await nextStep(deps, unit, shown, wanted, again);
  if (typeof step !== 'number') {
    if (step.kind !== 'unchanged') return step;
    return remark(deps, unit, repository, wanted, step);
  }
  try {
    // the checks of findings and blocks satisfy no rule: only the gate's success is worth a forgery
    const green = wanted.content.conclusion === 'success' && isGateName(unit.name);
    if (green && !(await proved(deps, judged))) return { kind: 'undecided' };
    const written = await write(deps, unit, repository, shown?.n === step ? shown : undefined, step, wanted);
    return await remark(deps, unit, repository, wanted, written);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return waitFor(deps, unit, step, error);
  }
}

function want(name: string) {
  if (name === FINDINGS_NAME) return wantFindings;
  if (name === GROUP_NAME) return wantGroup;
  if (name === PREVIEW_NAME) return wantPreview;
  return blockOfCheckName(name) === null ? wantGate : wantBlock;
}

/** After the check of findings its review of suggestions (PUB-5): comments come last, and hold up nothing. */
async function remark(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  wanted: Wanted | WantedFindings,
  outcome: PublishChecksOutcome,
): Promise<PublishChecksOutcome> {
  if (!('remarks' in wanted) || wanted.remarks === null || !('n' in outcome)) return outcome;
  const run = { id: wanted.runId, page: placesOf(deps, wanted.runId, repository).run };
  try {
    const posted = await postRemarks(deps, unit, repository, wanted.remarks, run);
    if (posted === 'settled') return outcome;
    // refused: the summary names all suggestions at once; later: the lines are read again
    await deferCheck(deps.database.db, unit, outcome.n, posted === 'refused' ? 0 : WATCH_MS, null);
    return outcome;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (!WAITS.has(error.code)) throw error;
    // a failure of the review is none of the check's, which is written
    const backoff = WATCH_MS * 2 ** Math.min(wanted.remarks.attempts, 5);
    await deferCheck(deps.database.db, unit, outcome.n, Math.max(backoff, error.retryAfterMs ?? 0), null);
    return { kind: 'waiting', code: error.code };
  }
}

/** GitHub may show it as queued by itself now (case 41): its next verdict is written even where it says the same. */
async function owe(deps: Deps, unit: CheckUnit, shown: StoredCheck): Promise<void> {
  const { runId, plan, n } = shown;
  await wantCheck(deps.database.db, unit, n, { runId, wanted: 'asked again', plan, retryInMs: WATCH_MS });
}

/**
 * LED-9: what GitHub keeps is a prefix of each chain behind a success, asked when it is written: rows
 * cut back to an earlier green decide nothing anew. What is not is said, and decided again.
 */
async function proved(deps: Deps, judged: readonly Judged[]): Promise<boolean> {
  let all = true;
  for (const { run } of judged) if ((await proveRun(deps, run)) === null) all = false;
  return all;
}

/** Faults of GitHub wait in the row (a fork's commit that is not there yet is a refusal too, case 7); ours are thrown. */
async function waitFor(deps: Deps, unit: CheckUnit, n: number, fault: Fault): Promise<PublishChecksOutcome> {
  if (!WAITS.has(fault.code)) throw fault;
  const [row] = await listChecks(deps.database.db, unit);
  if (row === undefined || row.n !== n) throw fault;
  // a limit is no failure: it says itself when to come back, however often
  const failed = fault.code !== 'github_rate_limited';
  const attempts = row.attempts + (failed ? 1 : 0);
  const stuck = isStuck({ attempts });
  const backoff = stuck ? BACKOFF_LAST_MS : Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** row.attempts);
  if (stuck && failed) deps.log.error({ ...unit, n, code: fault.code, attempts }, 'publish-checks.stuck');
  const wait = failed ? Math.max(backoff, fault.retryAfterMs ?? 0) : (fault.retryAfterMs ?? backoff);
  await deferCheck(deps.database.db, unit, n, wait, failed ? fault.code : null);
  return { kind: 'waiting', code: fault.code };
}
