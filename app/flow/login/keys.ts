/** What the names of the keys in a runner's job say of its repository (RUN-9). */
import type { Tx } from '../../../db/client.ts';
import { listEnrolments, type Repository, setSetupCause } from '../../../db/store/installation.ts';
import { addJobs } from '../../../db/store/job.ts';
import { listOpenRuns } from '../../../db/store/run.ts';
import { missingKeys } from '../../domain/installation.ts';
import { KEY_NAME } from '../../protocol/key-name.ts';
import { knownPolicy } from '../known-policy.ts';

/**
 * Where the policies name models and the job has a key for none of them, every ticket would end at the same
 * wall, and look like an outage of the provider: the repository's set-up is not complete, and the gate names the
 * variables. Enrolment probes again: with a push, `/reload`, or within the hour.
 */
export async function noteKeys(tx: Tx, repository: Repository, keys: readonly string[]): Promise<void> {
  const wanted: (string | null)[] = [];
  for (const { state, policyHash } of await listEnrolments(tx, repository.id)) {
    const policy = state === 'valid' ? await knownPolicy(tx, policyHash) : null;
    if (policy === null) continue;
    for (const entry of policy.reviewers.values())
      if (entry.uses !== 'command') wanted.push(entry.key ?? null);
  }
  // of a name that no login tells nothing is known
  const cause = missingKeys(
    wanted.map((name) => (name !== null && KEY_NAME.test(name) ? name : null)),
    keys,
  );
  if (cause === null || cause === repository.setupCause) return;
  await setSetupCause(tx, repository.id, cause);
  await addJobs(
    tx,
    (await listOpenRuns(tx, { repositoryId: repository.id })).map((run) => ({
      task: 'decide-gate',
      payload: { run: run.id },
      key: `decide-gate:${run.id}`,
    })),
  );
}
