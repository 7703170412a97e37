/**
 * Brings a run to what its pull request is now (RUN-2…RUN-4, RUN-7, RUN-8, RUN-10). A webhook is only
 * a hint: run twice, late or out of order, it ends in the same state, and changes nothing when nothing changed.
 *
 * Reads: run, repository, blocks, verified rows. Writes: run, block, file, claim, policy, texts, its own
 * reasons; rows `run.policy run.head run.allowed run.closed run.reopened block.* decision`.
 * Calls: GitHub (pull, branch, merge base, permission of a stranger) and git, before the transaction.
 * May fail with: `git_unavailable`, `github_unavailable`, `github_rate_limited` (retryable, also a reason).
 */
import { listBlocks } from '../../db/store/block.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { storePolicy } from '../../db/store/policy.ts';
import { clearReason, setReason } from '../../db/store/reason.ts';
import { findRun, type Run, type RunPatch, updateRun } from '../../db/store/run.ts';
import { putText } from '../../db/store/text.ts';
import { foldRows } from '../domain/run-state/fold.ts';
import type { RunState } from '../domain/run-state/state.ts';
import { Fault } from '../errors.ts';
import type { GitHub, PullInfo } from '../github/port.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import { closeRun } from './close-run.ts';
import type { Deps } from './deps.ts';
import { askAuthor, newConsent, standingConsent } from './sync-run/consent.ts';
import { planHead } from './sync-run/plan.ts';
import { type BasePolicy, readTruth, sourceOf, type Truth } from './sync-run/read.ts';
import { type Append, appender, authorship, recordHead } from './sync-run/record.ts';
import { verifyRun } from './verify-run.ts';

/** Which run. */
export interface SyncInput {
  readonly run: string;
}

/** What came of it. */
export type SyncOutcome =
  | { readonly kind: 'synced' | 'unchanged'; readonly head: string; readonly files: number }
  | { readonly kind: 'closed' | 'held'; readonly reason: string };

/** Another sync of the same run may commit while this one reads: then it reads again, this often. */
const MOST_TURNS = 4;
/** How long a head that a webhook told of may be newer than what GitHub's API answers (case 7). */
const LAG_MS = 60_000;
/** Codes that are reasons of the run while they last. */
const HELD = ['git_unavailable', 'no_merge_base'] as const;

/** Synchronises one run. */
export async function syncRun(deps: Deps, input: SyncInput): Promise<SyncOutcome> {
  for (let turn = 1; turn <= MOST_TURNS; turn++) {
    const run = await findRun(deps.database.db, input.run);
    if (run === null) throw new Fault('run_missing', `there is no run ${input.run}`);
    const outcome = await syncOnce(deps, run);
    if (outcome === null) continue;
    deps.log.info({ run: run.id, ...outcome }, 'sync-run');
    return outcome;
  }
  throw new Fault('git_unavailable', 'the run changes faster than it can be read', { retryable: true });
}

async function syncOnce(deps: Deps, run: Run): Promise<SyncOutcome | null> {
  if (run.pull === null) return { kind: 'held', reason: 'a group run has no pull request' };
  const repository = await findRepository(deps.database.db, run.repositoryId);
  if (repository === null) throw new Fault('run_missing', 'the repository of the run is not known');
  const github = await deps.github.installation(run.installationId);
  try {
    const pull = await github.getPull(repository, run.pull);
    if (pull.state === 'closed') return await close(deps, run, pull);
    return await follow(deps, run, repository, github, pull);
  } catch (error) {
    if (error instanceof Fault && (error.code === 'git_unavailable' || error.code === 'no_merge_base')) {
      await hold(deps, run, error);
      if (!error.retryable) return { kind: 'held', reason: error.code };
    }
    throw error;
  }
}

/** A pull request that was closed or merged: pending work ends, what was found stays (RUN-7). */
async function close(deps: Deps, run: Run, pull: PullInfo): Promise<SyncOutcome> {
  const reason = pull.merged ? 'merged' : 'closed';
  await closeRun(deps, { run: run.id, reason, ...authorship(deps, run) });
  return { kind: 'closed', reason };
}

