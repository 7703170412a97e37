/**
 * Brings a run to what its pull request is now (RUN-2…RUN-4, RUN-7, RUN-8, RUN-10). A webhook is only
 * a hint: run twice, late or out of order, it ends in the same state, and changes nothing when nothing changed.
 *
 * Reads: run, repository, blocks, verified rows. Writes: run, block, file, claim, policy, texts, its own
 * reasons; rows `run.policy run.head run.allowed run.closed run.reopened block.* decision run.people`.
 * Calls: GitHub (pull, branch, merge base, accounts of commits, permission of a stranger) and git, before the transaction.
 * May fail with: `git_unavailable`, `github_unavailable`, `github_rate_limited` (retryable, also a reason).
 */
import { listBlocks } from '../../db/store/block.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { storePolicy } from '../../db/store/policy.ts';
import { clearReason, setReason } from '../../db/store/reason.ts';
import { findNewestRun, findRun, type Run, type RunPatch, updateRun } from '../../db/store/run.ts';
import { cancelTicketsOfRun } from '../../db/store/ticket.ts';
import { previewKey } from '../domain/check.ts';
import { foldRows } from '../domain/run-state/fold.ts';
import type { RunState } from '../domain/run-state/state.ts';
import { Fault } from '../errors.ts';
import type { GitHub, PullInfo } from '../github/port.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import { closeRun } from './close-run.ts';
import type { Deps } from './deps.ts';
import { clearReading, holdReading, keepsUnread } from './hold-reading.ts';
import { wakeSharers } from './share-head.ts';
import { askAuthor, newConsent, standingConsent } from './sync-run/consent.ts';
import { refuseOlderTruth } from './sync-run/lag.ts';
import { planHead } from './sync-run/plan.ts';
import { readTruth, sourceOf, type Truth } from './sync-run/read.ts';
import { readHistory } from './sync-run/read-history.ts';
import { appender, authorship, recordHead } from './sync-run/record.ts';
import { type Accounts, askAccounts, hasPeople, recordPeople } from './sync-run/record-people.ts';
import { recordPolicy } from './sync-run/record-policy.ts';
import { BARE_POLICY, repairPlan } from './sync-run/repair.ts';
import { wholeRows } from './verify-run.ts';

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

/** Synchronises one run. */
export async function syncRun(deps: Deps, input: SyncInput): Promise<SyncOutcome> {
  for (let turn = 1; turn <= MOST_TURNS; turn++) {
    const run = await findRun(deps.database.db, input.run);
    if (run === null) throw new Fault('run_missing', `there is no run ${input.run}`);
    const outcome = await syncOnce(deps, run, turn > 1);
    if (outcome === null) continue;
    deps.log.info({ run: run.id, ...outcome }, 'sync-run');
    return outcome;
  }
  throw new Fault('git_unavailable', 'the run changes faster than it can be read', { retryable: true });
}

async function syncOnce(deps: Deps, run: Run, again: boolean): Promise<SyncOutcome | null> {
  if (run.pull === null) return { kind: 'held', reason: 'a group run has no pull request' };
  const repository = await findRepository(deps.database.db, run.repositoryId);
  if (repository === null) throw new Fault('run_missing', 'the repository of the run is not known');
  if (await isPast(deps, run, repository)) return { kind: 'closed', reason: 'another run follows it' };
  if (repository.status !== 'active') return { kind: 'held', reason: 'its repository is parked' };
  const github = await deps.github.installation(run.installationId);
  try {
    const pull = await github.getPull(repository, run.pull);
    if (pull.state === 'closed') return await close(deps, run, pull);
    return await follow(deps, run, repository, github, pull, again);
  } catch (error) {
    if (!keepsUnread(error)) throw error;
    const fault = await hold(deps, run, error);
    if (fault?.retryable === true) throw fault;
    return fault === null ? null : { kind: 'held', reason: fault.code };
  }
}

