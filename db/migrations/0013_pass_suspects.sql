-- A suspect is leased alone (TKT-6), so it may wait long for a runner that has nothing else. In a lane of its
-- run's window it kept the others waiting. It has lane 0 now: ready, beside the window; caps are berths and slots.

CREATE INDEX "ticket_suspect" ON "ticket" USING btree ("run_id","provider") WHERE "ticket"."state" = 'pending' and "ticket"."lane" is null and "ticket"."suspect";
--> statement-breakpoint
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
      state = n.next_state, lease_id = null,
      -- what is leased alone waits beside the window; one that may not start yet comes there when it is due
      lane = case when n.next_state = 'pending' and n.suspect and n.not_before_ms is null then 0 end,
      tag = case when n.next_state = 'pending' and n.suspect and n.not_before_ms is null then nextval('ticket_tag') else k.tag end,
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
          where u.lane > 0 group by u.run_id, u.provider) f
    cross join lateral (
      select q.id, row_number() over () as i from (
        select c.id from ticket c
        where c.run_id = f.run_id and c.provider = f.provider and c.state = 'pending' and c.lane is null and not c.suspect
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
-- LSE-1. Grants tickets of one repository to the runners that ask, in order of asking. Caps are rows or
-- index entries: a slot row per unit of provider capacity, an entry of lease_berth per unit of the run's
-- parallelism. Nothing waits for another caller: what is locked is skipped.
create or replace function queue_lease(
  p_installation bigint, p_repository bigint, p_runners text[], p_wants integer[], p_requests text[],
  p_ids text[], p_tokens bytea[], p_sessions text[], p_ttl interval, p_moment timestamptz)
returns table (asker integer, lease_id text, ticket_id text, grant_no integer, expires_at timestamptz, session_id text)
language plpgsql as $$
#variable_conflict use_column
declare
  needed integer := 0;
  wants integer[] := p_wants;
  busy text[];
  alone text[];
  known boolean := false;
  careful boolean := false;
  probing text[] := '{}';
  suspects boolean := true;
  full_runs text[] := '{}';
  shut text[] := '{}';
  names text[];
  quotas integer[];
  slot_names text[];
  slot_nos integer[];
  t_ids text[]; t_runs text[]; t_names text[]; t_parallel smallint[]; t_suspect boolean[]; t_grants integer[]; t_generations bigint[];
  b_runs text[]; b_nos integer[];
  g_at integer[]; g_who integer[]; g_berth integer[]; g_slot integer[]; g_no integer[];
  a integer; b integer; s integer; got integer; next_id integer := 0; gave boolean[];
begin
  for i in 1 .. cardinality(wants) loop needed := needed + wants[i]; end loop;
  gave := array_fill(false, array[cardinality(wants)]);
  while needed > 0 loop
    -- Which providers have something ready and a slot free, and how much of each is next by tag. A full
    -- provider ends here: not one ticket was looked at.
    select array_agg(q.name), array_agg(q.n), coalesce(array_agg(q.name) filter (where q.settled), '{}')
      into names, quotas, probing
    from (
      select h.name, count(*)::integer as n, bool_or(h.settled) as settled from (
        select p.name, p.settled_until is not null as settled, r.tag
        from provider p cross join lateral (
          select t.tag from ticket t
          where t.repository_id = p_repository and t.provider = p.name and t.state = 'pending' and t.lane is not null
          -- one ticket an expiry goes through as the probe (POOL-3)
          order by t.tag limit case when p.settled_until is null then needed else 1 end) r
        where p.installation_id = p_installation and (p.settled_until is null or p.settled_until <= p_moment)
          and p.name <> all (shut)
          and (p.name = 'command' or exists (
            select from slot s where s.installation_id = p_installation and s.provider = p.name and s.session_id is null))
        order by r.tag limit needed) h
      group by h.name) q;
    exit when names is null;
    if not known then
      known := true;
      select array_agg(l.runner_id), array_agg(l.runner_id) filter (where l.alone) into busy, alone
        from lease l where l.runner_id = any (p_runners) and l.state = 'live';
      busy := coalesce(busy, '{}');
      -- who works a suspect gets nothing beside it (TKT-6)
      if alone is not null then
        for i in 1 .. cardinality(wants) loop
          if p_runners[i] = any (alone) then needed := needed - wants[i]; wants[i] := 0; end if;
        end loop;
        exit when needed = 0;
      end if;
    end if;
    if cardinality(probing) > 0 then
      for i in 1 .. cardinality(names) loop
        if names[i] = any (probing) then
          perform from provider p where p.installation_id = p_installation and p.name = names[i] and p.settled_until <= p_moment
            for update skip locked;
          if not found then quotas[i] := 0; shut := shut || names[i]; end if;
        end if;
      end loop;
    end if;
    select coalesce(array_agg(x.name), '{}'), coalesce(array_agg(x.no), '{}') into slot_names, slot_nos from (
      select q.name, f.no from unnest(names, quotas) as q(name, n) cross join lateral (
        select s.no from slot s
        where s.installation_id = p_installation and s.provider = q.name and s.session_id is null
        limit q.n for update skip locked) f
      where q.name <> 'command') x;
    for i in 1 .. cardinality(names) loop
      if names[i] <> 'command' then
        got := coalesce(cardinality(array_positions(slot_names, names[i])), 0);
        -- with few slots few tickets are looked at, and those may be passed over: only without any is it over
        if got < quotas[i] then quotas[i] := got; end if;
        if got = 0 then shut := shut || names[i]; end if;
      end if;
    end loop;
    select array_agg(c.id), array_agg(c.run_id), array_agg(c.name), array_agg(c.parallel), array_agg(c.suspect),
           array_agg(c.grant_no), array_agg(c.generation)
      into t_ids, t_runs, t_names, t_parallel, t_suspect, t_grants, t_generations
    from (
      select q.name, x.* from unnest(names, quotas) as q(name, n) cross join lateral (
        select t.id, t.run_id, t.parallel, t.suspect, t.grant_no, t.tag, r.generation
        from ticket t join run r on r.id = t.run_id
        where t.repository_id = p_repository and t.provider = q.name and t.state = 'pending' and t.lane is not null
          and r.status = 'open' and r.allowed_rule is not null
          and (r.allowed_rule <> 'person' or r.allowed_scope = 'author' or r.allowed_head = r.head)
          and t.run_id <> all (full_runs) and (suspects or not t.suspect)
          and (not careful or (select count(*) from lease l where l.run_id = t.run_id and l.state = 'live') < t.parallel)
        order by t.tag limit q.n for update of t skip locked) x
      order by x.tag) c;
    for i in 1 .. cardinality(names) loop
      if quotas[i] > coalesce(cardinality(array_positions(t_names, names[i])), 0) then shut := shut || names[i]; end if;
    end loop;
    continue when t_ids is null;
    -- A berth for each, that nobody is taking right now; what this snapshot does not show is caught below.
    select coalesce(array_agg(w.run_id), '{}'), coalesce(array_agg(f.n), '{}') into b_runs, b_nos
    from (select u.run_id, max(u.parallel)::integer as parallel, count(*) as n
          from unnest(t_runs, t_parallel) as u(run_id, parallel) group by u.run_id) w
    cross join lateral (
      select f.n from (
        select g.n from generate_series(1, w.parallel) as g(n)
        where g.n <> all (array(select l.berth from lease l where l.run_id = w.run_id and l.state = 'live'))
        offset 0) f
      where pg_try_advisory_xact_lock(hashtext(w.run_id), f.n) limit w.n) f;
    g_at := '{}'; g_who := '{}'; g_berth := '{}'; g_slot := '{}'; g_no := '{}';
    a := 1;
    for i in 1 .. cardinality(t_ids) loop
      b := array_position(b_runs, t_runs[i]);
      if b is null then careful := true; full_runs := full_runs || t_runs[i]; continue; end if;
      if t_suspect[i] then
        s := null;
        for j in 1 .. cardinality(wants) loop
          if wants[j] > 0 and not gave[j] and p_runners[j] <> all (busy) then s := j; exit; end if;
        end loop;
        if s is null then suspects := false; continue; end if;
      else
        while a < cardinality(wants) and wants[a] = 0 loop a := a + 1; end loop;
        exit when wants[a] = 0;
        s := a;
      end if;
      next_id := next_id + 1;
      g_at := g_at || i; g_who := g_who || s; g_berth := g_berth || b_nos[b]; g_no := g_no || next_id;
      b_runs[b] := '';
      b := array_position(slot_names, t_names[i]);
      if b is null then g_slot := g_slot || null::integer;
      else g_slot := g_slot || slot_nos[b]; slot_names[b] := ''; end if;
      busy := busy || p_runners[s];
      gave[s] := true;
      if t_suspect[i] then
        -- and nobody else who asks for this runner gets any beside it
        for j in 1 .. cardinality(wants) loop
          if p_runners[j] = p_runners[s] then needed := needed - wants[j]; wants[j] := 0; end if;
        end loop;
      else
        wants[s] := wants[s] - 1;
        needed := needed - 1;
      end if;
    end loop;
    continue when cardinality(g_at) = 0;
    return query
      with g as materialized (
        select u.who, u.slot, p_ids[u.no] as id, p_tokens[u.no] as token, p_sessions[u.no] as session, u.berth,
               t_ids[u.at] as ticket, t_runs[u.at] as run, t_names[u.at] as name, t_grants[u.at] + 1 as nth,
               t_generations[u.at] as generation, t_suspect[u.at] as alone
        from unnest(g_at, g_who, g_berth, g_slot, g_no) as u(at, who, berth, slot, no)
      ), i as (
        insert into lease (id, ticket_id, run_id, installation_id, repository_id, runner_id, token_hash, grant_no, generation,
            berth, provider, slot, session_id, request, state, alone, granted_at, expires_at)
          select g.id, g.ticket, g.run, p_installation, p_repository, p_runners[g.who], g.token, g.nth, g.generation,
            g.berth, g.name, g.slot, case when g.slot is not null then g.session end, p_requests[g.who], 'live', g.alone,
            p_moment, p_moment + p_ttl from g
          on conflict (run_id, berth) where state = 'live' do nothing
          returning id, ticket_id, grant_no, installation_id, provider, slot, session_id
      ), u as (
        update ticket t set state = 'leased', lease_id = i.id, grant_no = i.grant_no from i where t.id = i.ticket_id
      ), o as (
        update slot s set session_id = i.session_id from i
        where s.installation_id = i.installation_id and s.provider = i.provider and s.no = i.slot
      ), p as (
        update provider p set probe_ticket = i.ticket_id,
            settled_until = p_moment + least(interval '5 minutes' * (2 ^ p.rounds), interval '60 minutes')
        from i where cardinality(probing) > 0 and p.installation_id = p_installation and p.name = i.provider and p.name = any (probing)
      )
      select g.who, i.id, i.ticket_id, i.grant_no, p_moment + p_ttl, i.session_id from i join g on g.id = i.id;
    get diagnostics got = row_count;
    -- another caller had a berth of one of these runs
    if got < cardinality(g_at) then careful := true; full_runs := full_runs || t_runs; end if;
    shut := shut || probing;
  end loop;
end $$;
--> statement-breakpoint
-- Free lanes of a (run, provider) are given, suspects come beside them, and who waits for work of this repository
-- hears of it. The message is an id (case 72); it goes out with the commit. The caller holds the run's lock.
create or replace function ticket_window(p_run text, p_provider text, p_parallel smallint) returns integer
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  moment timestamptz := cs_now();
  filled integer;
begin
  with beside as (
    update ticket t set lane = 0, tag = nextval('ticket_tag')
    where t.run_id = p_run and t.provider = p_provider and t.state = 'pending' and t.lane is null and t.suspect
      and (t.not_before is null or t.not_before <= moment)
    returning t.id
  ), free as (
    select n, row_number() over (order by n) as i from generate_series(1, p_parallel) n
    where n not in (
      select t.lane from ticket t
      where t.run_id = p_run and t.provider = p_provider and t.state in ('pending', 'leased') and t.lane is not null)
  ), next as (
    select w.id, row_number() over (order by w.turn, w.id) as i from (
      select t.id, t.turn from ticket t
      where t.run_id = p_run and t.provider = p_provider and t.state = 'pending' and t.lane is null and not t.suspect
        and (t.not_before is null or t.not_before <= moment)
      order by t.turn, t.id limit (select count(*) from free)) w
  ), inside as (
    update ticket t set lane = free.n, tag = nextval('ticket_tag')
    from next join free on free.i = next.i where t.id = next.id
    returning t.id
  )
  select (select count(*) from beside) + (select count(*) from inside) into filled;
  if filled > 0 then
    perform pg_notify('countersign_queue', r.repository_id::text) from run r where r.id = p_run;
  end if;
  return filled;
end $$;
--> statement-breakpoint
update ticket set lane = 0 where state = 'pending' and lane is not null and suspect;
--> statement-breakpoint
-- the lanes that came free
select ticket_window(w.run_id, w.provider, w.parallel) from (
  select run_id, provider, max(parallel) as parallel from ticket where state = 'pending' and lane is null group by run_id, provider) w;
