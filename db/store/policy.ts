/** Policy bytes by their hash (RUN-8). */
import { createHash } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { policy } from '../schema/installation.ts';

/** Stores policy bytes once and answers their SHA-256 in lower-case hex; bytes that were damaged since are mended (RUN-8). */
export async function storePolicy(tx: Tx, bytes: Buffer): Promise<string> {
  const hash = createHash('sha256').update(bytes).digest('hex');
  await tx
    .insert(policy)
    .values({ hash, bytes, storedAt: sql`cs_now()` })
    .onConflictDoUpdate({
      target: policy.hash,
      set: { bytes: sql`excluded.bytes` },
      setWhere: sql`${policy.bytes} <> excluded.bytes`,
    });
  return hash;
}

/** The bytes of a policy, or null; bytes that no longer match their hash are null as well, never another policy. */
export async function loadPolicy(db: Reader, hash: string): Promise<Buffer | null> {
  const [found] = await db.select({ bytes: policy.bytes }).from(policy).where(eq(policy.hash, hash));
  if (found === undefined) return null;
  return createHash('sha256').update(found.bytes).digest('hex') === hash ? found.bytes : null;
}
