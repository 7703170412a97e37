/**
 * Who looks at the pages: the visit of the secret in a cookie (OPS-8).
 *
 * Reads: visits. Writes: a visit's next secret, when the present one is old enough. Calls: nothing.
 * May fail with: what Postgres does.
 */
import { findVisit, renewVisit } from '../../db/store/visit.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Deps } from './deps.ts';
import { secretHash } from './login.ts';

/** A person who is signed in. */
export interface Visitor {
  readonly family: string;
  readonly userId: string;
  readonly login: string;
  /** Where to look for runs; what may be seen is asked on GitHub. */
  readonly installations: readonly string[];
  /** Product time of this look. */
  readonly now: Date;
}

/** A visitor, and the secret that takes the place of the one that was brought (null: that one stays). */
export interface VisitReading {
  readonly visitor: Visitor;
  readonly renewed: string | null;
}

/** The visitor of a secret; null: nobody, or a visit that is over. With `renew`, an old secret is replaced. */
export async function readVisit(
  deps: Deps,
  secret: string | null,
  { renew }: { readonly renew: boolean },
): Promise<VisitReading | null> {
  if (secret === null || !/^[A-Za-z0-9_-]{43}$/.test(secret)) return null;
  const { db } = deps.database;
  const hash = secretHash(secret);
  const found = await findVisit(db, hash);
  if (found === null) return null;
  const { visit, now } = found;
  const visitor = {
    family: visit.family,
    userId: visit.userId,
    login: visit.login,
    installations: visit.installations,
    now,
  };
  const old = now.getTime() - visit.madeAt.getTime() >= LIMITS.visitRenewMs.default;
  if (!renew || !old || visit.replaced) return { visitor, renewed: null };
  const next = deps.ids.secret();
  const done = await renewVisit(db, hash, secretHash(next), {
    graceMs: LIMITS.visitGraceMs.default,
    idleMs: LIMITS.visitIdleMs.default,
    mostMs: LIMITS.visitMostMs.default,
  });
  return { visitor, renewed: done ? next : null };
}
