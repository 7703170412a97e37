-- A held ticket that comes forward gets its lane with its state: all of a backlog in ten hot paths took an update and a
-- look-up more a turn (bench L7).
create or replace function queue_settle(p_ends json, p_moment timestamptz) returns text[]
language plpgsql as $$
declare
  done text[];
  tickets text[];
  runs text[];
  providers text[];
  lanes smallint[];
  opened boolean;
  behind boolean;
  wanted boolean;
  held text[];
  overtaken text[];
  other record;
  mode text;
begin
  mode := set_config('countersign.turn', 'on', true);
  with l as (
    update lease l set state = e.lease_state, ended_at = p_moment
    from json_to_recordset(p_ends) as e(
      id text, lease_state text, state text, front boolean, not_before_ms float8, losses integer, timeouts integer,
      transients integer, suspect boolean, end_code text, verdict text, partial boolean, result text, reason text, seq bigint)
    -- not by `state`: that would let the plan look at all that is live
    where l.id = any (array[e.id]) and l.ended_at is null
    returning l.id as lease, l.ticket_id, l.run_id, l.installation_id, l.provider, l.slot, l.session_id, l.lane, l.admitted,
      e.state, e.front, e.not_before_ms, e.losses, e.timeouts, e.transients, e.suspect, e.end_code, e.verdict, e.partial,
      e.result, e.reason, e.seq
  ), s as (
    update slot s set session_id = null from l
    where s.installation_id = l.installation_id and s.provider = l.provider and s.no = l.slot and s.session_id = l.session_id
  ), t as (
    update ticket k set
      state = l.state, lease_id = null,
      -- what is leased alone waits beside the window; one that may not start yet comes there when it is due
      lane = case when l.state = 'pending' and l.suspect and l.not_before_ms is null then 0 end,
      tag = case when l.state = 'pending' and l.suspect and l.not_before_ms is null then nextval('ticket_tag') else k.tag end,
      turn = case when l.front then k.turn % 1024 else k.turn end,
      not_before = case when l.state = 'pending' then p_moment + l.not_before_ms * interval '1 millisecond' end,
      losses = l.losses, timeouts = l.timeouts, transients = l.transients, suspect = l.suspect,
      end_code = coalesce(l.end_code, k.end_code), verdict = coalesce(l.verdict, k.verdict), partial = l.partial,
      result = coalesce(l.result, k.result),
      result_grant = case when l.result is null then k.result_grant else k.grant_no end,
      reason = l.reason, seq = coalesce(l.seq, k.seq),
      ended_at = case when l.state = 'pending' then null else p_moment end
    from l where k.id = any (array[l.ticket_id])
    returning l.lease, k.id, l.run_id, l.installation_id, l.provider, l.lane, l.admitted
  )
  select array_agg(t.lease), array_agg(t.id), array_agg(t.run_id), array_agg(t.provider), array_agg(t.lane), bool_or(t.admitted),
      bool_or(exists (select from ticket h where h.run_id = t.run_id and h.state = 'held')),
      bool_or(exists (select from session x where x.installation_id = t.installation_id and x.state = 'waiting')
        or exists (select from slot x where x.installation_id = t.installation_id and x.retiring))
    into done, tickets, runs, providers, lanes, opened, behind, wanted from t;
  mode := set_config('countersign.turn', '', true);
  if done is null then return '{}'; end if;
  if wanted then
    -- Who waits for a slot under one of these leases waits no more; what came free is handed on (ADM-1).
    with gone as (
      delete from session where lease_id = any (done) and state = 'waiting' returning id, installation_id, provider, slot
    )
    update slot s set session_id = null from gone g
      where g.slot is not null and s.installation_id = g.installation_id and s.provider = g.provider and s.no = g.slot
        and s.session_id = g.id;
    update slot s set session_id = null from lease l
      where l.id = any (done) and s.installation_id = l.installation_id and s.provider = l.provider and s.no = l.slot
        and s.session_id is null;
  end if;
  if opened then
    update slot s set session_id = null from session x
      where x.lease_id = any (done) and x.state = 'admitted' and x.slot is not null
        and s.installation_id = x.installation_id and s.provider = x.provider and s.no = x.slot and s.session_id = x.id;
    update session set state = 'ended', end_code = 'abandoned', ended_at = p_moment
      where lease_id = any (done) and state = 'admitted';
  end if;
  if behind then
    -- Other content waits for this cell: what is leased is not wanted again (TKT-3). What waits for another block
    -- as well goes on waiting (BLK-5).
    select array_agg(distinct h.id), array_agg(k.id) filter (where k.state = 'pending') into held, overtaken
    from unnest(tickets) as u(id) join ticket k on k.id = u.id
    cross join lateral (
      select h.id from ticket h
      where h.run_id = k.run_id and h.state = 'held' and sha256(h.path) = sha256(k.path)
        and not exists (select from block b where b.run_id = h.run_id and b.id = h.block_id and b.status = 'waiting')
      limit 1) h;
    if overtaken is not null then
      update ticket set state = 'superseded', lane = null, not_before = null, ended_at = p_moment where id = any (overtaken);
    end if;
  end if;
  -- Freed lanes go to the next waiting tickets of their (run, provider). The tag orders windows against each
  -- other: a run re-enters behind all that wait, so runs take turns whatever their backlog is.
  if held is null then
    update ticket t set lane = x.lane, tag = nextval('ticket_tag')
    from (
      select w.id, f.lanes[w.i] as lane
      from (select u.run_id, u.provider, array_agg(u.lane) as lanes, count(*) as n
            from unnest(runs, providers, lanes) as u(run_id, provider, lane)
            where u.lane > 0 group by u.run_id, u.provider) f
      cross join lateral (
        select q.id, row_number() over () as i from (
          select c.id from ticket c
          where c.run_id = f.run_id and c.provider = f.provider and c.state = 'pending' and c.lane is null and not c.suspect
            and (c.not_before is null or c.not_before <= p_moment)
          order by c.turn, c.id limit f.n for update skip locked) q) w
    ) x
    where t.id = any (array[x.id]);
    return done;
  end if;
  -- What comes forward takes its place among them in the same update (bench L7).
  with forward as (
    update ticket t set state = 'pending', lane = x.lane, tag = nextval('ticket_tag')
    from (
      select w.id, f.lanes[w.i] as lane
      from (select u.run_id, u.provider, array_agg(u.lane) as lanes, count(*) as n
            from unnest(runs, providers, lanes) as u(run_id, provider, lane)
            where u.lane > 0 group by u.run_id, u.provider) f
      cross join lateral (
        select q.id, q.held, row_number() over (order by q.turn, q.id) as i from (
          select v.* from (
            select c.id, c.turn, false as held from ticket c
            where c.run_id = f.run_id and c.provider = f.provider and c.state = 'pending' and c.lane is null and not c.suspect
              and (c.not_before is null or c.not_before <= p_moment)
            order by c.turn, c.id limit f.n for update skip locked) v
          union all
          select h.id, h.turn, true from ticket h
          where h.id = any (held) and h.run_id = f.run_id and h.provider = f.provider and not h.suspect
            and (h.not_before is null or h.not_before <= p_moment)) q) w
      where w.i <= f.n
    ) x
    where t.id = any (array[x.id]) and t.state in ('pending', 'held')
    returning t.id
  )
  select array_agg(u.id) into held from unnest(held) as u(id) where u.id not in (select id from forward);
  if held is not null then
    update ticket set state = 'pending' where id = any (held) and state = 'held';
    for other in select distinct h.run_id, h.provider, h.parallel from ticket h where h.id = any (held) and h.lane is null loop
      perform ticket_window(other.run_id, other.provider, other.parallel);
    end loop;
  end if;
  return done;
end $$;
