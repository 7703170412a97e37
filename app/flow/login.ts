/**
 * A workflow runner's verified OIDC claims become a login (AUT-1 checks 6 to 13, RID-1).
 *
 * Reads: repository, installation, dispatch, runner, policies. Writes: jti, dispatch, runner, login, pool, the
 * repository's cause;
 * row `pool.changed`.
 * Calls: GitHub (the workflow run, once, before the transaction). Queues: dispatch, where a pool revives;
 * decide-gate, where no reviewer has a key.
 * May fail with: `protocol_version`, `forbidden`, `unauthorized` (a token used before), `owner_mismatch`,
 * `github_unavailable` and `github_rate_limited` (retryable: the token is not spent).
 */
import { hash } from 'node:crypto';
import type { Tx } from '../../db/client.ts';
import {
  answerDispatch,
  type Dispatch,
  lockDispatchOfNonce,
  lockDispatchOfWorkflow,
} from '../../db/store/dispatch.ts';
import { findInstallation, findRepository, type Repository } from '../../db/store/installation.ts';
import { addLogin, addRunner, findRunnerOfJob, revokeLogins, useTokenId } from '../../db/store/runner.ts';
import { lockPlan } from '../../db/store/waiting.ts';
import { LIMITS } from '../domain/limits.ts';
import { Refusal } from '../errors.ts';
import { PROTOCOL_VERSION } from '../protocol/runner.ts';
import type { Deps } from './deps.ts';
import { noteKeys } from './login/keys.ts';
import { revivePool } from './stall-pool.ts';

/** What the edge verified of a GitHub Actions OIDC token: signature, issuer, audience, times and shapes. */
export interface VerifiedClaims {
  readonly issuer: string;
  readonly tokenId: string;
  /** Seconds until it expires, from now. */
  readonly expiresInS: number;
  /** SHA-256 over the token, hex. */
  readonly digest: string;
  readonly repositoryId: string;
  readonly ownerId: string;
  /** `owner/name` as GitHub has it now: an address, never identity. */
  readonly repository: string;
  readonly event: string;
  readonly ref: string;
  readonly refType: string;
  readonly workflowRef: string;
  readonly jobWorkflowRef: string | null;
  readonly workflowRun: string;
  readonly attempt: number;
  /** The commit it runs on; not every server tells it. */
  readonly sha: string | null;
  /** The job's check run; not every server tells it. */
  readonly job: string | null;
  readonly environment: string | null;
}

/** A login request whose token was verified. */
export interface LoginInput {
  readonly claims: VerifiedClaims;
  readonly protocol: string;
  readonly nonce: string | null;
  readonly version: string;
  readonly capacity: number;
  readonly keys: readonly string[] | null;
}

/** A login: its token is told once. */
export interface LoginOutcome {
  readonly token: string;
  readonly expiresAt: Date;
  readonly runner: string;
  readonly login: string;
  readonly run: string | null;
}

