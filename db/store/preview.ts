/** Previews of policies that pull requests bring (RUN-9): one a pull request, of its newest head. */
import { and, desc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { preview } from '../schema/preview.ts';

/** A preview as it is to be shown. */
export type StoredPreview = Omit<typeof preview.$inferSelect, 'madeAt'>;

/** Puts a preview in place of the one before; false when it says the same of the same head. */
export async function putPreview(tx: Tx, value: StoredPreview): Promise<boolean> {
  const { repositoryId: _r, pull: _p, ...said } = value;
  const put = await tx
    .insert(preview)
    .values({ ...value, madeAt: sql`cs_now()` })
    .onConflictDoUpdate({
      target: [preview.repositoryId, preview.pull],
      set: { ...said, madeAt: sql`cs_now()` },
      setWhere: sql`(${preview.sha}, ${preview.conclusion}, ${preview.title}, ${preview.summary})
        is distinct from (excluded.sha, excluded.conclusion, excluded.title, excluded.summary)`,
    })
    .returning({ pull: preview.pull });
  return put.length > 0;
}

/** The newest preview of a commit; null where no pull request on it brings a policy. */
export async function findPreview(
  reader: Reader,
  repositoryId: string,
  sha: string,
): Promise<StoredPreview | null> {
  const [row] = await reader
    .select()
    .from(preview)
    .where(and(eq(preview.repositoryId, repositoryId), eq(preview.sha, sha)))
    .orderBy(desc(preview.madeAt))
    .limit(1);
  if (row === undefined) return null;
  const { madeAt: _, ...stored } = row;
  return stored;
}

/** Takes a preview away; false when there was none. */
export async function dropPreview(tx: Tx, repositoryId: string, pull: string): Promise<boolean> {
  const gone = await tx
    .delete(preview)
    .where(and(eq(preview.repositoryId, repositoryId), eq(preview.pull, pull)))
    .returning({ pull: preview.pull });
  return gone.length > 0;
}
