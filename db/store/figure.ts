/** Figures of the whole server for whoever watches it (OPS-7): one statement over small indexes, no label that grows. */
import { sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';

/** What stands now; ages in seconds of product time, money in millionths of a dollar. */
export interface Figures {
  /** Tickets that may be leased at once, that wait behind them, for a back-off or for another, and that are leased. */
  readonly tickets: {
    readonly ready: number;
    readonly waiting: number;
    readonly held: number;
    readonly leased: number;
  };
  /** Age of the oldest ticket that may be leased; 0: none. */
  readonly oldestReadyS: number;
  readonly leases: number;
  readonly admissionsWaiting: number;
  readonly oldestAdmissionS: number;
  readonly sessions: number;
  readonly slots: readonly { readonly provider: string; readonly busy: number; readonly free: number }[];
  readonly settledProviders: readonly { readonly provider: string; readonly n: number }[];
  readonly settledPools: number;
  readonly runners: number;
  /** Resident pools: live runners, tickets that they work at once and that they work now. */
  readonly residents: readonly {
    readonly pool: string;
    readonly runners: number;
    readonly capacity: number;
    readonly leased: number;
  }[];
  readonly dispatchesOpen: Readonly<Record<string, number>>;
  readonly dispatchesEnded: Readonly<Record<string, number>>;
  readonly killSwitches: number;
  /** This month, over all installations. */
  readonly spend: { readonly sessions: number; readonly tokens: number; readonly micro: number };
  /** What open sessions have reserved. */
  readonly reservedTokens: number;
}

/** Reads them; a provider is told by its kind, without the host of its server, so that labels stay few. */
export async function readFigures(reader: Reader): Promise<Figures> {
  const { rows } = await reader.execute<{ figures: Figures }>(sql`
    with moment as materialized (select cs_now() as now), s as materialized (
      select split_part(provider, '@', 1) as provider, count(session_id)::int as busy,
        count(*) filter (where session_id is null)::int as free
      from slot group by 1
    ), x as materialized (
      select state, count(*)::int as n, coalesce(sum(reserved_tokens), 0) as reserved,
        extract(epoch from (select now from moment) - min(admitted_at))::float8 as oldest
      from session where state in ('waiting', 'admitted') group by state
    )
    select json_build_object(
      'tickets', json_build_object(
        'ready', (select count(*) from ticket where state = 'pending' and lane is not null),
        'waiting', (select count(*) from ticket where state = 'pending' and lane is null),
        'held', (select count(*) from ticket where state = 'held'),
        'leased', (select count(*) from lease where state = 'live')),
      'oldestReadyS', coalesce((select extract(epoch from (select now from moment) - min(queued_at))::float8
        from ticket where state = 'pending' and lane is not null), 0),
      'leases', (select count(*) from lease where state = 'live'),
      'admissionsWaiting', coalesce((select n from x where state = 'waiting'), 0),
      'oldestAdmissionS', coalesce((select oldest from x where state = 'waiting'), 0),
      'sessions', coalesce((select n from x where state = 'admitted'), 0),
      'slots', coalesce((select json_agg(s) from s), '[]'::json),
      'settledProviders', coalesce((select json_agg(p) from (
        select split_part(name, '@', 1) as provider, count(*)::int as n from provider
        where settled_until is not null group by 1) p), '[]'::json),
      'settledPools', (select count(*) from pool where settled_until is not null),
      'runners', (select count(*) from runner where ended_at is null and heartbeat_at > (select now from moment) - interval '1 minute'),
      'residents', coalesce((select json_agg(p) from (
        select p.name as pool, count(r.id)::int as runners, coalesce(sum(r.capacity), 0)::int as capacity,
          coalesce(sum((select count(*) from lease l where l.runner_id = r.id and l.state = 'live')), 0)::int as leased
        from resident_pool p left join runner r on r.pool = p.name and r.repository_id is null and r.ended_at is null
          and r.heartbeat_at > (select now from moment) - interval '1 minute'
        group by p.name order by p.name) p), '[]'::json),
      'dispatchesOpen', coalesce((select json_object_agg(state, n) from (
        select state, count(*)::int as n from dispatch where ended_at is null group by state) d), '{}'::json),
      'dispatchesEnded', coalesce((select json_object_agg(state, n) from (
        select state, count(*)::int as n from dispatch
        where ended_at > (select now from moment) - interval '1 hour' group by state) d), '{}'::json),
      'killSwitches', (select count(*) from setting where key = 'kill'),
      'spend', (select json_build_object('sessions', coalesce(sum(sessions), 0), 'tokens', coalesce(sum(tokens), 0),
          'micro', coalesce(sum(micro), 0))
        from spend where scope = 5 and period = to_char((select now from moment) at time zone 'UTC', 'YYYY-MM')),
      'reservedTokens', coalesce((select reserved from x where state = 'admitted'), 0)) as figures`);
  return (rows[0] as { figures: Figures }).figures;
}
