/**
 * Brings a merge group's run to what the group is (GAT-5): its members from the queue, its tree against
 * the clean merge of them, how each path is known, and each member's verdict on the head that was queued.
 * Run twice, late or out of order, it changes nothing when nothing changed. What was listed once stays: a
 * queue that moves on makes another group of it.
 *
 * Reads: run, repository, verified rows of the group and of its members. Writes: run, file, group_member,
 * policy, texts, its own reason; rows `run.policy run.head run.allowed decision group.*`.
 * Calls: GitHub (queue, rules, branch) and git, before the transaction. Queues: cut-tickets, decide-gate,
 * sync-run of members. May fail with: `git_unavailable`, `github_unavailable`, `github_rate_limited` (retryable).
 */
import { listMembers } from '../../db/store/group.ts';
import { findRepository } from '../../db/store/installation.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import { foldRows } from '../domain/run-state/fold.ts';
import type { RunState } from '../domain/run-state/state.ts';
import { Fault } from '../errors.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { clearReading, holdReading, keepsUnread } from './hold-reading.ts';
import { judgeMembers } from './sync-group/members.ts';
import { readGroupTruth } from './sync-group/read.ts';
import { recordReading, recordStanding } from './sync-group/record.ts';
import { wholeRows } from './verify-run.ts';

/** Which run. */
export interface SyncGroupInput {
  readonly run: string;
}

/** What came of it. */
export type SyncGroupOutcome =
  | { readonly kind: 'synced' | 'unchanged'; readonly members: number; readonly unknown: number }
  | { readonly kind: 'over' | 'held'; readonly reason: string };

/** Synchronises one merge group. */
export async function syncGroup(deps: Deps, input: SyncGroupInput): Promise<SyncGroupOutcome> {
  const run = await findRun(deps.database.db, input.run);
  if (run === null) throw new Fault('run_missing', `there is no run ${input.run}`);
  const outcome = await syncOnce(deps, run);
  deps.log.info({ run: run.id, ...outcome }, 'sync-group');
  return outcome;
}

async function syncOnce(deps: Deps, run: Run): Promise<SyncGroupOutcome> {
  if (run.groupHead === null) return { kind: 'held', reason: 'a pull request is no group' };
  if (isOver(run)) return { kind: 'over', reason: run.status };
  const repository = await findRepository(deps.database.db, run.repositoryId);
  if (repository === null) throw new Fault('run_missing', 'the repository of the run is not known');
  const known = await stateOf(deps, run);
  if (known === null) return held(deps, run);
  try {
    if (known.group === null || !known.group.read.listed || known.heads.length === 0) {
      const truth = await readGroupTruth(deps, run, repository, known);
      // nothing to add to what is known already: still not listed
      if (truth !== null) await withRun(deps, run.id, (unit) => readingUnit(deps, unit, truth));
    }
  } catch (error) {
    throw keepsUnread(error) ? await hold(deps, run, error) : error;
  }
  // after the members were committed: from here on a member's new verdict brings the group back here
  const members = await judgeMembers(deps, run, await listMembers(deps.database.db, run.id));
  const outcome = await withRun(deps, run.id, async (unit): Promise<SyncGroupOutcome | null> => {
    if (isOver(unit.run)) return { kind: 'over', reason: unit.run.status };
    const state = await stateIn(deps, unit);
    if (state === null) return null;
    const standing = await recordStanding(deps, unit, state, members);
    let changed = standing.changed;
    if (await clearReading(unit)) changed = true;
    if (changed) {
      unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}`, priority: -5 });
      enqueueGate(unit);
    }
    return { kind: changed ? 'synced' : 'unchanged', members: members.length, unknown: standing.unknown };
  });
  return outcome ?? held(deps, run);
}

async function readingUnit(
  deps: Deps,
  unit: RunUnit,
  truth: NonNullable<Awaited<ReturnType<typeof readGroupTruth>>>,
): Promise<void> {
  if (isOver(unit.run)) return;
  const state = await stateIn(deps, unit);
  if (state === null) return;
  await recordReading(deps, unit, state, truth);
  enqueueGate(unit);
}

function isOver(run: Run): boolean {
  return run.status === 'closed' || run.status === 'merged';
}

async function stateOf(deps: Deps, run: Run): Promise<RunState | null> {
  const rows = await wholeRows(deps, run);
  return rows === null ? null : foldRows(rows);
}

async function stateIn(deps: Deps, unit: RunUnit): Promise<RunState | null> {
  const rows = await wholeRows(deps, unit.run, { reader: unit.tx });
  return rows === null ? null : foldRows(rows);
}

/** Nothing is built on rows that do not verify; the gate says which (LED-8). */
async function held(deps: Deps, run: Run): Promise<SyncGroupOutcome> {
  await withRun(deps, run.id, async (unit) => enqueueGate(unit));
  return { kind: 'held', reason: 'ledger_invalid' };
}

async function hold(deps: Deps, run: Run, error: Fault): Promise<Fault> {
  return withRun(deps, run.id, async (unit) => {
    const { fault, changed } = await holdReading(unit, error);
    if (changed) enqueueGate(unit);
    return fault;
  });
}

function enqueueGate(unit: RunUnit): void {
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}`, priority: -5 });
}
