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
  identifyCheck,
  intendCheck,
  listChecks,
  listDueChecks,
  type StoredCheck,
  wantCheck,
  writtenCheck,
} from '../../db/store/check.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { addJobs } from '../../db/store/job.ts';
import { withLock } from '../../db/store/lock.ts';
import { setReason } from '../../db/store/reason.ts';
import { productNow } from '../../db/store/run.ts';
import { blockOfCheckName, FINDINGS_NAME, isGateName, publishKey } from '../domain/check.ts';
import { LIMITS } from '../domain/limits.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';
import { fetchProof } from './fetch-proof.ts';
import { type Judged, ledgerFault } from './judge-run.ts';
import { annotate, planOf } from './publish-checks/annotate.ts';
import { create, lookUp } from './publish-checks/create.ts';
import { wantBlock } from './publish-checks/want-block.ts';
import { type WantedFindings, wantFindings } from './publish-checks/want-findings.ts';
import { judgeHead, type Wanted, wantGate } from './publish-checks/want-gate.ts';
import { verifyRun } from './verify-run.ts';

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
/** When a sweep looks again after a write whose end we did not live to see. */
const WATCH_MS = 60_000;
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
    })),
  );
  return due.length;
}

async function publishLocked(deps: Deps, unit: CheckUnit, again: boolean): Promise<PublishChecksOutcome> {
  const { db } = deps.database;
  const repository = await findRepository(db, unit.repositoryId);
  if (repository === null || repository.status !== 'active') return { kind: 'nothing' };
  const [shown] = await listChecks(db, unit);
  const judged = await judgeHead(deps, unit);
  if (judged === null) return { kind: 'undecided' };
  const wanted = await want(unit.name)(deps, unit, repository, judged, shown);
  if (wanted === null) {
    if (again && shown?.state === 'concluded') await owe(deps, unit, shown);
    else if (shown?.dueAtMs != null) await settle(deps, unit, shown);
    return { kind: 'nothing' };
  }
  const step = await nextStep(deps, unit, shown, wanted, again);
  if (typeof step !== 'number') return step;
  try {
    // the checks of findings and blocks satisfy no rule: only the gate's success is worth a forgery
    const green = wanted.content.conclusion === 'success' && isGateName(unit.name);
    if (green && !(await proved(deps, judged))) return { kind: 'undecided' };
    return await write(deps, unit, repository, shown?.n === step ? shown : undefined, step, wanted);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return waitFor(deps, unit, step, error);
  }
}

function want(name: string) {
  if (name === FINDINGS_NAME) return wantFindings;
  return blockOfCheckName(name) === null ? wantGate : wantBlock;
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
  for (const { run } of judged) {
    const { notes } = await fetchProof(deps, run);
    const { verdict } = await verifyRun(deps, run, { published: notes });
    if (verdict.kind === 'intact') continue;
    all = false;
    await deps.database.transaction(async (tx) => {
      await setReason(tx, run.id, { ...ledgerFault(verdict, null), dueAtMs: null });
      await addJobs(tx, [{ task: 'decide-gate', payload: { run: run.id }, key: `decide-gate:${run.id}` }]);
    });
  }
  return all;
}

/** The check run to write (an existing n, or the next), or why nothing is written now. */
async function nextStep(
  deps: Deps,
  unit: CheckUnit,
  shown: StoredCheck | undefined,
  wanted: Wanted | WantedFindings,
  again: boolean,
): Promise<number | PublishChecksOutcome> {
  if (shown === undefined) return wanted.superseded ? { kind: 'nothing' } : 1;
  const same = !again && shown.written === wanted.digest && shown.wanted === wanted.digest;
  if (shown.state === 'concluded') {
    const green = shown.conclusion === 'success';
    // "never set back" has one exception: a success on a commit that is nobody's head
    if (wanted.superseded) return green || again ? shown.n : unchanged(deps, unit, shown);
    const undecided = wanted.content.conclusion === undefined;
    if (undecided || shown.conclusion === 'cancelled') return shown.n + 1;
    if (same) return unchanged(deps, unit, shown);
    const turned = wanted.once === true && shown.conclusion !== wanted.content.conclusion;
    return turned || outdated(shown, wanted) ? shown.n + 1 : shown.n;
  }
  if (same) return unchanged(deps, unit, shown);
  if (shown.state === 'open' && wanted.content.conclusion === undefined && shown.writtenAtMs !== null) {
    const rest =
      shown.writtenAtMs + LIMITS.publishIntervalMs.default - (await productNow(deps.database.db)).getTime();
    // between two updates under way; a first gate and a conclusion never wait
    if (rest > 0) {
      await deferCheck(deps.database.db, unit, shown.n, rest, false);
      return { kind: 'waiting', code: 'interval' };
    }
  }
  return shown.n;
}