/** An earlier epoch (RUN-1): sealed, or of an installation that the repository left. A late job must not wake it. */
async function isPast(deps: Deps, run: Run, repository: Repository): Promise<boolean> {
  if (run.next !== null || repository.installationId !== run.installationId) return true;
  const newest = await findNewestRun(deps.database.db, run.repositoryId, run.pull ?? '');
  return newest !== null && newest.id !== run.id;
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
  again: boolean,
): Promise<SyncOutcome | null> {
  const source = await sourceOf(deps, github, repository);
  const truth = await readTruth(source, github, run, pull);
  const authorWrites = await askAuthor(github, repository, run, pull);
  const reading = truth.content?.reading ?? null;
  const isNew = run.head !== pull.head || run.mergeBase !== reading?.mergeBase || again;
  const accounts =
    reading !== null && isNew ? await askAccounts(github, repository, pull.number, reading) : null;
  return withRun(deps, run.id, async (unit) => {
    if (movedMeanwhile(run, unit.run)) return null;
    const rows = await wholeRows(deps, unit.run, { reader: unit.tx });
    if (rows === null) {
      // nothing is built on rows that do not verify; the gate says which (LED-8)
      enqueueGate(unit);
      return { kind: 'held', reason: 'ledger_invalid' };
    }
    const state = foldRows(rows);
    refuseOlderTruth(unit, state, truth);
    // a head of an earlier version, whose makers were never asked for
    if (reading !== null && accounts === null && !hasPeople(state, reading)) return null;
    const people = { authorWrites, accounts };
    return record(deps, unit, state, rows, truth, people);
  });
}

async function record(
  deps: Deps,
  unit: RunUnit,
  state: RunState,
  rows: Parameters<typeof planHead>[5],
  truth: Truth,
  { authorWrites, accounts }: { readonly authorWrites: boolean | null; readonly accounts: Accounts | null },
): Promise<SyncOutcome> {
  const { run, tx } = unit;
  const { pull, policy, content, repair } = truth;
  const append = appender(unit, deps);
  let changed = false;
  if (run.status === 'closed' || run.status === 'merged') {
    append('run.reopened', null, { head: pull.head });
    changed = true;
  }
  if (await recordPolicy(unit, append, state, policy)) changed = true;
  const patch: RunPatch = patchOf(unit, state, truth);
  let files = run.head === pull.head ? state.files.size : 0;
  if (content !== null) {
    const [given, hash] = policy.state === 'valid' ? [policy.policy, policy.hash] : [BARE_POLICY, null];
    const consent = newConsent(run, state, given, pull, authorWrites, wasAbsent(rows));
    if (consent !== null) append('run.allowed', null, consent);
    const stored = await listBlocks(tx, run.id);
    const history = await readHistory(tx, run.repositoryId, given, content.reading);
    const planned = planHead(content, given, hash ?? '', pull.body, stored, rows, history);
    const plan = repair === null ? planned : repairPlan(planned);
    const made = accounts !== null && recordPeople(append, state, content.reading, accounts);
    const recorded = await recordHead(unit, append, state, truth, plan, hash, stored, rows);
    if (made) changed = true;
    // nothing of a repair is spent on, and what was under way is of a policy that holds no more (RUN-9)
    if (recorded && repair !== null) {
      await storePolicy(tx, repair.bytes);
      await cancelTicketsOfRun(tx, run.id, 'left_the_change');
    }
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
    if (run.toldHead !== pull.head) {
      await wakeSharers(unit, run.toldHead);
      await wakeSharers(unit, pull.head);
    }
  }
  if (await clearReading(unit)) changed = true;
  if (changed) {
    unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}` });
    enqueueGate(unit);
    if (truth.touchesPolicy) enqueuePreview(unit, pull.number);
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

/** Null where another sync came past what failed here: nothing holds any more, and it is read again. */
async function hold(deps: Deps, run: Run, error: Fault): Promise<Fault | null> {
  return withRun(deps, run.id, async (unit) => {
    if (movedMeanwhile(run, unit.run)) return null;
    const { fault, changed } = await holdReading(unit, error);
    if (changed) enqueueGate(unit);
    return fault;
  });
}

/** GIT-4: a path that GitHub names and git lacks holds the gate; a count that differs is a note for doctor. */
async function noteCounts(deps: Deps, { run, tx }: RunUnit, { pull, content }: Truth): Promise<boolean> {
  if (content === null) return false;
  const { commits, files, renames } = content.reading;
  // GitHub counts a pair once, and finds more of them or fewer
  const counted = pull.changedFiles <= files.length && pull.changedFiles >= files.length - renames.length;
  if (commits.length !== pull.commits || !counted || content.unseen.length > 0) {
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

function enqueuePreview(unit: RunUnit, pull: string): void {
  const { repositoryId } = unit.run;
  const key = previewKey(repositoryId, pull);
  unit.enqueue('preview-policy', { repository: repositoryId, pull }, { key, priority: 5 });
}
