import {
  findRepository,
  listRepositories,
  removeRepository,
  upsertInstallation,
} from '../../../db/store/installation.ts';
import { addJobs } from '../../../db/store/job.ts';
import { listOpenRuns } from '../../../db/store/run.ts';
import { cancelTicketsOfRun } from '../../../db/store/ticket.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { withRun } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import { notePermissions } from '../ensure-run.ts';
import { keepPlace, queueReconcile } from './place.ts';

/** `installation`: begun, ended, suspended, or given other permissions (OPS-5, cases 73, 74). */
export async function receiveInstallation(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'installation' }>,
): Promise<string> {
  const status = event.action === 'deleted' ? 'deleted' : event.action === 'suspend' ? 'suspended' : 'active';
  const installation = await deps.database.transaction((tx) =>
    upsertInstallation(tx, {
      id: event.installationId,
      accountId: event.account.id,
      accountLogin: event.account.login,
      status,
      permissions: event.permissions,
    }),
  );
  if (status !== 'active') {
    await parkInstallation(deps, event.installationId);
    return status;
  }
  await learnRepositories(deps, event.installationId);
  // accepted permissions re-evaluate the runs that waited for them (case 73)
  for (const run of await listOpenRuns(deps.database.db, { installationId: event.installationId })) {
    await withRun(deps, run.id, async (unit) => {
      await notePermissions(unit, installation);
      unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
    });
  }
  await reviveRuns(deps, { installationId: event.installationId });
  return status;
}

/** `installation_repositories`: repositories came or went. */
export async function receiveInstallationRepositories(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'installation_repositories' }>,
): Promise<string> {
  for (const gone of event.removed) {
    await deps.database.transaction((tx) => removeRepository(tx, gone.id, event.installationId));
    await parkRuns(deps, { repositoryId: gone.id, installationId: event.installationId });
  }
  if (event.added.length > 0) await learnRepositories(deps, event.installationId);
  return 'noted';
}

/** `repository`: renamed, transferred, deleted, made private, its default branch changed. */
export async function receiveRepository(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'repository' }>,
): Promise<string> {
  const { repository, installationId } = event;
  if (event.action === 'deleted') {
    await deps.database.transaction((tx) => removeRepository(tx, repository.id, installationId));
    await parkRuns(deps, { repositoryId: repository.id });
    return 'removed';
  }
  const before = await findRepository(deps.database.db, repository.id);
  await deps.database.transaction((tx) =>
    keepPlace(tx, before, {
      id: repository.id,
      installationId,
      ownerId: repository.ownerId,
      owner: repository.owner,
      name: repository.name,
      defaultBranch: repository.defaultBranch,
      private: repository.private,
    }),
  );
  // under another installation its pull requests get runs of their next epoch (RUN-1)
  if (before !== null && before.installationId !== installationId) await queueReconcile(deps, repository.id);
  return 'noted';
}

/** Asks GitHub what the installation covers, and queues a comparison of each of its repositories. */
export async function learnRepositories(deps: Deps, installationId: string): Promise<number> {
  // before GitHub is asked: one that is added meanwhile is not missing from its answer
  const known = await listRepositories(deps.database.db, installationId);
  const covered = await deps.github.listRepositories(installationId);
  const ids = new Set(covered.map((one) => one.id));
  const served = new Map(known.map((one) => [one.id, one]));
  for (const gone of known.filter((one) => !ids.has(one.id))) {
    await deps.database.transaction((tx) => removeRepository(tx, gone.id, installationId));
    await parkRuns(deps, { repositoryId: gone.id, installationId });
  }
  await deps.database.transaction(async (tx) => {
    for (const { id, ownerId, owner, name, defaultBranch, private: hidden } of covered)
      await keepPlace(tx, served.get(id) ?? null, {
        id,
        installationId,
        ownerId,
        owner,
        name,
        defaultBranch,
        private: hidden,
      });
    await addJobs(
      tx,
      covered.map((one) => ({
        task: 'reconcile',
        payload: { repository: one.id },
        key: `reconcile:${one.id}`,
        priority: 20,
      })),
    );
  });
  for (const { id } of covered.filter((one) => !served.has(one.id)))
    await reviveRuns(deps, { repositoryId: id, installationId });
  return covered.length;
}

/** Puts back into the queue what parking took out of it: runs that are served again lost their tickets, and nothing else changed. */
export async function reviveRuns(
  deps: Deps,
  which: { readonly installationId: string; readonly repositoryId?: string },
): Promise<void> {
  const runs = await listOpenRuns(deps.database.db, which);
  await deps.database.transaction((tx) =>
    addJobs(
      tx,
      runs.map((run) => ({
        task: 'cut-tickets',
        payload: { run: run.id },
        key: `cut-tickets:${run.id}`,
        priority: 10,
      })),
    ),
  );
}

/** Revokes the leases and cancels the tickets of an installation that may not be served; its runs and ledger stay. */
export async function parkInstallation(deps: Deps, installationId: string): Promise<void> {
  await parkRuns(deps, { installationId });
}

async function parkRuns(
  deps: Deps,
  which: { readonly installationId?: string; readonly repositoryId?: string },
): Promise<void> {
  for (const run of await listOpenRuns(deps.database.db, which))
    await withRun(deps, run.id, (unit) => cancelTicketsOfRun(unit.tx, run.id, 'parked'));
}
