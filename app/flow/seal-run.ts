import { findRepository } from '../../db/store/installation.ts';
import { addJob } from '../../db/store/job.ts';
import { findRun } from '../../db/store/run.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';
import { type EnsureRunOutcome, ensureRun } from './ensure-run.ts';
import { knowBranch } from './receive-delivery/place.ts';

/** Which run was sealed. */
export interface SealRunInput {
  readonly run: string;
}

/**
 * Opens the run that follows a sealed one (LED-8), at the same head; its first row names the sealed run.
 * A delivery that comes first opens the very same one.
 *
 * Reads: run, repository, enrolment. Writes: what ensure-run does. Queues: decide-gate of the sealed run,
 * for check runs that only it had. Calls: GitHub, where the base branch is not known. May fail with:
 * `run_missing`, `bug` (a run that was not sealed), what ensure-run does.
 */
export async function sealRun(deps: Deps, input: SealRunInput): Promise<EnsureRunOutcome> {
  const { db } = deps.database;
  const run = await findRun(db, input.run);
  const repository = run === null ? null : await findRepository(db, run.repositoryId);
  if (run === null || repository === null) throw new Fault('run_missing', `there is no run ${input.run}`);
  if (run.next === null || run.pull === null) throw new Fault('bug', `run ${run.id} was not sealed`);
  const actor: Actor = { kind: 'app', id: deps.github.appId, via: 'schedule' };
  const cause: Cause = { kind: 'schedule', id: `seal-run:${run.id}`, sha256: null };
  const { authorId, authorLogin } = run;
  const outcome = await ensureRun(deps, {
    repository: repository.id,
    pull: {
      number: run.pull,
      draft: run.draft,
      title: run.title,
      author: authorId === null || authorLogin === null ? null : { id: authorId, login: authorLogin },
      head: run.toldHead,
      headRef: run.headRef ?? '',
      headRepositoryId: run.headRepositoryId,
      baseRef: run.baseRef,
    },
    reason: 'reconciled',
    // as the sealed run was told: what came since was told to nobody else
    headIsNews: false,
    enrolment: await knowBranch(deps, repository, run.baseRef),
    actor,
    cause,
  });
  await deps.database.transaction((tx) =>
    addJob(tx, 'decide-gate', { run: run.id }, { key: `decide-gate:${run.id}`, priority: 10 }),
  );
  deps.log.info({ run: run.id, next: run.next, kind: outcome.kind }, 'seal-run');
  return outcome;
}
