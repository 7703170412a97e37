/** Recorded runs for `countersign simulate`: read, never locked. */
import { and, desc, gte, isNull, sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';
import { repository } from '../schema/installation.ts';
import { run } from '../schema/run.ts';
import type { Repository } from './installation.ts';
import type { Run } from './run.ts';

/** Runs newest first by when they were opened, at most `most`, but for sealed ones, whose successors stand for them; `since`: those opened at or after that product time. */
export async function listRecordedRuns(
  reader: Reader,
  { since, most }: { readonly since: Date | null; readonly most: number },
): Promise<Run[]> {
  return await reader
    .select()
    .from(run)
    .where(and(isNull(run.next), since === null ? undefined : gte(run.openedAt, since)))
    .orderBy(desc(run.openedAt), desc(run.id))
    .limit(most);
}

/** The repository of that address as it was last told, in any case of its letters; one that is active before others. */
export async function findRepositoryByAddress(
  reader: Reader,
  owner: string,
  name: string,
): Promise<Repository | null> {
  const [found] = await reader
    .select()
    .from(repository)
    .where(sql`lower(${repository.owner}) = lower(${owner}) and lower(${repository.name}) = lower(${name})`)
    .orderBy(sql`${repository.status} = 'active' desc`, desc(repository.id))
    .limit(1);
  return found ?? null;
}
