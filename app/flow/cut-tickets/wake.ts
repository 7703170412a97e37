import { listRunsWanting } from '../../../db/store/reuse.ts';
import type { RunUnit } from '../append-rows.ts';

/**
 * A review that counts is news to every other open run of the repository whose head wants the same key:
 * what waits there need not be reviewed, and what is found counts there too, whichever was first (TKT-4).
 *
 * Reads: run, file. Queues: cut-tickets of those runs, and of a merge group's own. May fail with: what Postgres does.
 */
export async function wakeWanting(
  unit: RunUnit,
  review: { readonly key: string; readonly end: string; readonly partial: boolean },
): Promise<void> {
  const { tx, run } = unit;
  // the next tickets of a merge group come to the front of the queue, as the first did (GAT-5)
  if (run.groupHead !== null) unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}` });
  if (review.end !== 'reviewed' || review.partial) return;
  const { installationId, repositoryId } = run;
  const wanting = await listRunsWanting(tx, { installationId, repositoryId, runId: run.id }, review.key);
  for (const id of wanting) unit.enqueue('cut-tickets', { run: id }, { key: `cut-tickets:${id}` });
}
