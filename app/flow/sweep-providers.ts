/**
 * What time alone decides about providers (POOL-3): a settled one that is due gets one ticket as its
 * probe and somebody to work it; each settling and revival becomes a row of the installation's chain.
 *
 * Reads: provider, run, ticket. Writes: ticket, provider, slot wish; row `provider.changed`. Calls: nothing. Queues: dispatch.
 */
import { findInstallation } from '../../db/store/installation.ts';
import {
  listSettledProviders,
  listUnnotedProviders,
  noteProvider,
  type Provider,
  pruneSlotWishes,
} from '../../db/store/provider.ts';
import { productNow } from '../../db/store/run.ts';
import { fillWindows, pointProbe } from '../../db/store/ticket.ts';
import { hasPending, listRunsBehind } from '../../db/store/waiting.ts';
import { appendToInstallation, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';

const BATCH = 50;

/** Notes what changed and lets one probe through per provider that is due; returns how many of both. */
export async function sweepProviders(deps: Deps): Promise<number> {
  const { db } = deps.database;
  await pruneSlotWishes(db);
  let n = 0;
  for (const changed of await listUnnotedProviders(db, BATCH)) if (await note(deps, changed)) n++;
  const now = await productNow(db);
  for (const settled of await listSettledProviders(db))
    if (settled.settledUntil !== null && settled.settledUntil <= now && (await probe(deps, settled))) n++;
  return n;
}

async function note(deps: Deps, changed: Provider): Promise<boolean> {
  const installation = await findInstallation(deps.database.db, changed.installationId);
  if (installation === null) return false;
  return deps.database.transaction(async (tx) => {
    // asked before the chain is opened: another process may have said it, and a chain begins with a row
    if (!(await noteProvider(tx, changed))) return false;
    await appendToInstallation(deps, tx, installation, 'provider.changed', {
      block: null,
      actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
      cause: { kind: 'schedule', id: 'sweep-providers', sha256: null },
      data: {
        provider: changed.name,
        state: changed.settledUntil === null ? 'revived' : 'settled',
        until: changed.settledUntil?.toISOString() ?? null,
        ...(changed.detail === null ? {} : { detail: changed.detail.slice(0, 200) }),
      },
    });
    return true;
  });
}

/** Sees to it that a ticket waits for the provider and a runner is asked for; the lease lets just one through. */
async function probe(deps: Deps, settled: Provider): Promise<boolean> {
  const behind = await listRunsBehind(deps.database.db, settled.installationId, settled.name);
  const [first] = behind;
  if (first === undefined) return false;
  const waits = await hasPending(deps.database.db, settled.installationId, settled.name);
  return withRun(deps, waits?.runId ?? first.runId, async (unit) => {
    if (waits === null) {
      if (!(await pointProbe(unit.tx, unit.run.id, settled.name))) return false;
      await fillWindows(unit.tx, unit.run.id);
    }
    unit.enqueue(
      'dispatch',
      { repository: unit.run.repositoryId },
      { key: `dispatch:${unit.run.repositoryId}` },
    );
    return true;
  });
}
