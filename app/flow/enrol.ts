import {
  type Enrolment,
  findEnrolment,
  findInstallation,
  findRepository,
  type Repository,
  setSetupCause,
  upsertEnrolment,
} from '../../db/store/installation.ts';
import { addJob, addJobs } from '../../db/store/job.ts';
import { storePolicy } from '../../db/store/policy.ts';
import { listRegistered, lockResidentPool, putPoolUse } from '../../db/store/pool.ts';
import { listOpenRuns } from '../../db/store/run.ts';
import { gateName } from '../domain/check.ts';
import { noPool, workflowFault } from '../domain/installation.ts';
import { poolName, servesReviews } from '../domain/policy/pool.ts';
import { POLICY_PATH, type Policy, parsePolicy } from '../domain/policy.ts';
import { Fault } from '../errors.ts';
import type { GitHub } from '../github/port.ts';
import type { Deps } from './deps.ts';
import { heldPolicy } from './held-policy.ts';

/** Which base branch to read. */
export interface EnrolInput {
  readonly repository: string;
  readonly baseRef: string;
}

/** What the branch says now. */
export interface EnrolOutcome {
  readonly enrolment: Enrolment;
  /** The policy file appeared with this reading, where an earlier one found none: open pull requests wait (RUN-10). */
  readonly appeared: boolean;
  /** A check of ours is required on the branch although it holds no policy (RUN-9). */
  readonly required: boolean;
}

/**
 * Reads a base branch's policy file and keeps what it says (GAT-4, RUN-9): by the contents API, so
 * that a gate can exist before git was read. A changed policy syncs the branch's open runs at low
 * priority (RUN-3). With it the one cause that hinders the repository from working is probed.
 *
 * Reads: repository, installation, enrolment, open runs, registered pools. Writes: policy, enrolment, use of
 * pools, repository's cause, jobs. Calls: contents, branch, rules. May fail with: `installation_gone`, GitHub's.
 */
export async function enrol(deps: Deps, input: EnrolInput): Promise<EnrolOutcome> {
  const { db } = deps.database;
  const repository = await findRepository(db, input.repository);
  if (repository === null || repository.status !== 'active')
    throw new Fault('github_not_found', `repository ${input.repository} is not in an installation`);
  const installation = await findInstallation(db, repository.installationId);
  if (installation !== null && installation.status !== 'active')
    throw new Fault('installation_gone', `installation ${installation.id} is ${installation.status}`);
  const github = await deps.github.installation(repository.installationId);

  const commit = await github.getBranchHead(repository, input.baseRef);
  const file = commit === null ? null : await github.getContent(repository, POLICY_PATH, commit);
  const bytes = file === null ? null : (await heldPolicy(db, repository.installationId, file)).bytes;
  const reading = bytes === null ? null : parsePolicy(bytes);
  const policy = reading?.ok === true ? reading.policy : null;
  const required =
    bytes === null &&
    (await github.getRequiredCheck(repository, input.baseRef, gateName('enforce'))) !== null;
  const residents =
    policy?.pools.flatMap((pool) => (pool.kind === 'resident' && servesReviews(pool) ? [pool.name] : [])) ??
    [];
  const at = { installationId: repository.installationId, repositoryId: repository.id };
  const registered = await listRegistered(db, residents, at);
  const cause = policy === null ? null : await probeSetup(github, repository, policy, registered);
  const fault = reading?.ok === false ? reading.errors[0] : undefined;

  const outcome = await deps.database.transaction(async (tx) => {
    // a pool that is registered meanwhile looks for those that wait for it: it finds this one, or is found here
    for (const name of [...residents].sort()) await lockResidentPool(tx, name);
    if ((await listRegistered(tx, residents, at)).length > registered.length)
      await addJob(tx, 'enrol', input, { key: `enrol:${repository.id}:${input.baseRef}` });
    const before = await findEnrolment(tx, repository.id, input.baseRef);
    const enrolment = await upsertEnrolment(tx, {
      repositoryId: repository.id,
      baseRef: input.baseRef,
      state: bytes === null ? 'absent' : policy === null ? 'invalid' : 'valid',
      policyHash: bytes === null ? null : await storePolicy(tx, bytes),
      commit: commit ?? '',
      mode: policy?.mode ?? 'enforce',
      error:
        fault !== undefined
          ? { code: fault.code, line: fault.line, message: fault.message }
          : required
            ? { code: 'not_enrolled', line: null, message: 'a rule requires our check' }
            : null,
    });
    await putPoolUse(tx, { ...at, baseRef: input.baseRef }, residents);
    const runs = await listOpenRuns(tx, { repositoryId: repository.id });
    if (before?.policyHash !== enrolment.policyHash) {
      await addJobs(
        tx,
        runs
          .filter((run) => run.baseRef === input.baseRef)
          .map((run) => ({
            task: 'sync-run',
            payload: { run: run.id },
            key: `sync-run:${run.id}`,
            priority: 10,
          })),
      );
    }
    if (policy !== null && cause !== repository.setupCause) {
      await setSetupCause(tx, repository.id, cause);
      await addJobs(tx, [
        ...runs.map((run) => ({
          task: 'decide-gate',
          payload: { run: run.id },
          key: `decide-gate:${run.id}`,
        })),
        // what waited can be started now
        { task: 'dispatch', payload: { repository: repository.id }, key: `dispatch:${repository.id}` },
      ]);
    }
    return { enrolment, appeared: before?.state === 'absent' && enrolment.state !== 'absent', required };
  });
  const { state, policyHash } = outcome.enrolment;
  deps.log.info(
    { repository: repository.id, branch: input.baseRef, state, policy: policyHash, cause },
    'enrol',
  );
  return outcome;
}

/** The one thing that hinders an enrolled repository (RUN-9), as a sentence for its people; null when nothing does. */
async function probeSetup(
  github: GitHub,
  repository: Repository,
  policy: Policy,
  registered: readonly string[],
): Promise<string | null> {
  if (policy.reviewers.size === 0) return 'the policy names no reviewer';
  const files = policy.pools.filter((pool) => pool.kind === 'workflow');
  // one of several pools may come later; with none of them nothing could ever run
  if (files.length === 0 && registered.length === 0)
    return noPool(policy.pools.filter(servesReviews).map(poolName), repository.installationId);
  for (const pool of files) {
    const path = `.github/workflows/${pool.workflow}`;
    const fault = workflowFault(await github.getContent(repository, path, repository.defaultBranch), path);
    if (fault !== null) return fault;
  }
  return null;
}
