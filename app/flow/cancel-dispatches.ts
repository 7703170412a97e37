/**
 * Ends the workflow runs of a repository whose leases the kill switch revoked (CTL-5): they would be given nothing, and
 * a job that goes on costs money and holds the repository's keys. What became of them is heard as of any other.
 *
 * Reads: repository, installation, settings, dispatch. Writes: nothing.
 * Calls: GitHub (cancel a workflow run; again it changes nothing). May fail with: `github_unavailable`, `github_rate_limited`.
 */
import { listOpenDispatches } from '../../db/store/dispatch.ts';
import { findRepository } from '../../db/store/installation.ts';
import { findKill } from '../../db/store/setting.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';

/** Cancels what was dispatched and is not over, while the kill switch is on; returns how many. */
export async function cancelDispatches(deps: Deps, input: { readonly repository: string }): Promise<number> {
  const { db } = deps.database;
  const repository = await findRepository(db, input.repository);
  if (repository === null || repository.status !== 'active') return 0;
  if ((await findKill(db, repository.installationId)) === null) return 0;
  const started = (await listOpenDispatches(db, repository.id)).flatMap((one) => one.workflowRun ?? []);
  const github = await deps.github.installation(repository.installationId);
  let cancelled = 0;
  for (const workflowRun of started) {
    try {
      await github.cancelWorkflowRun(repository, workflowRun);
      cancelled++;
    } catch (error) {
      // over already, or never to be seen again: nothing of it runs
      if (!(error instanceof Fault && OVER.has(error.code))) throw error;
    }
  }
  deps.log.info({ repository: repository.id, cancelled }, 'cancel-dispatches');
  return cancelled;
}

const OVER: ReadonlySet<string> = new Set(['github_refused', 'github_not_found']);
