/**
 * Where a person finds what a run is about: its pull request on GitHub. What a run holds is shown to
 * nobody who has not logged in there.
 *
 * Reads: run, repository. Writes: nothing. Calls: nothing. May fail with: what Postgres does.
 */
import { findRepository } from '../../db/store/installation.ts';
import { findRun } from '../../db/store/run.ts';
import type { Deps } from './deps.ts';

/** The address of the checks of a run's pull request, or null where there is none. */
export async function readRunPlace(deps: Deps, id: string): Promise<string | null> {
  const run = await findRun(deps.database.db, id);
  if (run === null || run.pull === null) return null;
  const repository = await findRepository(deps.database.db, run.repositoryId);
  if (repository === null || repository.status !== 'active') return null;
  const place = [repository.owner, repository.name].map(encodeURIComponent).join('/');
  return `${deps.settings.serverUrl}/${place}/pull/${run.pull}/checks`;
}
