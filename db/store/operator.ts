/** Tokens that throw the kill switch by the API: kept as their hash, one a name (CTL-5). */
import { asc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { operatorToken } from '../schema/setting.ts';

/** An operator token as stored. */
export type OperatorToken = typeof operatorToken.$inferSelect;

/** Keeps the hash of a new token; false where the name has one. */
export async function addOperatorToken(
  tx: Tx,
  of: Pick<OperatorToken, 'name' | 'installationId' | 'tokenHash'>,
): Promise<boolean> {
  const added = await tx
    .insert(operatorToken)
    .values({ ...of, createdAt: sql`cs_now()` })
    .onConflictDoNothing({ target: operatorToken.name })
    .returning({ name: operatorToken.name });
  return added.length > 0;
}

/** The token of that hash, or null. */
export async function findOperatorToken(reader: Reader, tokenHash: Buffer): Promise<OperatorToken | null> {
  const [found] = await reader.select().from(operatorToken).where(eq(operatorToken.tokenHash, tokenHash));
  return found ?? null;
}

/** Every token that holds, by name. */
export async function listOperatorTokens(reader: Reader): Promise<OperatorToken[]> {
  return reader.select().from(operatorToken).orderBy(asc(operatorToken.name));
}

/** Takes a name's token away; null where it has none. */
export async function dropOperatorToken(tx: Tx, name: string): Promise<OperatorToken | null> {
  const [gone] = await tx.delete(operatorToken).where(eq(operatorToken.name, name)).returning();
  return gone ?? null;
}
