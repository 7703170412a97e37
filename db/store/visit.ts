/** Visits (OPS-8): who is signed in to the pages, by product time. Secrets come hashed. */
import { eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { visit } from '../schema/visit.ts';

/** A visit as stored. */
export type Visit = typeof visit.$inferSelect;

/** Begins a visit that holds for `ttlMs`, and forgets those that ended a day ago. */
export async function addVisit(
  tx: Tx,
  values: Pick<Visit, 'secretHash' | 'family' | 'userId' | 'login' | 'installations'>,
  ttlMs: number,
): Promise<void> {
  await tx.delete(visit).where(sql`${visit.expiresAt} < cs_now() - interval '1 day'`);
  await tx.insert(visit).values({
    ...values,
    signedInAt: sql`cs_now()`,
    madeAt: sql`cs_now()`,
    expiresAt: sql`cs_now() + ${ttlMs} * interval '1 millisecond'`,
  });
}

/** The visit of a secret while it holds, with the product time of the look; null: unknown or over. */
export async function findVisit(
  reader: Reader,
  secretHash: Buffer,
): Promise<{ readonly visit: Visit; readonly now: Date } | null> {
  const [found] = await reader
    .select({ visit, now: sql<string>`(extract(epoch from cs_now()) * 1000)::bigint` })
    .from(visit)
    .where(sql`${visit.secretHash} = ${secretHash} and ${visit.expiresAt} > cs_now()`)
    .limit(1);
  return found === undefined ? null : { visit: found.visit, now: new Date(Number(found.now)) };
}

/**
 * Puts a new secret in the place of one that holds, in one statement: of several requests that try at
 * once one succeeds. The old one holds for `graceMs` more; the new one for `idleMs`, and no longer than
 * `mostMs` after the sign-in. False: it was replaced already, or is over.
 */
export async function renewVisit(
  reader: Reader,
  from: Buffer,
  to: Buffer,
  { graceMs, idleMs, mostMs }: { readonly graceMs: number; readonly idleMs: number; readonly mostMs: number },
): Promise<boolean> {
  const { rows } = await reader.execute(sql`
    with old as (
      update visit set replaced = true,
             expires_at = least(expires_at, cs_now() + ${graceMs} * interval '1 millisecond')
       where secret_hash = ${from} and not replaced and expires_at > cs_now()
      returning family, user_id, login, installations, signed_in_at)
    insert into visit (secret_hash, family, user_id, login, installations, signed_in_at, made_at, expires_at)
    select ${to}, family, user_id, login, installations, signed_in_at, cs_now(),
           least(cs_now() + ${idleMs} * interval '1 millisecond', signed_in_at + ${mostMs} * interval '1 millisecond')
      from old
    returning family`);
  return rows.length === 1;
}

/** Ends a sign-in under every secret it had. */
export async function endVisits(reader: Reader, family: string): Promise<void> {
  await reader.delete(visit).where(eq(visit.family, family));
}
