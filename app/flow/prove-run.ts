/**
 * Verifies a run against the signed heads that GitHub keeps for us (LED-9), where something that counts
 * elsewhere rests on it. A chain that does not go through them is noted: no row goes on top, and its gate says so.
 *
 * Reads: run, check runs, ledger rows and head. Writes: reason. Queues: decide-gate. Calls: GitHub's lists
 * of check runs, so outside of any transaction. May fail with: `github_not_found`, what GitHub does.
 */
import { addJobs } from '../../db/store/job.ts';
import { setReason } from '../../db/store/reason.ts';
import type { Run } from '../../db/store/run.ts';
import type { AnyRow } from '../domain/ledger/row.ts';
import type { Deps } from './deps.ts';
import { fetchProof } from './fetch-proof.ts';
import { ledgerFault } from './judge-run.ts';
import { verifyRun, wholeRows } from './verify-run.ts';

/** The rows of a run whose chain verifies and goes through what is published of it; null: nothing may rest on it. */
export async function proveRun(deps: Deps, run: Run): Promise<readonly AnyRow[] | null> {
  // found before: GitHub is not asked again
  if ((await wholeRows(deps, run)) === null) return null;
  const { notes } = await fetchProof(deps, run);
  const { verdict, rows } = await verifyRun(deps, run, { published: notes });
  if (verdict.kind === 'intact') return rows;
  await deps.database.transaction(async (tx) => {
    await setReason(tx, run.id, { ...ledgerFault(verdict, null), dueAtMs: null });
    await addJobs(tx, [{ task: 'decide-gate', payload: { run: run.id }, key: `decide-gate:${run.id}` }]);
  });
  return null;
}
