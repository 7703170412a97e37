/** The erasable store of free text, by SHA-256 (LED-2, LED-17). */
import { createHash } from 'node:crypto';
import { inArray, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { storedText } from '../schema/text.ts';

/** The reference to a text: SHA-256 of its UTF-8 bytes, hex. A lone surrogate counts as U+FFFD. */
export function textRef(content: string): string {
  return createHash('sha256').update(content, 'utf8').digest('hex');
}

/** Stores texts in one statement and gives their references, in order; a text that was there is kept fresh. */
export async function putTexts(tx: Tx, contents: readonly string[]): Promise<string[]> {
  const refs = contents.map(textRef);
  const rows = new Map<string, string>();
  for (const [index, ref] of refs.entries()) rows.set(ref, contents[index] ?? '');
  if (rows.size === 0) return refs;
  // sorted: two transactions that store the same texts lock them in one order
  const values = [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([ref, content]) => ({
      sha256: Buffer.from(ref, 'hex'),
      content: Buffer.from(content, 'utf8'),
      storedAt: sql<Date>`cs_now()`,
    }));
  await tx
    .insert(storedText)
    .values(values)
    .onConflictDoUpdate({
      target: storedText.sha256,
      set: { content: sql`excluded.content`, storedAt: sql`excluded.stored_at`, erasedAt: null },
    });
  return refs;
}

/** Stores one text and gives its reference. */
export async function putText(tx: Tx, content: string): Promise<string> {
  const [ref] = await putTexts(tx, [content]);
  return ref ?? textRef(content);
}

/** The texts of references, by reference; null for one that was erased, absent for one never stored. */
export async function readTexts(
  reader: Reader,
  refs: readonly string[],
): Promise<Map<string, string | null>> {
  if (refs.length === 0) return new Map();
  const rows = await reader
    .select({ sha256: storedText.sha256, content: storedText.content })
    .from(storedText)
    .where(
      inArray(
        storedText.sha256,
        [...new Set(refs)].map((ref) => Buffer.from(ref, 'hex')),
      ),
    );
  return new Map(rows.map((row) => [row.sha256.toString('hex'), row.content?.toString('utf8') ?? null]));
}

/** Erases texts; the rows that refer to them still verify (LED-17). Returns how many there were. */
export async function eraseTexts(tx: Tx, refs: readonly string[]): Promise<number> {
  if (refs.length === 0) return 0;
  const erased = await tx
    .update(storedText)
    .set({ content: null, erasedAt: sql`cs_now()` })
    .where(
      inArray(
        storedText.sha256,
        [...new Set(refs)].map((ref) => Buffer.from(ref, 'hex')),
      ),
    );
  return erased.rowCount ?? 0;
}

/** Erases what was last stored before a moment; returns how many. */
export async function eraseTextsBefore(tx: Tx, before: Date): Promise<number> {
  const erased = await tx
    .update(storedText)
    .set({ content: null, erasedAt: sql`cs_now()` })
    .where(sql`${storedText.storedAt} < ${before} and ${storedText.content} is not null`);
  return erased.rowCount ?? 0;
}
