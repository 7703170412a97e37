/** Review keys over runs of one repository (TKT-4). What is found here only names runs to verify. */
import { sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';

/** A run of the same repository and installation that has a counting result of a key. */
export interface ReviewElsewhere {
  readonly runId: string;
  readonly key: string;
}

/** Other runs with a complete review of any of these keys, those with the newest result first, at most `limit` pairs. */
export async function listReviewsElsewhere(
  reader: Reader,
  place: { readonly installationId: string; readonly repositoryId: string; readonly runId: string },
  keys: readonly string[],
  limit: number,
): Promise<ReviewElsewhere[]> {
  if (keys.length === 0) return [];
  const { rows } = await reader.execute<{ run_id: string; key: string }>(sql`
    select run_id, key from ticket
    where repository_id = ${place.repositoryId} and key = any(${sql.param(keys)}::text[])
      and state = 'ended' and end_code = 'reviewed' and not partial and verdict in ('approve', 'findings')
      and installation_id = ${place.installationId} and run_id <> ${place.runId}
    group by run_id, key order by max(ended_at) desc, run_id, key limit ${limit}`);
  return rows.map((row) => ({ runId: row.run_id, key: row.key }));
}

/** Other open runs of a repository whose present head wants a key. */
export async function listRunsWanting(
  reader: Reader,
  place: { readonly installationId: string; readonly repositoryId: string; readonly runId: string },
  key: string,
): Promise<string[]> {
  const { rows } = await reader.execute<{ id: string }>(sql`
    select r.id from run r
    where r.repository_id = ${place.repositoryId} and r.installation_id = ${place.installationId}
      and r.status = 'open' and r.id <> ${place.runId}
      and exists (select from file f where f.run_id = r.id and f.key = ${key})
    order by r.id`);
  return rows.map((row) => row.id);
}
