import {
  findInstallation,
  findRepository,
  type Installation,
  type Repository,
} from '../../db/store/installation.ts';
import { clearReason, setReason } from '../../db/store/reason.ts';
import { findNewestRun, type NewRun, productNow, type Run, updateRun } from '../../db/store/run.ts';
import { missingPermissions } from '../domain/installation.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import type { RowData } from '../domain/ledger/row-kinds.ts';
import { Fault } from '../errors.ts';
import type { PullInfo } from '../github/port.ts';
import { openRun, type RunUnit, withRun } from './append-rows.ts';
import { closeRun } from './close-run.ts';
import type { Deps } from './deps.ts';
import type { EnrolOutcome } from './enrol.ts';
import { wakeSharers } from './share-head.ts';
import { isWhole } from './verify-run.ts';

/** A pull request as a delivery or GitHub tells it. */
export type ToldPull = Pick<
  PullInfo,
  'number' | 'draft' | 'title' | 'author' | 'head' | 'headRef' | 'headRepositoryId' | 'baseRef'
> &
  Partial<Pick<PullInfo, 'pushedAt'>>;

/** An open pull request that should have a run. */
export interface EnsureRunInput {
  readonly repository: string;
  readonly pull: ToldPull;
  /** Why a run would be opened now. */
  readonly reason: RowData<'run.opened'>['reason'];
  /** Whether head and base are surely newer than what the run was told: then the gate moves to them at once (GAT-4). */
  readonly headIsNews: boolean;
  readonly enrolment: Pick<EnrolOutcome, 'enrolment' | 'required'>;
  readonly actor: Actor;
  readonly cause: Cause;
}

/** What was done: a run opened, told of a head, reopened, or synced; or why there is none. */
export type EnsureRunOutcome =
  | { readonly kind: 'opened' | 'told' | 'reopened' | 'synced'; readonly run: string }
  | { readonly kind: 'not_enrolled' };

/**
 * Gives an open pull request its run (RUN-1, RUN-9), after a sealed one that of the next epoch (LED-8).
 * The pending gate is queued first and runs before anything is read (GAT-4); then the sync, which reads
 * the truth (RUN-2). A doubled call opens nothing twice: the run's key is unique, and the loser finds the winner's.
 *
 * Reads: run, installation, repository. Writes: run, `run.opened`, `run.policy` when no policy exists,
 * `run.reopened`, reasons, jobs. Calls: nothing. May fail with: `github_not_found`.
 */
export async function ensureRun(deps: Deps, input: EnsureRunInput): Promise<EnsureRunOutcome> {
  const { db } = deps.database;
  const repository = await findRepository(db, input.repository);
  if (repository === null) throw new Fault('github_not_found', `repository ${input.repository} is not known`);
  const number = input.pull.number;
  const previous = await findNewestRun(db, repository.id, number);
  const present = presentOf(previous, repository);
  if (present !== null) return tell(deps, present, input);
  const { state } = input.enrolment.enrolment;
  if (state === 'absent' && !input.enrolment.required) return { kind: 'not_enrolled' };

  if (previous !== null && previous.next === null) {
    // the same pull request under another installation: re-installed or transferred (RUN-1)
    await closeRun(deps, { run: previous.id, reason: 'reinstalled', actor: input.actor, cause: input.cause });
  }
  const installation = await findInstallation(db, repository.installationId);
  const now = await productNow(db);
  const opened = await openRun(deps, record(deps, input, repository, previous, now), async (unit) => {
    appendOpening(unit, input, previous, isOld(input, now));
    await notePermissions(unit, installation);
    startWork(unit, state !== 'absent');
    return unit.run.id;
  });
  if (opened !== undefined) return { kind: 'opened', run: opened };
  const winner = presentOf(await findNewestRun(db, repository.id, number), repository);
  if (winner === null) throw new Fault('bug', 'a run that is said to exist is missing');
  return tell(deps, winner, input);
}

/** A newest run that is the pull request's present life: of this installation, and not sealed (RUN-1, LED-8). */
function presentOf(run: Run | null, repository: Repository): Run | null {
  return run?.installationId === repository.installationId && run.next === null ? run : null;
}

function record(
  deps: Deps,
  input: EnsureRunInput,
  repository: Repository,
  previous: Run | null,
  now: Date,
): NewRun {
  const { pull, enrolment } = input;
  return {
    // a sealed run has named its successor already
    id: previous?.next ?? deps.ids.next(),
    installationId: repository.installationId,
    repositoryId: repository.id,
    pull: pull.number,
    groupHead: null,
    epoch: (previous?.epoch ?? 0) + 1,
    status: 'open',
    authorId: pull.author?.id ?? null,
    authorLogin: pull.author?.login ?? null,
    headRepositoryId: pull.headRepositoryId,
    headRef: pull.headRef,
    draft: pull.draft,
    title: pull.title,
    toldHead: pull.head,
    baseRef: pull.baseRef,
    policyHash: enrolment.enrolment.policyHash,
    mode: enrolment.enrolment.mode,
    headAt: now,
    openedAt: now,
  };
}