/** Whether an annotation that is there no longer belongs: GitHub only appends, so another check run starts. */
function outdated(shown: StoredCheck, wanted: Wanted | WantedFindings): boolean {
  if (!('order' in wanted) || shown.plan === null) return false;
  const open = new Set(wanted.order);
  return shown.plan.order.slice(0, shown.annotations).some((number) => !open.has(number));
}

async function unchanged(deps: Deps, unit: CheckUnit, shown: StoredCheck): Promise<PublishChecksOutcome> {
  await settle(deps, unit, shown);
  return { kind: 'unchanged', n: shown.n };
}

/** Nothing is left to do for a row: no sweep needs to look. */
async function settle(deps: Deps, unit: CheckUnit, shown: StoredCheck): Promise<void> {
  if (shown.dueAtMs === null || shown.written === null) return;
  const { conclusion, written, annotations, seq } = shown;
  await writtenCheck(deps.database.db, unit, shown.n, {
    conclusion,
    written,
    annotations,
    seq,
    dueInMs: null,
  });
}

async function write(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  shown: StoredCheck | undefined,
  n: number,
  wanted: Wanted | WantedFindings,
): Promise<PublishChecksOutcome> {
  const { db } = deps.database;
  const plan = planOf(shown, wanted);
  const intent = { runId: wanted.runId, wanted: wanted.digest, plan, retryInMs: WATCH_MS };
  if (shown === undefined) await deps.database.transaction((tx) => intendCheck(tx, unit, { n, ...intent }));
  else await wantCheck(db, unit, n, intent);
  const github = await deps.github.installation(repository.installationId);
  let githubId = shown?.githubId ?? null;
  let there = shown?.annotations ?? 0;
  let created = false;
  if (githubId === null && shown !== undefined) {
    const found = await lookUp(github, unit, repository, n);
    githubId = found?.id ?? null;
    there = found?.annotations ?? 0;
    if (githubId !== null) await identifyCheck(db, unit, n, githubId);
    // an old commit that never got its check run needs none
    else if (wanted.superseded) return written(deps, unit, n, wanted, 0, 'updated');
  } else if (shown !== undefined && githubId !== null && plan !== null && shown.written !== shown.wanted) {
    // an earlier write may have got further than we know: GitHub's count decides
    there = (await github.getCheckRun(repository, githubId))?.annotations ?? there;
  }
  if (githubId === null) {
    const first = await create(github, unit, repository, n, plan, wanted);
    githubId = first.id;
    there = first.posted;
    created = true;
    if (first.whole) return written(deps, unit, n, wanted, there, 'created', githubId);
    await identifyCheck(db, unit, n, githubId);
  }
  if (plan === null || !('order' in wanted)) {
    await github.updateCheckRun(repository, githubId, wanted.content);
    return written(deps, unit, n, wanted, there, created ? 'created' : 'updated');
  }
  const concluded = shown?.state === 'concluded';
  const input = { github, repository, unit, n, githubId, posted: there, plan, wanted, concluded };
  const { posted } = await annotate(deps, input);
  return written(deps, unit, n, wanted, posted, created ? 'created' : 'updated');
}

async function written(
  deps: Deps,
  unit: CheckUnit,
  n: number,
  wanted: Wanted,
  annotations: number,
  kind: 'created' | 'updated',
  githubId?: string,
): Promise<PublishChecksOutcome> {
  const conclusion = wanted.content.conclusion ?? null;
  const { digest, seq } = wanted;
  await writtenCheck(deps.database.db, unit, n, {
    conclusion,
    written: digest,
    annotations,
    seq,
    dueInMs: null,
    ...(githubId === undefined ? {} : { githubId }),
  });
  return { kind, n };
}

/** Faults of GitHub wait in the row (a fork's commit that is not there yet is a refusal too, case 7); ours are thrown. */
async function waitFor(deps: Deps, unit: CheckUnit, n: number, fault: Fault): Promise<PublishChecksOutcome> {
  if (!WAITS.has(fault.code)) throw fault;
  const [row] = await listChecks(deps.database.db, unit);
  if (row === undefined || row.n !== n) throw fault;
  const spent = row.attempts >= LIMITS.jobAttempts.default;
  const backoff = spent ? BACKOFF_LAST_MS : Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** row.attempts);
  if (spent) deps.log.error({ ...unit, n, code: fault.code }, 'publish-checks.still-failing');
  await deferCheck(deps.database.db, unit, n, Math.max(backoff, fault.retryAfterMs ?? 0), true);
  return { kind: 'waiting', code: fault.code };
}