async function follow(
  deps: Deps,
  run: Run,
  repository: Repository,
  github: GitHub,
  pull: PullInfo,
): Promise<SyncOutcome | null> {
  const source = await sourceOf(deps, github, repository);
  const truth = await readTruth(source, github, run, pull);
  const authorWrites = await askAuthor(github, repository, run, pull);
  return withRun(deps, run.id, async (unit) => {
    if (movedMeanwhile(run, unit.run)) return null;
    const { verdict, rows } = await verifyRun(deps, unit.run, { reader: unit.tx });
    if (verdict.kind !== 'intact') {
      // nothing is built on rows that do not verify; the gate says which (LED-8)
      enqueueGate(unit);
      return { kind: 'held', reason: 'ledger_invalid' };
    }
    const state = foldRows(rows);
    refuseOlderTruth(unit, state, truth);
    return record(deps, unit, state, rows, truth, authorWrites);
  });
}

async function record(
  deps: Deps,
  unit: RunUnit,
  state: RunState,
  rows: Parameters<typeof planHead>[5],
  truth: Truth,
  authorWrites: boolean | null,
): Promise<SyncOutcome> {
  const { run, tx } = unit;
  const { pull, policy, content } = truth;
  const append = appender(unit, deps);
  let changed = false;
  if (run.status === 'closed' || run.status === 'merged') {
    append('run.reopened', null, { head: pull.head });
    changed = true;
  }
  if (await recordPolicy(unit, append, state, policy)) changed = true;
  const patch: RunPatch = patchOf(unit, state, truth);
  let files = run.head === pull.head ? state.files.size : 0;
  if (content !== null && policy.state === 'valid') {
    const consent = newConsent(run, state, policy.policy, pull, authorWrites, wasAbsent(rows));
    if (consent !== null) append('run.allowed', null, consent);
    const stored = await listBlocks(tx, run.id);
    const plan = planHead(content, policy.policy, policy.hash, pull.body, stored, rows);
    const recorded = await recordHead(unit, append, state, truth, plan, policy.hash, stored, rows);
    files = plan.files.length;
    if (await noteCounts(deps, unit, truth)) changed = true;
    const guarded = plan.files.some((file) => file.ownership === 'guarded');
    const allowances = consent === null ? state.allowances : [...state.allowances, consent];
    const standing = standingConsent(allowances, pull.head, guarded);
    patch.allowedRule = standing?.rule ?? null;
    patch.allowedScope = standing?.scope ?? null;
    patch.allowedHead = standing?.head ?? null;
    // the base is told with the head it was recorded at
    if (recorded || run.base === null) Object.assign(patch, { base: policy.commit });
    if (recorded || consent !== null) changed = true;
  }
  if (differs(run, patch)) {
    await updateRun(tx, run.id, patch);
    changed = true;
  }
  for (const code of HELD) if (await clearReason(tx, run.id, code)) changed = true;
  if (changed) {
    unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}` });
    enqueueGate(unit);
  }
  return { kind: changed ? 'synced' : 'unchanged', head: pull.head, files };
}

/** A rule required our check before there was a policy: the pull request was open at enrolment (RUN-10). */
function wasAbsent(rows: Parameters<typeof planHead>[5]): boolean {
  return rows.some((row) => row.kind === 'run.policy' && row.data.state === 'absent');
}

function patchOf(unit: RunUnit, state: RunState, { pull, policy, content }: Truth): RunPatch {
  const { run } = unit;
  const over = run.status === 'closed' || run.status === 'merged';
  return {
    status: over ? 'open' : run.status,
    title: pull.title.replaceAll('\u0000', '').toWellFormed(),
    draft: pull.draft,
    // a deleted account or fork is told as null: what was known of the author stays (case 9)
    authorId: pull.author?.id ?? run.authorId,
    authorLogin: pull.author?.login ?? run.authorLogin,
    headRepositoryId: pull.headRepositoryId,
    headRef: pull.headRef,
    baseRef: pull.baseRef,
    toldHead: pull.head,
    headAt: run.toldHead === pull.head ? run.headAt : unit.now,
    head: content === null ? run.head : pull.head,
    mergeBase: content === null ? run.mergeBase : content.reading.mergeBase,
    policyHash: policy.state === 'valid' ? policy.hash : null,
    mode: policy.state === 'valid' ? policy.policy.mode : (state.policy?.mode ?? run.mode),
  };
}

async function recordPolicy(
  unit: RunUnit,
  append: Append,
  state: RunState,
  policy: BasePolicy,
): Promise<boolean> {
  const hash = policy.state === 'absent' ? null : policy.hash;
  if (state.policy?.state === policy.state && state.policy.hash === hash) return false;
  if (policy.state === 'valid') await storePolicy(unit.tx, policy.bytes);
  const error =
    policy.state === 'invalid'
      ? {
          error: {
            code: policy.error.code,
            line: policy.error.line,
            text: await putText(unit.tx, policy.error.message),
          },
        }
      : {};
  append('run.policy', null, {
    state: policy.state,
    hash,
    commit: policy.commit,
    mode: policy.state === 'valid' ? policy.policy.mode : (state.policy?.mode ?? unit.run.mode),
    ...error,
  });
  return true;
}

/** Whether another sync committed since `seen` was read: its reading may be newer than ours. */
function movedMeanwhile(seen: Run, now: Run): boolean {
  return (
    seen.head !== now.head ||
    seen.mergeBase !== now.mergeBase ||
    seen.policyHash !== now.policyHash ||
    seen.baseRef !== now.baseRef ||
    seen.status !== now.status ||
    seen.draft !== now.draft
  );
}

/**
 * A webhook may tell of a head that GitHub's API does not answer yet (case 7); a late webhook may
 * tell of one that is over. A head nobody knows is waited for, a little while.
 */
function refuseOlderTruth(unit: RunUnit, state: RunState, { pull, content }: Truth): void {
  const { run } = unit;
  if (run.toldHead === pull.head || unit.now.getTime() - run.headAt.getTime() > LAG_MS) return;
  const known =
    state.heads.some((head) => head.head === run.toldHead) ||
    content?.reading.commits.some((commit) => commit.oid === run.toldHead) === true;
  if (known) return;
  throw new Fault('git_unavailable', `GitHub does not show the head ${run.toldHead} yet`, {
    retryable: true,
  });
}

async function hold(deps: Deps, run: Run, error: Fault): Promise<void> {
  await withRun(deps, run.id, async (unit) => {
    const other = HELD.find((code) => code !== error.code);
    const cleared = other === undefined ? false : await clearReason(unit.tx, run.id, other);
    // no deadline of its own: the gate counts its deadline from when the reason began
    const set = await setReason(unit.tx, run.id, {
      code: error.code,
      dueAtMs: null,
      detail: error.message.slice(0, 200),
    });
    if (set || cleared) enqueueGate(unit);
  });
}

/** GIT-4: a path that GitHub names and git lacks holds the gate; a count that differs is a note for doctor. */
async function noteCounts(deps: Deps, { run, tx }: RunUnit, { pull, content }: Truth): Promise<boolean> {
  if (content === null) return false;
  const { commits, files } = content.reading;
  if (commits.length !== pull.commits || content.unseen.length > 0) {
    const told = { told_files: pull.changedFiles, told_commits: pull.commits };
    const found = { files: files.length, commits: commits.length, unseen: content.unseen.length };
    deps.log.warn({ run: run.id, ...found, ...told }, 'sync-run.counts-differ');
  }
  if (content.unseen.length === 0) return clearReason(tx, run.id, 'coverage_gap');
  const detail = `GitHub names ${content.unseen.length} paths that git does not have: ${content.unseen.slice(0, 3).join(', ')}`;
  return setReason(tx, run.id, {
    code: 'coverage_gap',
    dueAtMs: null,
    detail: detail.replaceAll('\u0000', '').toWellFormed().slice(0, 200),
  });
}

function differs(run: Run, patch: RunPatch): boolean {
  return Object.entries(patch).some(([key, value]) => {
    const before = run[key as keyof Run];
    return before instanceof Date && value instanceof Date
      ? before.getTime() !== value.getTime()
      : before !== value;
  });
}

function enqueueGate(unit: RunUnit): void {
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
}