const DAY_MS = 24 * 3_600_000;

/** RUN-10: nobody waits for a pull request that reconciliation finds a day after its last push; judged once, when it is found. */
function isOld({ reason, pull }: EnsureRunInput, now: Date): boolean {
  return (
    reason === 'reconciled' && pull.pushedAt != null && Date.parse(pull.pushedAt) < now.getTime() - DAY_MS
  );
}

function appendOpening(unit: RunUnit, input: EnsureRunInput, previous: Run | null, old: boolean): void {
  const { pull, enrolment, actor, cause } = input;
  unit.append('run.opened', {
    block: null,
    actor,
    cause,
    data: {
      pull: pull.number,
      group_head: null,
      epoch: unit.run.epoch,
      author: pull.author === null ? null : { id: pull.author.id, login: pull.author.login },
      reason: previous === null ? input.reason : previous.next === null ? 'reinstalled' : 'sealed',
      ...(previous === null ? {} : { previous: previous.id }),
      // what follows a sealed run goes on where that one stood
      ...(old && (previous === null || previous.next === null) ? { old: true as const } : {}),
    },
  });
  if (enrolment.enrolment.state === 'absent') {
    // a rule requires our check and there is no policy: the gate says how to enrol, and nothing is read (RUN-9)
    const { commit } = enrolment.enrolment;
    unit.append('run.policy', {
      block: null,
      actor,
      cause,
      data: { state: 'absent', hash: null, commit: commit === '' ? null : commit, mode: 'enforce' },
    });
  }
}

/** Sets or clears `permissions_missing`: work goes on with what is there, and the gate says what is not (OPS-5, case 73). */
export async function notePermissions(unit: RunUnit, installation: Installation | null): Promise<boolean> {
  const missing = missingPermissions(installation?.permissions ?? {});
  if (missing.length === 0) return clearReason(unit.tx, unit.run.id, 'permissions_missing');
  const detail = missing.join(', ');
  return setReason(unit.tx, unit.run.id, { code: 'permissions_missing', detail, dueAtMs: null });
}

/** Queues the gate, ahead of all else, and the sync. */
function startWork(unit: RunUnit, sync: boolean): void {
  const run = unit.run.id;
  unit.enqueue('decide-gate', { run }, { key: `decide-gate:${run}`, priority: -10 });
  if (sync) unit.enqueue('sync-run', { run }, { key: `sync-run:${run}` });
}

/** A run that exists: reopened, told of a new head, or synced. */
function tell(deps: Deps, known: Run, input: EnsureRunInput): Promise<EnsureRunOutcome> {
  const { pull } = input;
  return withRun(deps, known.id, async (unit): Promise<EnsureRunOutcome> => {
    const { run, tx } = unit;
    const over = run.status === 'closed' || run.status === 'merged';
    const news = input.headIsNews || over;
    const moved = pull.head !== run.toldHead && news;
    // another base is another verdict (RUN-4): what stood on the old one holds no moment longer (case 11)
    const rebased = pull.baseRef !== run.baseRef && news;
    const sync = input.enrolment.enrolment.state !== 'absent' || rebased;
    const seen = {
      draft: pull.draft,
      title: pull.title,
      headRef: pull.headRef,
      headRepositoryId: pull.headRepositoryId,
    };
    const patch = {
      ...seen,
      ...(moved ? { toldHead: pull.head } : {}),
      ...(rebased ? { baseRef: pull.baseRef } : {}),
      // the machine's time begins anew with what it has to look at
      ...(moved || rebased ? { headAt: unit.now } : {}),
    };
    if (moved) {
      await wakeSharers(unit, run.toldHead);
      await wakeSharers(unit, pull.head);
    }
    if (over) {
      await appendReopening(deps, unit, input, moved ? pull.head : run.toldHead);
      await updateRun(tx, run.id, { ...patch, status: 'open' });
      startWork(unit, sync);
      // what the close took out of the queue comes back though the head is the same (case 13)
      unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}` });
      return { kind: 'reopened', run: run.id };
    }
    if (moved || rebased || pull.draft !== run.draft) {
      await updateRun(tx, run.id, patch);
      startWork(unit, sync);
      return { kind: 'told', run: run.id };
    }
    if (sync) unit.enqueue('sync-run', { run: run.id }, { key: `sync-run:${run.id}` });
    return { kind: 'synced', run: run.id };
  });
}

/** A chain that does not verify is evidence and gets no row on top; its gate says so. */
async function appendReopening(
  deps: Deps,
  unit: RunUnit,
  { actor, cause }: EnsureRunInput,
  head: string,
): Promise<void> {
  if (await isWhole(deps, unit.run, unit.tx))
    unit.append('run.reopened', { block: null, actor, cause, data: { head } });
}
