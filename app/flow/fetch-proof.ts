/**
 * The signed heads of a run that GitHub keeps for us (LED-9): a cut tail is not visible from inside.
 *
 * Reads: check runs of the run, repository. Writes: nothing. Calls: GitHub's lists of check runs, so
 * outside of any transaction. May fail with: `github_not_found`, what GitHub does.
 */
import { listChecksOfRun } from '../../db/store/check.ts';
import { findRepository } from '../../db/store/installation.ts';
import type { Run } from '../../db/store/run.ts';
import { notesIn } from '../domain/summary/render.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';

/** Signed heads of a run as GitHub keeps them for us, and the head they were asked for. */
export interface Proof {
  readonly head: string;
  readonly notes: readonly string[];
}

/** The signed heads in our own check runs of this run, on its head and on the one before it. */
export async function fetchProof(deps: Deps, run: Run): Promise<Proof> {
  const repository = await findRepository(deps.database.db, run.repositoryId);
  if (repository === null) throw new Fault('github_not_found', 'the repository is not known any more');
  const github = await deps.github.installation(run.installationId);
  const published = await listChecksOfRun(deps.database.db, run.repositoryId, run.id);
  const before = published
    .filter((check) => check.sha !== run.toldHead)
    .sort((a, b) => (b.writtenAtMs ?? 0) - (a.writtenAtMs ?? 0))[0];
  const shas = [run.toldHead, ...(before === undefined ? [] : [before.sha])];
  const lists = await Promise.all(shas.map((sha) => github.listCheckRuns(repository, sha)));
  const notes = lists
    .flat()
    .filter((check) => check.appId === deps.github.appId)
    .flatMap((check) => notesIn(check.summary ?? ''))
    .filter((note) => isOf(note, run));
  return { head: run.toldHead, notes };
}

/** Other runs publish on a shared head too: theirs are theirs to prove. */
function isOf(note: string, run: Run): boolean {
  return note.split('\n', 1)[0]?.endsWith(`/run/${run.id}`) === true;
}
