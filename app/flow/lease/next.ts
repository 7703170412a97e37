/** The tickets that a runner asks for with its result (LSE-1): of the same repository in the same commit where they are to come from there. */
import type { Lease } from '../../../db/store/lease.ts';
import type { Login } from '../../../db/store/runner.ts';
import type { Granted, LeaseAsk } from '../../../db/store/turn.ts';
import type { Deps } from '../deps.ts';
import { askFor, type LeaseOutcome, type LeaseRequest, NOTHING, tellLeases } from '../lease.ts';
import { accessTo, isNextHere, leaseOfPool, noteServed } from './pool.ts';

/** What goes into the turn that ends the lease, and how what comes of it is told; null where nothing was asked for. */
export interface NextLeases {
  readonly ask: LeaseAsk | null;
  readonly tell: (granted: readonly Granted[]) => Promise<LeaseOutcome | null>;
}

/** Prepares them. */
export async function nextLeases(
  deps: Deps,
  login: Login,
  seen: Lease,
  request: LeaseRequest | null,
): Promise<NextLeases> {
  if (request === null) return { ask: null, tell: async () => null };
  if (login.held === true) return { ask: null, tell: async () => NOTHING };
  const { repositoryId, installationId } = seen;
  if (login.identity.repository !== null) {
    const asked = await askFor(deps, login, request);
    return {
      ask: asked.ask,
      tell: (granted) => tellLeases(deps, login, asked, granted, { repositoryId, access: null }),
    };
  }
  const { pool } = login.identity;
  const access = (await isNextHere(deps, pool, { installationId, repositoryId }))
    ? await accessTo(deps, repositoryId, installationId)
    : null;
  // another installation or repository is next: its turn is one of its own, once the result is in
  if (access === null) return { ask: null, tell: () => leaseOfPool(deps, login, request) };
  const asked = await askFor(deps, login, request);
  return {
    ask: asked.ask,
    tell: async (granted) => {
      if (granted.length === 0)
        return leaseOfPool(deps, login, { ...request, again: false }, new Set([repositoryId]));
      await noteServed(deps, pool, [installationId]);
      return tellLeases(deps, login, asked, granted, { repositoryId, access });
    },
  };
}
