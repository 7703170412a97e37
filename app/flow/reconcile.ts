import { pruneDeliveries } from '../../db/store/delivery.ts';
import { findInstallation, listInstallations, upsertInstallation } from '../../db/store/installation.ts';
import { withLock } from '../../db/store/lock.ts';
import { LIMITS } from '../domain/limits.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';
import { learnRepositories, parkInstallation, reviveRuns } from './receive-delivery/installation.ts';
import { requestFailedDeliveries } from './reconcile/deliveries.ts';
import { reconcileRepository } from './reconcile/repository.ts';

/** Which repository to compare. */
export interface ReconcileInput {
  readonly repository: string;
}

/** What a pass over everything did. */
export interface ReconcileOutcome {
  readonly redelivered: number;
  readonly installations: number;
  /** Installations whose pass failed; each is logged, none stops another (case 74). */
  readonly failed: number;
}

/**
 * Compares one repository's open pull requests with its runs, and its comments with what was read
 * (OPS-2): opens, syncs and closes what deliveries missed. Running it again changes nothing.
 *
 * Reads: repository, runs, enrolments, cursors. Writes: what ensure-run, close-run and enrol do,
 * cursors, jobs. Calls: GitHub's pull requests and comments. May fail with: GitHub's.
 */
export function reconcile(deps: Deps, input: ReconcileInput): Promise<unknown> {
  return reconcileRepository(deps, input.repository);
}

/** The pass over everything, at start and every few minutes: failed deliveries, installations, their repositories. One process at a time; undefined when another is at it. */
export async function sweepReconcile(deps: Deps): Promise<ReconcileOutcome | undefined> {
  try {
    return await withLock(deps.database, 'reconcile', 0, () => pass(deps));
  } catch (error) {
    if (error instanceof Fault && error.code === 'lock_busy') return undefined;
    throw error;
  }
}

async function pass(deps: Deps): Promise<ReconcileOutcome> {
  await deps.database.transaction((tx) => pruneDeliveries(tx, LIMITS.deliveryDays.default));
  const redelivered = await requestFailedDeliveries(deps);
  // before GitHub is asked: what is begun, suspended or served again meanwhile is newer than its answer
  const known = new Map((await listInstallations(deps.database.db)).map((one) => [one.id, one]));
  const told = await deps.github.listInstallations();
  const active: string[] = [];
  const parked = new Set<string>();
  for (const one of told) {
    const before = await findInstallation(deps.database.db, one.id);
    const seen = known.get(one.id);
    if (before !== null && seen !== undefined && before.updatedAt.getTime() !== seen.updatedAt.getTime()) {
      if (before.status === 'active') active.push(one.id);
      continue;
    }
    if (before !== null && before.status !== 'active') parked.add(one.id);
    await deps.database.transaction((tx) =>
      upsertInstallation(tx, {
        id: one.id,
        accountId: one.accountId,
        accountLogin: one.accountLogin,
        permissions: one.permissions,
        status: one.suspended ? 'suspended' : 'active',
      }),
    );
    if (one.suspended) await parkInstallation(deps, one.id);
    else active.push(one.id);
  }
  const listed = new Set(told.map((one) => one.id));
  for (const id of known.keys()) {
    if (listed.has(id)) continue;
    await deps.database.transaction((tx) => upsertInstallation(tx, { id, status: 'deleted' }));
    await parkInstallation(deps, id);
  }
  let failed = 0;
  for (const id of active) {
    try {
      await learnRepositories(deps, id);
      // back without an event: what was parked goes on
      if (parked.has(id)) await reviveRuns(deps, { installationId: id });
    } catch (error) {
      failed += 1;
      await noteFailure(deps, id, error);
    }
  }
  return { redelivered, installations: told.length, failed };
}

/** A refused token says what no event told (case 74): the installation is parked until GitHub says otherwise. */
async function noteFailure(deps: Deps, id: string, error: unknown): Promise<void> {
  const code = error instanceof Fault ? error.code : 'bug';
  deps.log.warn({ installation: id, code }, 'reconcile');
  if (code !== 'installation_gone') return;
  await deps.database.transaction((tx) => upsertInstallation(tx, { id, status: 'suspended' }));
  await parkInstallation(deps, id);
}
