-- Ends live leases and says what becomes of their tickets: lease, slots, ticket, the held ticket of the
-- same cell, and the next ticket for the lane. Answers the leases that were live; others are left alone.
create or replace function queue_settle(p_ends json, p_moment timestamptz) returns text[]
language plpgsql as $$
declare
  done text[];
  runs text[];
  providers text[];
  lanes smallint[];
  held text[];
  opened boolean;
  other record;
begin
  with e as materialized (
    select * from json_to_recordset(p_ends) as e(
      id text, lease_state text, state text, front boolean, not_before_ms float8, losses integer, timeouts integer,
      transients integer, suspect boolean, end_code text, verdict text, partial boolean, result text, reason text, seq bigint)
  ), l as (
    update lease l set state = e.lease_state, ended_at = p_moment from e
    -- named twice: by the join alone the plan may look at all that is live
    where l.id = e.id and l.id = any (array(select e.id from e)) and l.state = 'live'
    returning l.id, l.ticket_id, l.run_id, l.installation_id, l.provider, l.slot, l.session_id, l.admitted
  ), s as (
    update slot s set session_id = null from l
    where s.installation_id = l.installation_id and s.provider = l.provider and s.no = l.slot and s.session_id = l.session_id
  ), n as (
    -- other content waits for this cell: this one is not wanted again (TKT-3). What waits for another block
    -- as well goes on waiting (BLK-5). The index of held tickets holds nothing else.
    select l.id as lease_id, l.ticket_id, l.run_id, l.admitted, o.lane, o.provider, h.id as held, e.*,
      case when h.id is not null and e.state = 'pending' then 'superseded' else e.state end as next_state
    from l join e on e.id = l.id join ticket o on o.id = l.ticket_id
    left join lateral (
      select h.id from ticket h
      where h.run_id = l.run_id and h.state = 'held' and sha256(h.path) = sha256(o.path)
        and not exists (select from block b where b.run_id = h.run_id and b.id = h.block_id and b.status = 'waiting')
      limit 1) h on true
  ), t as (
    update ticket k set
      state = n.next_state, lane = null, lease_id = null,
      turn = case when n.front then k.turn % 1024 else k.turn end,
      not_before = case when n.next_state = 'pending' then p_moment + n.not_before_ms * interval '1 millisecond' end,
      losses = n.losses, timeouts = n.timeouts, transients = n.transients, suspect = n.suspect,
      end_code = coalesce(n.end_code, k.end_code), verdict = coalesce(n.verdict, k.verdict), partial = n.partial,
      result = coalesce(n.result, k.result),
      result_grant = case when n.result is null then k.result_grant else k.grant_no end,
      reason = n.reason, seq = coalesce(n.seq, k.seq),
      ended_at = case when n.next_state = 'pending' then null else p_moment end
    from n where k.id = n.ticket_id
    returning n.lease_id, n.run_id, n.provider, n.lane, n.held, n.admitted
  )
  select array_agg(t.lease_id), array_agg(t.run_id), array_agg(t.provider), array_agg(t.lane), array_agg(t.held), bool_or(t.admitted)
    into done, runs, providers, lanes, held, opened from t;
  if done is null then return '{}'; end if;
  if opened then
    update slot s set session_id = null from session x
      where x.lease_id = any (done) and x.state = 'admitted' and x.slot is not null
        and s.installation_id = x.installation_id and s.provider = x.provider and s.no = x.slot and s.session_id = x.id;
    update session set state = 'ended', end_code = 'abandoned', ended_at = p_moment
      where lease_id = any (done) and state = 'admitted';
  end if;
  held := array_remove(held, null);
  if cardinality(held) > 0 then
    update ticket set state = 'pending' where id = any (held) and state = 'held';
  end if;
  -- Freed lanes go to the next waiting tickets of their (run, provider). The tag orders windows against each
  -- other: a run re-enters behind all that wait, so runs take turns whatever their backlog is.
  update ticket t set lane = x.lane, tag = nextval('ticket_tag')
  from (
    select w.id, f.lanes[w.i] as lane
    from (select u.run_id, u.provider, array_agg(u.lane) as lanes, count(*) as n
          from unnest(runs, providers, lanes) as u(run_id, provider, lane)
          where u.lane is not null group by u.run_id, u.provider) f
    cross join lateral (
      select q.id, row_number() over () as i from (
        select c.id from ticket c
        where c.run_id = f.run_id and c.provider = f.provider and c.state = 'pending' and c.lane is null
          and (c.not_before is null or c.not_before <= p_moment)
        order by c.turn, c.id limit f.n for update skip locked) q) w
  ) x
  where t.id = x.id;
  if cardinality(held) > 0 then
    for other in select distinct h.run_id, h.provider, h.parallel from ticket h where h.id = any (held) and h.lane is null loop
      perform ticket_window(other.run_id, other.provider, other.parallel);
    end loop;
  end if;
  return done;
end $$;
--> statement-breakpoint
drop function queue_promote;
