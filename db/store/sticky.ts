/** The one sticky comment of a pull request (CMD-4): intent first, GitHub's id once known, what GitHub has. */
import { and, eq, sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';
import { sticky } from '../schema/check.ts';

/** Which pull request. */
export interface StickyPlace {
  readonly repositoryId: string;
  readonly pull: string;
}

/** The comment as we know it: `commentId` is null while its creation may or may not have happened. */
export interface StoredSticky extends StickyPlace {
  readonly commentId: string | null;
  readonly intendedAtMs: number;
  readonly written: string | null;
}

const at = (place: StickyPlace) =>
  and(eq(sticky.repositoryId, place.repositoryId), eq(sticky.pull, place.pull));

/** The sticky comment of a pull request, or null when none was ever begun. */
export async function findSticky(reader: Reader, place: StickyPlace): Promise<StoredSticky | null> {
  const [row] = await reader.select().from(sticky).where(at(place));
  if (row === undefined) return null;
  return {
    repositoryId: row.repositoryId,
    pull: row.pull,
    commentId: row.commentId,
    intendedAtMs: row.intendedAt.getTime(),
    written: row.written,
  };
}

/** Commits the intent to create it; one that was deleted on GitHub is begun again. */
export async function intendSticky(reader: Reader, place: StickyPlace): Promise<void> {
  const value = { commentId: null, intendedAt: sql<Date>`cs_now()`, written: null };
  await reader
    .insert(sticky)
    .values({ ...place, ...value })
    .onConflictDoUpdate({ target: [sticky.repositoryId, sticky.pull], set: value });
}

/** Takes down its id and the digest of the body that GitHub has; null where that is not known. */
export async function writtenSticky(
  reader: Reader,
  place: StickyPlace,
  value: { readonly commentId: string; readonly written: string | null },
): Promise<void> {
  await reader.update(sticky).set(value).where(at(place));
}
