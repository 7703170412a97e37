/** Paths that several open pull requests of a repository touch or reserve (OWN-3, OWN-7): shown, and of no verdict. */
import { sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';
import type { Run } from './run.ts';

/** Another open pull request with paths of a run; `paths` are bytes, the first of `count` in their order. */
export interface StoredContention {
  readonly pull: string;
  readonly kind: 'touches' | 'reserves';
  readonly count: number;
  readonly paths: readonly Buffer[];
}

/** Most lines of a run, and most paths of a line. */
const MOST = { lines: 20, paths: 5 };

/**
 * The other open pull requests that change or reserve what this run changes or reserves, most paths
 * first. Runs that may not spend count for nothing, on either side (RUN-10).
 */
export async function contentionOf(
  reader: Reader,
  run: Pick<Run, 'id' | 'installationId' | 'repositoryId' | 'allowedRule'>,
): Promise<StoredContention[]> {
  if (run.allowedRule === null) return [];
  // all claims of a person for a block that is there; what the head changes as well is told as touched
  const held = sql`
    select c.run_id, c.path from claim c join block b on b.run_id = c.run_id and b.id = c.block_id
     where not c.auto and b.status <> 'dropped'
       and not exists (select from file f where f.run_id = c.run_id and sha256(f.path) = sha256(c.path))`;
  const { rows } = await reader.execute<{ pull: string; kind: string; n: number; paths: string[] }>(sql`
    with held as (${held}),
    mine as (
      select path from file where run_id = ${run.id} union select path from held where run_id = ${run.id}),
    other as (
      select id, pull from run
       where repository_id = ${run.repositoryId} and installation_id = ${run.installationId} and id <> ${run.id}
         and status in ('open', 'paused', 'stopped') and pull is not null and allowed_rule is not null),
    -- by the index of a run's paths where there are few, by hash where there are many: the planner knows
    both_sides as (
      select o.pull, 'touches' as kind, f.path from other o cross join mine m join file f on f.run_id = o.id and sha256(f.path) = sha256(m.path)
      union all
      select o.pull, 'reserves', h.path from other o join held h on h.run_id = o.id join mine m on m.path = h.path)
    select pull::text, kind, count(*)::int as n,
           (array_agg(encode(path, 'hex') order by path))[1:${sql.raw(String(MOST.paths))}] as paths
      from both_sides group by both_sides.pull, kind
     order by count(*) desc, both_sides.pull, kind desc limit ${MOST.lines}`);
  return rows.map((row) => ({
    pull: row.pull,
    kind: row.kind === 'reserves' ? 'reserves' : 'touches',
    count: row.n,
    paths: row.paths.map((hex) => Buffer.from(hex, 'hex')),
  }));
}
