/**
 * A runner goes (LSE-6): it is no capacity from now on, and what it still holds ends like what a lost one held.
 *
 * Reads: lease. Writes: runner, login, lease, ticket, receipt; rows `ticket.ended receipt.ended receipt.waiting`. Calls: nothing. Queues: dispatch.
 * May fail with: nothing.
 */
import { listLeasesOfRunner } from '../../db/store/lease.ts';
import { listReceiptLeasesOfRunner } from '../../db/store/receipt-lease.ts';
import { endRunner, type Login, revokeLogins } from '../../db/store/runner.ts';
import type { Deps } from './deps.ts';
import { loseLeases } from './expire.ts';
import { loseReceiptLeases } from './expire-receipts.ts';
import { wakePlanners } from './login-pool.ts';

/** Ends a runner and its logins; where it was resident, what waits for its pool is planned again. */
export async function logout(deps: Deps, login: Login): Promise<void> {
  await deps.database.transaction(async (tx) => {
    await endRunner(tx, login.runnerId);
    await revokeLogins(tx, login.runnerId);
    if (login.poolToken !== null) await wakePlanners(tx, login.identity.pool);
  });
  const lost = await loseLeases(deps, await listLeasesOfRunner(deps.database.db, login.runnerId));
  await loseReceiptLeases(deps, await listReceiptLeasesOfRunner(deps.database.db, login.runnerId));
  deps.log.info({ runner: login.runnerId, pool: login.identity.pool, lost }, 'logout');
}
