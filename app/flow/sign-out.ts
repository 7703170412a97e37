/**
 * Ends a person's visit under every secret it had, so that a copied cookie ends with it.
 *
 * Reads: nothing. Writes: visits. Calls: nothing. May fail with: what Postgres does.
 */
import { endVisits } from '../../db/store/visit.ts';
import type { Deps } from './deps.ts';
import type { Visitor } from './read-visit.ts';

/** Signs out. */
export async function signOut(deps: Deps, visitor: Visitor): Promise<void> {
  await endVisits(deps.database.db, visitor.family);
  deps.log.info({ user: visitor.userId }, 'sign-out');
}
