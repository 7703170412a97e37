/** What is queued, leased, dispatched and out of service in some repositories, for the page that shows it (OPS-8). */
import { sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';

const ms = (column: string) => sql.raw(`(extract(epoch from ${column}) * 1000)::float8`);

/** How much waits and is worked of one repository and provider. */
export interface QueueLine {
  readonly repositoryId: string;
  readonly provider: string;
  /** In its run's window: the next runner takes it. */
  readonly ready: number;
  /** Behind others of its run, or until a time. */
  readonly waiting: number;
  /** Until another content of the same path is through (TKT-3). */
  readonly held: number;
  readonly leased: number;
  readonly oldestMs: number | null;
}

/** Counts of what is not over, by repository and provider. */
export async function countQueue(reader: Reader, repositories: readonly string[]): Promise<QueueLine[]> {
  if (repositories.length === 0) return [];
  const of = sql`any(${sql.param(repositories)}::bigint[])`;
  const { rows } = await reader.execute<Record<string, unknown>>(sql`
    with of as (
      select repository_id, provider, state, lane, not_before, queued_at from ticket
       where state in ('pending', 'leased') and repository_id = ${of}
      union all
      select repository_id, provider, state, lane, not_before, queued_at from ticket
       where state = 'held' and repository_id = ${of})
    select repository_id::text as "repositoryId", provider,
           (count(*) filter (where state = 'pending' and lane is not null))::int as ready,
           (count(*) filter (where state = 'pending' and lane is null))::int as waiting,
           (count(*) filter (where state = 'held'))::int as held,
           (count(*) filter (where state = 'leased'))::int as leased,
           (extract(epoch from min(queued_at) filter (where state = 'pending')) * 1000)::float8 as "oldestMs"
      from of group by repository_id, provider order by repository_id, provider`);
  return rows as unknown as QueueLine[];
}

/** A lease that is live. */
export interface LeaseLine {
  readonly repositoryId: string;
  readonly runId: string;
  readonly path: Buffer;
  readonly pool: string | null;
  readonly workflowRun: string | null;
  readonly grantedAtMs: number;
  readonly expiresAtMs: number;
}

/** Live leases of some repositories, oldest first, at most `limit`. */
export async function listLiveLeases(
  reader: Reader,
  repositories: readonly string[],
  limit: number,
): Promise<LeaseLine[]> {
  if (repositories.length === 0) return [];
  const { rows } = await reader.execute<Record<string, unknown>>(sql`
    select l.repository_id::text as "repositoryId", l.run_id as "runId", t.path, r.pool,
           r.workflow_run::text as "workflowRun", ${ms('l.granted_at')} as "grantedAtMs",
           ${ms('l.expires_at')} as "expiresAtMs"
      from lease l join ticket t on t.id = l.ticket_id left join runner r on r.id = l.runner_id
     where l.state = 'live' and l.repository_id = any(${sql.param(repositories)}::bigint[])
     order by l.granted_at, l.id limit ${limit}`);
  return rows as unknown as LeaseLine[];
}

/** A dispatch that is not over. */
export interface DispatchLine {
  readonly repositoryId: string;
  readonly runId: string;
  readonly pool: string;
  readonly workflow: string;
  readonly state: string;
  readonly workflowRun: string | null;
  readonly createdAtMs: number;
  readonly dueAtMs: number | null;
}

/** Dispatches of some repositories that are not over, oldest first, at most `limit`. */
export async function listLiveDispatches(
  reader: Reader,
  repositories: readonly string[],
  limit: number,
): Promise<DispatchLine[]> {
  if (repositories.length === 0) return [];
  const { rows } = await reader.execute<Record<string, unknown>>(sql`
    select repository_id::text as "repositoryId", run_id as "runId", pool, workflow, state,
           workflow_run::text as "workflowRun", ${ms('created_at')} as "createdAtMs", ${ms('due_at')} as "dueAtMs"
      from dispatch
     where repository_id = any(${sql.param(repositories)}::bigint[]) and ended_at is null
       and state in ('intended', 'sent', 'ambiguous', 'answered')
     order by created_at, id limit ${limit}`);
  return rows as unknown as DispatchLine[];
}

/** A pool or a provider, in service or out until a time. */
export interface ServiceLine {
  /** Of a pool its repository, of a provider its installation. */
  readonly of: string;
  readonly name: string;
  readonly settledUntilMs: number | null;
  readonly missed: number;
  /** Slots in use and in all; null for a pool. */
  readonly used: number | null;
  readonly slots: number | null;
}

/** Pools of some repositories. */
export async function listPools(reader: Reader, repositories: readonly string[]): Promise<ServiceLine[]> {
  if (repositories.length === 0) return [];
  const { rows } = await reader.execute<Record<string, unknown>>(sql`
    select repository_id::text as of, name, ${ms('settled_until')} as "settledUntilMs", missed,
           null as used, null as slots
      from pool where repository_id = any(${sql.param(repositories)}::bigint[]) order by repository_id, name`);
  return rows as unknown as ServiceLine[];
}

/** A resident pool that a repository's policy names, with what lives of it. */
export interface ResidentLine {
  readonly repositoryId: string;
  readonly pool: string;
  /** Whether it is registered for the repository: else it serves it nothing. */
  readonly registered: boolean;
  readonly runners: number;
  readonly capacity: number;
  readonly leased: number;
}

/** Resident pools of some repositories; a runner counts while it was heard of within `freshMs`. */
export async function listResidents(
  reader: Reader,
  repositories: readonly string[],
  freshMs: number,
): Promise<ResidentLine[]> {
  if (repositories.length === 0) return [];
  const { rows } = await reader.execute<Record<string, unknown>>(sql`
    with named as (
      select distinct repository_id, installation_id, pool from pool_use
       where repository_id = any(${sql.param(repositories)}::bigint[])
    ), alive as (
      select r.pool, count(*)::int as runners, sum(r.capacity)::int as capacity,
             sum((select count(*) from lease l where l.runner_id = r.id and l.state = 'live'))::int as leased
        from runner r
       where r.pool in (select pool from named) and r.repository_id is null and r.ended_at is null
         and r.heartbeat_at > cs_now() - ${freshMs} * interval '1 millisecond'
       group by r.pool)
    select n.repository_id::text as "repositoryId", n.pool,
           exists (select from resident_scope s where s.pool = n.pool and s.installation_id = n.installation_id
             and (s.repositories is null or s.repositories ? n.repository_id::text)) as registered,
           coalesce(a.runners, 0) as runners, coalesce(a.capacity, 0) as capacity, coalesce(a.leased, 0) as leased
      from named n left join alive a on a.pool = n.pool order by n.repository_id, n.pool`);
  return rows as unknown as ResidentLine[];
}

/** Providers of some installations with their slots. */
export async function listProviderSlots(
  reader: Reader,
  installations: readonly string[],
): Promise<ServiceLine[]> {
  if (installations.length === 0) return [];
  const { rows } = await reader.execute<Record<string, unknown>>(sql`
    select p.installation_id::text as of, p.name, ${ms('p.settled_until')} as "settledUntilMs",
           jsonb_array_length(p.strikes) as missed,
           count(s.session_id)::int as used, count(s.no)::int as slots
      from provider p left join slot s on s.installation_id = p.installation_id and s.provider = p.name
     where p.installation_id = any(${sql.param(installations)}::bigint[])
     group by p.installation_id, p.name, p.settled_until, p.strikes order by p.installation_id, p.name`);
  return rows as unknown as ServiceLine[];
}
