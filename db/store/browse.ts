/** What the pages list (OPS-8): newest runs, tickets of a run, and what is queued. Who may see it is asked before it is shown. */
import { inArray, sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';
import { repository } from '../schema/installation.ts';
import type { Repository } from './installation.ts';

/** A line of the list of runs. */
export interface RunLine {
  readonly id: string;
  readonly repositoryId: string;
  readonly pull: string | null;
  readonly groupHead: string | null;
  readonly epoch: number;
  readonly status: string;
  readonly title: string;
  readonly authorLogin: string | null;
  readonly baseRef: string;
  readonly mode: 'enforce' | 'advisory';
  readonly draft: boolean;
  readonly head: string;
  /** The gate's last conclusion; null before its first decision on this head. */
  readonly conclusion: string | null;
  readonly openedAtMs: number;
  /** Microseconds since the epoch, as digits: where the next page begins. */
  readonly mark: string;
}

/** The newest runs of some installations that were opened before `mark` (null: from the newest on), at most `limit`. */
export async function listNewestRuns(
  reader: Reader,
  installations: readonly string[],
  mark: string | null,
  limit: number,
): Promise<RunLine[]> {
  if (installations.length === 0) return [];
  const { rows } = await reader.execute<Record<keyof RunLine, never>>(sql`
    select r.id, r.repository_id::text as "repositoryId", r.pull::text as pull, r.group_head as "groupHead", r.epoch,
           r.status, r.title, r.author_login as "authorLogin", r.base_ref as "baseRef", r.mode, r.draft,
           r.told_head as head, g.conclusion,
           (extract(epoch from r.opened_at) * 1000)::float8 as "openedAtMs",
           (extract(epoch from r.opened_at) * 1000000)::bigint::text as mark
      from unnest(${sql.param(installations)}::bigint[]) i(id)
     cross join lateral (
       select * from run where installation_id = i.id
          and (${mark}::bigint is null or opened_at < 'epoch'::timestamptz + ${mark}::bigint * interval '1 microsecond')
        order by opened_at desc, id desc limit ${limit}) r
      left join gate g on g.run_id = r.id and g.head = r.told_head
     order by r.opened_at desc, r.id desc limit ${limit}`);
  return rows as unknown as RunLine[];
}

/** A ticket as the page of its run shows it. */
export interface TicketLine {
  readonly id: string;
  readonly blockId: string;
  readonly path: Buffer;
  readonly round: number;
  readonly state: string;
  readonly level: string;
  readonly reviewers: readonly string[];
  readonly provider: string;
  readonly grant: number;
  readonly losses: number;
  readonly end: string | null;
  readonly verdict: string | null;
  readonly reason: string | null;
  readonly queuedAtMs: number;
  readonly endedAtMs: number | null;
  readonly notBeforeMs: number | null;
  /** Of the lease that has it now. */
  readonly leasedAtMs: number | null;
}

const ms = (column: string) => sql.raw(`(extract(epoch from ${column}) * 1000)::float8`);

/** Tickets of a run, newest first, at most `limit`, with how many there are. */
export async function listRunTickets(
  reader: Reader,
  runId: string,
  limit: number,
): Promise<{ readonly tickets: readonly TicketLine[]; readonly count: number }> {
  // three branches as the table's partial indexes are cut: one condition over all states would read every ticket there is
  const { rows } = await reader.execute<Record<string, unknown>>(sql`
    with of as (
      select * from ticket where run_id = ${runId} and state in ('pending', 'leased')
      union all select * from ticket where run_id = ${runId} and state = 'held'
      union all select * from ticket where run_id = ${runId} and state not in ('pending', 'leased', 'held'))
    select t.id, t.block_id as "blockId", t.path, t.round, t.state, t.level, t.reviewers, t.provider,
           t.grant_no as grant, t.losses, t.end_code as "end", t.verdict, t.reason,
           ${ms('t.queued_at')} as "queuedAtMs", ${ms('t.ended_at')} as "endedAtMs",
           ${ms('t.not_before')} as "notBeforeMs", ${ms('l.granted_at')} as "leasedAtMs",
           count(*) over ()::int as count
      from of t left join lease l on l.id = t.lease_id and t.state = 'leased'
     order by t.queued_at desc, t.id limit ${limit}`);
  return {
    tickets: rows as unknown as TicketLine[],
    count: Number(rows[0]?.['count'] ?? 0),
  };
}

/** Logins of people who gave commands on a run, by user id: a row of the ledger names people by id alone. */
export async function listCommandLogins(reader: Reader, runId: string): Promise<Map<string, string>> {
  const { rows } = await reader.execute<{ id: string; login: string }>(
    sql`select distinct on (user_id) user_id::text as id, login from command where run_id = ${runId} order by user_id, taken_at desc`,
  );
  return new Map(rows.map((row) => [row.id, row.login]));
}

/** Repositories of some installations in which something waits, is leased, was dispatched, or which had a run of late; at most `limit`. */
export async function listBusyRepositories(
  reader: Reader,
  installations: readonly string[],
  limit: number,
): Promise<Repository[]> {
  if (installations.length === 0) return [];
  const of = sql`any(${sql.param(installations)}::bigint[])`;
  const { rows } = await reader.execute<{ id: string }>(sql`
    with busy as (
      select repository_id, 0 as rank from ticket where state in ('pending', 'leased') and installation_id = ${of}
      union select repository_id, 0 from dispatch
             where state in ('intended', 'sent', 'ambiguous', 'answered') and ended_at is null and installation_id = ${of}
      union select repository_id, 0 from pool where settled_until is not null and installation_id = ${of}
      union select repository_id, 1 from (
        select r.repository_id from unnest(${sql.param(installations)}::bigint[]) i(id)
         cross join lateral (select repository_id from run where installation_id = i.id
                              order by opened_at desc, id desc limit 10) r) newest)
    select p.id::text as id from (select repository_id, min(rank) as rank from busy group by repository_id) b
      join repository p on p.id = b.repository_id and p.status = 'active'
     order by b.rank, p.id limit ${limit}`);
  const found = await findRepositories(
    reader,
    rows.map((row) => row.id),
  );
  return rows.flatMap((row) => found.get(row.id) ?? []);
}

/** Repositories by id; those that are not known are absent. */
export async function findRepositories(
  reader: Reader,
  ids: readonly string[],
): Promise<Map<string, Repository>> {
  if (ids.length === 0) return new Map();
  const rows = await reader
    .select()
    .from(repository)
    .where(inArray(repository.id, [...ids]));
  return new Map(rows.map((row) => [row.id, row]));
}
