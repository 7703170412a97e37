/** The one review of ours on a head of a pull request (PUB-5): intent first, GitHub's id once known. */
import { and, eq, sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';
import { remark } from '../schema/remark.ts';

/** Which head of which pull request. */
export interface RemarkPlace {
  readonly repositoryId: string;
  readonly pull: string;
  readonly sha: string;
}

/** A review of ours as we know it; `findings` are those whose suggestions are in it, none where there was nothing to post. */
export interface StoredRemark extends RemarkPlace {
  readonly runId: string;
  readonly state: 'intended' | 'posted' | 'refused';
  readonly githubId: string | null;
  readonly findings: readonly number[];
  readonly attempts: number;
}

const at = (place: RemarkPlace) =>
  and(eq(remark.repositoryId, place.repositoryId), eq(remark.pull, place.pull), eq(remark.sha, place.sha));

/** The review of a head, or null when none was ever begun. */
export async function findRemark(reader: Reader, place: RemarkPlace): Promise<StoredRemark | null> {
  const [row] = await reader.select().from(remark).where(at(place));
  if (row === undefined) return null;
  const { intendedAt: _, ...rest } = row;
  return rest;
}

/** Commits the intent to make it, before GitHub is asked; again after an attempt whose end is not known. */
export async function intendRemark(
  reader: Reader,
  place: RemarkPlace,
  value: { readonly runId: string; readonly findings: readonly number[] },
): Promise<void> {
  const { runId } = value;
  const findings = [...value.findings];
  await reader
    .insert(remark)
    .values({ ...place, runId, findings, state: 'intended', attempts: 1, intendedAt: sql`cs_now()` })
    .onConflictDoUpdate({
      target: [remark.repositoryId, remark.pull, remark.sha],
      set: { findings, attempts: sql`${remark.attempts} + 1` },
      setWhere: eq(remark.state, 'intended'),
    });
}

/** Takes down how it ended: posted under GitHub's id (null: there was nothing to post), or refused. */
export async function endRemark(
  reader: Reader,
  place: RemarkPlace,
  value: {
    readonly state: 'posted' | 'refused';
    readonly githubId: string | null;
    readonly findings: readonly number[];
  },
): Promise<void> {
  await reader
    .update(remark)
    .set({ ...value, findings: [...value.findings] })
    .where(at(place));
}
