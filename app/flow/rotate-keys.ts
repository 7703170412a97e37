/**
 * Records that a ledger's rows are signed under another root from now on (LED-6): one row a chain of
 * an installation, under the old root, which a stranger finds before the first row of the new one.
 *
 * Reads: installations, heads. Writes: rows `key.rotated`. Calls: nothing. May fail with: what Postgres does.
 */
import { listInstallations } from '../../db/store/installation.ts';
import { type UnitDeps, withInstallation } from './append-rows.ts';

/** Appends `key.rotated` to every installation's chain; `deps.signer` still signs under `from`. Answers how many. */
export async function rotateKeys(
  deps: UnitDeps,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<number> {
  const installations = await listInstallations(deps.database.db);
  for (const installation of installations) {
    await withInstallation(deps, installation, async (unit) => {
      unit.append('key.rotated', {
        block: null,
        actor: { kind: 'app', id: 'countersign', via: 'command_line' },
        cause: { kind: 'command_line', id: 'keys rotate', sha256: null },
        data: { from, to },
      });
    });
  }
  return installations.length;
}
