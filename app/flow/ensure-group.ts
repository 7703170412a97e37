import { findGroupRun } from '../../db/store/group.ts';
import { findInstallation, findRepository } from '../../db/store/installation.ts';
import { productNow, updateRun } from '../../db/store/run.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import { Fault } from '../errors.ts';
import { openRun, type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import type { EnrolOutcome } from './enrol.ts';
import { notePermissions } from './ensure-run.ts';
import { isWhole } from './verify-run.ts';

/** A merge group that asks for its check. */
export interface EnsureGroupInput {
  readonly repository: string;
  readonly group: { readonly head: string; readonly headRef: string; readonly baseRef: string };
  /** Whether GitHub asks now: a group that was destroyed is only taken up again by a new request. */
  readonly news: boolean;
  readonly enrolment: Pick<EnrolOutcome, 'enrolment' | 'required'>;
  readonly actor: Actor;
  readonly cause: Cause;
}

/** What was done, or why there is no run. */
export type EnsureGroupOutcome =
  | { readonly kind: 'opened' | 'reopened' | 'known'; readonly run: string }
  | { readonly kind: 'not_enrolled' };

/**
 * Gives a merge group its run, keyed by its commit (RUN-1, GAT-5): the pending gate is queued first, the
 * reading after it. A doubled call opens nothing twice.
 *
 * Reads: run, installation, repository. Writes: run, `run.opened`, `run.policy` when no policy exists,
 * `run.reopened`, reasons, jobs. Calls: nothing. May fail with: `github_not_found`.
 */
export async function ensureGroup(deps: Deps, input: EnsureGroupInput): Promise<EnsureGroupOutcome> {
  const { db } = deps.database;
  const { group, enrolment, actor, cause } = input;
  const repository = await findRepository(db, input.repository);
  if (repository === null) throw new Fault('github_not_found', `repository ${input.repository} is not known`);
  const known = await findGroupRun(db, repository, group.head);
  if (known !== null) return again(deps, known.id, input);
  const { state, policyHash, mode, commit } = enrolment.enrolment;
  if (state === 'absent' && !enrolment.required) return { kind: 'not_enrolled' };
  const installation = await findInstallation(db, repository.installationId);
  const now = await productNow(db);
  const record = {
    id: deps.ids.next(),
    installationId: repository.installationId,
    repositoryId: repository.id,
    pull: null,
    groupHead: group.head,
    epoch: 1,
    status: 'open' as const,
    headRepositoryId: repository.id,
    headRef: group.headRef,
    title: `Merge group into ${group.baseRef}`,
    toldHead: group.head,
    baseRef: group.baseRef,
    policyHash,
    mode,
    headAt: now,
    openedAt: now,
  };
  const opened = await openRun(deps, record, async (unit) => {
    unit.append('run.opened', {
      block: null,
      actor,
      cause,
      data: { pull: null, group_head: group.head, epoch: 1, author: null, reason: 'opened' },
    });
    if (state === 'absent') {
      const data = { state, hash: null, commit: commit === '' ? null : commit, mode: 'enforce' } as const;
      unit.append('run.policy', { block: null, actor, cause, data });
    }
    await notePermissions(unit, installation);
    start(unit, state !== 'absent');
    return unit.run.id;
  });
  if (opened !== undefined) return { kind: 'opened', run: opened };
  const winner = await findGroupRun(db, repository, group.head);
  if (winner === null) throw new Fault('bug', 'a run that is said to exist is missing');
  return again(deps, winner.id, input);
}

function again(deps: Deps, id: string, input: EnsureGroupInput): Promise<EnsureGroupOutcome> {
  return withRun(deps, id, async (unit): Promise<EnsureGroupOutcome> => {
    const { run, tx } = unit;
    const over = run.status === 'closed' || run.status === 'merged';
    const reading = input.enrolment.enrolment.state !== 'absent';
    if (!over || !input.news) {
      if (!over) start(unit, reading);
      return { kind: 'known', run: id };
    }
    const { actor, cause, group } = input;
    if (await isWhole(deps, run, tx))
      unit.append('run.reopened', { block: null, actor, cause, data: { head: group.head } });
    // the queue's clock runs anew
    await updateRun(tx, id, { status: 'open', headAt: unit.now });
    start(unit, reading);
    return { kind: 'reopened', run: id };
  });
}

/** Queues the gate, ahead of all else, and the reading, which waits until the gate is shown. */
function start(unit: RunUnit, reads: boolean): void {
  const run = unit.run.id;
  unit.enqueue('decide-gate', { run }, { key: `decide-gate:${run}`, priority: -10 });
  if (reads) unit.enqueue('sync-group', { run }, { key: `sync-group:${run}`, priority: 1 });
}