/** The hash under which a token or nonce is stored. */
export function secretHash(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Exchanges verified claims for a login token; the token id is spent in the same transaction. */
export async function login(deps: Deps, input: LoginInput): Promise<LoginOutcome> {
  const { claims } = input;
  if (input.protocol.split('.')[0] !== PROTOCOL_VERSION.split('.')[0])
    throw new Refusal(
      'protocol_version',
      `this server speaks protocol ${PROTOCOL_VERSION}`,
      `protocol ${PROTOCOL_VERSION}: use the Action's version that fits the server`,
    );
  // refused here, nobody is asked; all of it is looked at again once GitHub has answered
  const before = await deps.database.transaction((tx) => admissible(tx, input));
  await checkRun(deps, claims, before.repository, before.dispatch);
  const outcome = await deps.database.transaction(async (tx) => {
    // LSE-6: the planner counts either the dispatch or its runner, never neither
    await lockPlan(tx, claims.repositoryId);
    const { repository, dispatch } = await admissible(tx, input);
    const keepMs = claims.expiresInS * 1000 + 2 * LIMITS.oidcToleranceMs.default;
    if (!(await useTokenId(tx, claims.issuer, claims.tokenId, keepMs)))
      throw new Refusal('unauthorized', 'this token was used before', 'a fresh token for each login');
    if (!(await answerDispatch(tx, dispatch.id, claims.workflowRun, claims.attempt)))
      throw new Refusal('owner_mismatch', 'this dispatch belongs to another workflow run or attempt');
    const runner = await runnerOf(deps, tx, input, dispatch, repository);
    const token = deps.ids.secret();
    const id = deps.ids.next();
    const expiresAt = await addLogin(
      tx,
      {
        id,
        runnerId: runner,
        tokenHash: secretHash(token),
        claims: claims.digest,
        identity: {
          role: 'worker',
          installation: repository.installationId,
          repository: repository.id,
          run: dispatch.runId,
          workflowRun: claims.workflowRun,
          attempt: claims.attempt,
          job: claims.job,
          pool: dispatch.pool,
        },
      },
      LIMITS.loginMs.default,
    );
    if (input.keys !== null) await noteKeys(tx, repository, input.keys);
    await revivePool(deps, tx, dispatch, runner);
    return { token, expiresAt, runner, login: id, run: dispatch.runId };
  });
  deps.log.info(
    { runner: outcome.runner, repository: claims.repositoryId, workflow_run: claims.workflowRun },
    'login',
  );
  return outcome;
}

/** Checks 6 to 9 as far as our own tables tell. */
async function admissible(tx: Tx, { claims, nonce }: LoginInput) {
  const repository = await covered(tx, claims);
  checkEvent(claims, repository);
  const dispatch = await dispatchOf(tx, claims, nonce);
  checkWorkflow(claims, dispatch);
  return { repository, dispatch };
}

/** Check 9, what GitHub itself says of the run: event, attempt, commit, branch, file, and that our App started it. */
async function checkRun(
  deps: Deps,
  claims: VerifiedClaims,
  repository: Repository,
  dispatch: Dispatch,
): Promise<void> {
  const github = await deps.github.installation(repository.installationId);
  const run = await github.getWorkflowRun(repository, claims.workflowRun);
  if (run === null) throw new Refusal('forbidden', 'GitHub knows no such workflow run in this repository');
  const bot = `${await deps.github.slug()}[bot]`;
  const wrong =
    run.event !== 'workflow_dispatch'
      ? 'event'
      : run.attempt !== claims.attempt
        ? 'attempt'
        : claims.sha !== null && run.headSha !== claims.sha
          ? 'commit'
          : run.headBranch !== repository.defaultBranch
            ? 'branch'
            : run.path.split('@')[0] !== `.github/workflows/${dispatch.workflow}`
              ? 'workflow file'
              : run.actor?.toLowerCase() !== bot.toLowerCase()
                ? 'actor'
                : null;
  if (wrong !== null)
    throw new Refusal(
      'forbidden',
      `GitHub has another ${wrong} for this workflow run than the token and our dispatch`,
      'a run that we dispatched',
    );
}

/** Check 6: the ids name a repository that an active installation covers now; names are never compared. */
async function covered(tx: Tx, claims: VerifiedClaims): Promise<Repository> {
  const repository = await findRepository(tx, claims.repositoryId);
  const installation = repository === null ? null : await findInstallation(tx, repository.installationId);
  if (
    repository === null ||
    repository.status !== 'active' ||
    repository.ownerId !== claims.ownerId ||
    installation === null ||
    installation.status !== 'active'
  )
    throw new Refusal('forbidden', 'no active installation covers the repository of this token');
  return repository;
}

/** Checks 7, 8 and 11: where the workflow ran. A pull request's own workflow never gets a login (attack 16). */
function checkEvent(claims: VerifiedClaims, repository: Repository): void {
  if (claims.event !== 'workflow_dispatch')
    throw new Refusal('forbidden', `a run of ${claims.event} gets no login`, 'a run of workflow_dispatch');
  if (claims.refType !== 'branch' || claims.ref !== `refs/heads/${repository.defaultBranch}`)
    throw new Refusal('forbidden', 'this run is not on the default branch', 'a run on the default branch');
  if (claims.environment !== null && claims.environment !== 'github-hosted')
    throw new Refusal(
      'forbidden',
      'self-hosted workflow runners are not supported yet',
      'runs-on: a runner hosted by GitHub',
    );
}

/** Check 9: a dispatch of ours, known by its workflow run, or unanswered and named by the nonce it carried. */
async function dispatchOf(tx: Tx, claims: VerifiedClaims, nonce: string | null): Promise<Dispatch> {
  const byNonce =
    nonce === null ? null : await lockDispatchOfNonce(tx, claims.repositoryId, secretHash(nonce));
  const byRun = await lockDispatchOfWorkflow(tx, claims.repositoryId, claims.workflowRun);
  const found = byRun ?? byNonce;
  if (found === null)
    throw new Refusal('forbidden', 'this workflow run was not started by us', 'a run that we dispatched');
  if (byRun !== null && byNonce !== null && byRun.id !== byNonce.id)
    throw new Refusal('owner_mismatch', 'the nonce is of another dispatch than the workflow run');
  if (found.workflowRun !== null && found.workflowRun !== claims.workflowRun)
    throw new Refusal('owner_mismatch', 'this dispatch was answered by another workflow run');
  if (found.attempt !== null && found.attempt !== claims.attempt)
    throw new Refusal(
      'owner_mismatch',
      'a re-run is another attempt and needs a dispatch of its own',
      '/rerun, which starts one',
    );
  return found;
}

/** Check 8: the pool's workflow file, compared whole; a name may hold `@` and a ref may hold anything. */
function checkWorkflow(claims: VerifiedClaims, dispatch: Dispatch): void {
  const expected = `${claims.repository}/.github/workflows/${dispatch.workflow}@${claims.ref}`;
  const own = claims.jobWorkflowRef ?? claims.workflowRef;
  if (claims.workflowRef !== expected || own !== expected)
    throw new Refusal(
      'forbidden',
      'this run is of another workflow file than the pool’s',
      `.github/workflows/${dispatch.workflow} on the default branch`,
    );
}

/** The runner that this job is: a second login takes the place of the first and keeps its leases (RID-1). */
async function runnerOf(
  deps: Deps,
  tx: Tx,
  input: LoginInput,
  dispatch: Dispatch,
  repository: Repository,
): Promise<string> {
  const { claims } = input;
  const known = await findRunnerOfJob(tx, {
    repositoryId: repository.id,
    workflowRun: claims.workflowRun,
    attempt: claims.attempt,
    job: claims.job,
  });
  if (known !== null) {
    if (known.endedAt !== null) throw new Refusal('revoked', 'this runner has ended');
    await revokeLogins(tx, known.id);
    return known.id;
  }
  const id = deps.ids.next();
  await addRunner(tx, {
    id,
    installationId: repository.installationId,
    repositoryId: repository.id,
    pool: dispatch.pool,
    workflowRun: claims.workflowRun,
    attempt: claims.attempt,
    job: claims.job,
    version: input.version,
    capacity: input.capacity,
    keys: input.keys === null ? null : [...input.keys],
  });
  return id;
}
