/** What a missed dispatch or a runner makes of a pool, and `dispatch_stalled` on the runs that wait for it (POOL-3, POOL-5). */
import type { Tx } from '../../db/client.ts';
import type { Dispatch } from '../../db/store/dispatch.ts';
import { findInstallation } from '../../db/store/installation.ts';
import { addJob, addJobs } from '../../db/store/job.ts';
import { addPool, findPool, lockPool, type Pool, putPool } from '../../db/store/provider.ts';
import { clearReasonEverywhere, setReason } from '../../db/store/reason.ts';
import { findRun } from '../../db/store/run.ts';
import { listWaiting } from '../../db/store/waiting.ts';
import type { Actor } from '../domain/ledger/row-fields.ts';
import { doubled, LIMITS } from '../domain/limits.ts';
import { Fault } from '../errors.ts';
import { appendToInstallation } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { knownPolicy } from './known-policy.ts';

/**
 * Counts a dispatch that brought no runner. Two in a row settle the pool, 5 minutes doubling to 60;
 * then the runs that wait say `dispatch_stalled`. It revives when a runner logs in. Each settling is
 * a row of the installation's chain in the same transaction (LED-4); `via` is how the miss was told.
 */
export async function missPool(
  deps: Deps,
  tx: Tx,
  dispatch: Dispatch,
  miss: { readonly detail: string; readonly via: 'schedule' | 'delivery' },
): Promise<void> {
  // two first misses at once are two
  await addPool(tx, {
    repositoryId: dispatch.repositoryId,
    installationId: dispatch.installationId,
    name: dispatch.pool,
  });
  const pool = await lockPool(tx, dispatch.repositoryId, dispatch.pool);
  const missed = (pool?.missed ?? 0) + 1;
  const settles = missed >= LIMITS.missedDispatches.default;
  const rounds = pool?.rounds ?? 0;
  const settledMs = doubled(LIMITS.settledMinMs.default, LIMITS.settledMaxMs.default, rounds);
  const stored = await putPool(tx, {
    repositoryId: dispatch.repositoryId,
    installationId: dispatch.installationId,
    name: dispatch.pool,
    missed,
    rounds: settles ? rounds + 1 : rounds,
    settledMs: settles ? settledMs : null,
    detail: miss.detail,
  });
  await wakePlanner(tx, dispatch.repositoryId);
  if (settles) await note(deps, tx, dispatch, stored, { kind: 'app', id: deps.github.appId, via: miss.via });
}

/** A runner came: the pool works (POOL-3). The revival of a settled one is a row in the same transaction. */
export async function revivePool(deps: Deps, tx: Tx, dispatch: Dispatch, runner: string): Promise<void> {
  // most logins find a pool in service and need not wait for each other
  if (inService(await findPool(tx, dispatch.repositoryId, dispatch.pool))) return;
  const pool = await lockPool(tx, dispatch.repositoryId, dispatch.pool);
  if (pool === null || inService(pool)) return;
  const stored = await putPool(tx, {
    repositoryId: dispatch.repositoryId,
    installationId: dispatch.installationId,
    name: dispatch.pool,
    missed: 0,
    rounds: 0,
    settledMs: null,
    detail: null,
  });
  await wakePlanner(tx, dispatch.repositoryId);
  if (pool.settledUntil !== null)
    await note(deps, tx, dispatch, stored, { kind: 'runner', id: runner, via: 'oidc' });
}

function inService(pool: Pool | null): boolean {
  return pool === null || (pool.missed === 0 && pool.settledUntil === null);
}

function wakePlanner(tx: Tx, repository: string): Promise<void> {
  return addJob(tx, 'dispatch', { repository }, { key: `dispatch:${repository}` });
}

/** Last in its transaction: whoever holds the chain of an installation waits for nobody. */
async function note(deps: Deps, tx: Tx, dispatch: Dispatch, pool: Pool, actor: Actor): Promise<void> {
  const installation = await findInstallation(tx, dispatch.installationId);
  if (installation === null) throw new Fault('bug', 'a dispatch of an installation that is not known');
  await appendToInstallation(deps, tx, installation, 'pool.changed', {
    block: null,
    actor,
    cause: { kind: 'dispatch', id: dispatch.id, sha256: null },
    data: {
      repository: pool.repositoryId,
      pool: pool.name,
      state: pool.settledUntil === null ? 'revived' : 'settled',
      until: pool.settledUntil?.toISOString() ?? null,
      ...(pool.detail === null ? {} : { detail: pool.detail.slice(0, 200) }),
    },
  });
}

/** Sets `dispatch_stalled` on the runs of a repository that wait for a runner, and clears it on the others (null: on all). */
export async function sayStalled(tx: Tx, repositoryId: string, detail: string | null): Promise<void> {
  const waiting = detail === null ? [] : await listWaiting(tx, repositoryId);
  const runs = [...new Set(waiting.filter((one) => one.ready > 0).map((one) => one.runId))];
  // in one statement: this is asked with every plan, over all that is open
  const changed = await clearReasonEverywhere(tx, repositoryId, 'dispatch_stalled', runs);
  for (const id of runs) {
    const run = await findRun(tx, id);
    if (run === null) continue;
    const policy = await knownPolicy(tx, run.policyHash);
    const set = await setReason(tx, id, {
      code: 'dispatch_stalled',
      dueAtMs: run.headAt.getTime() + (policy?.gate.deadline ?? LIMITS.gateDeadlineMs.default),
      detail: (detail ?? '').slice(0, 200),
    });
    if (set) changed.push(id);
  }
  await addJobs(
    tx,
    changed.map((run) => ({ task: 'decide-gate', payload: { run }, key: `decide-gate:${run}` })),
  );
}
