-- A plan that a connection made while a table was empty stays until its statistics change: of indexes that cost the
-- same then, the newest is taken. What is live of one run is found by its own, not by reading all that is live.
drop index lease_berth;
--> statement-breakpoint
create unique index lease_berth on lease using btree (run_id, berth) where state = 'live';
--> statement-breakpoint
create or replace function queue_turn(
  p_ends json, p_installation bigint, p_repository bigint, p_runners text[], p_wants integer[], p_requests text[],
  p_ids text[], p_tokens bytea[], p_sessions text[], p_ttl interval,
  p_floor_names text[] default '{}', p_floor_tags bigint[] default '{}')
returns table (asker integer, lease_id text, ticket_id text, grant_no integer, expires_at timestamptz, session_id text)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_material = off set enable_memoize = off
as $$
#variable_conflict use_column
declare
  moment timestamptz := cs_now();
  settled text[];
  needed integer := 0;
  wants integer[] := p_wants;
  known boolean := false;
  floored boolean := cardinality(p_floor_names) > 0;
  told boolean := false;
  lowest constant bigint := -9223372036854775808;
  single boolean;
  careful boolean := false;
  suspects boolean := true;
  doubtful boolean;
  busy text[];
  alone text[];
  probing text[];
  full_runs text[] := '{}';
  shut text[] := '{}';
  names text[];
  quotas integer[];
  heads bigint[];
  seen text[];
  firsts bigint[];
  slot_names text[];
  slot_nos integer[];
  t_ids text[]; t_runs text[]; t_names text[]; t_parallel smallint[]; t_suspect boolean[]; t_grants integer[]; t_generations bigint[]; t_lanes smallint[];
  b_runs text[]; b_nos integer[];
  g_at integer[]; g_who integer[]; g_berth integer[]; g_slot integer[];
  a integer; b integer; s integer; got integer; used integer := 0; gave boolean[];
begin
  if p_ends is not null then
    settled := queue_settle(p_ends, moment);
    asker := 0;
    foreach lease_id in array settled loop return next; end loop;
  end if;
  for i in 1 .. cardinality(wants) loop needed := needed + wants[i]; end loop;
  while needed > 0 loop
    -- Which providers have something ready and a slot free, and how much of each is next by tag. A full
    -- provider ends here: not one ticket was looked at.
    select array_agg(q.name) filter (where q.n > 0), array_agg(q.n) filter (where q.n > 0),
        array_agg(q.head) filter (where q.n > 0), array_agg(q.name) filter (where q.n > 0 and q.settled),
        array_agg(q.name), array_agg(q.head),
        (select true from lease l where l.runner_id = any (p_runners) and l.state = 'live' and l.alone limit 1)
      into names, quotas, heads, probing, seen, firsts, single
    from (
      select h.name, (count(*) filter (where h.nth <= needed))::integer as n, min(h.tag) as head, bool_or(h.settled) as settled from (
        select p.name, p.settled_until is not null as settled, r.tag, row_number() over (order by r.tag) as nth
        from provider p cross join lateral (
          select case when floored and not exists (
              select from ticket x
              where x.repository_id = p_repository and x.provider = p.name and x.state = 'pending' and x.lane is not null and x.tag < 0)
            then coalesce(p_floor_tags[array_position(p_floor_names, p.name)], lowest) else lowest end as tag offset 0) f
        cross join lateral (
          select t.tag from ticket t
          where t.repository_id = p_repository and t.provider = p.name and t.state = 'pending' and t.lane is not null
          and t.tag >= f.tag
          -- one ticket an expiry goes through as the probe (POOL-3)
          order by t.tag limit case when p.settled_until is null then needed else 1 end) r
        where p.installation_id = p_installation and (p.settled_until is null or p.settled_until <= moment)
          and p.name <> all (shut)
          and (p.name = 'command' or exists (
            select from slot s where s.installation_id = p_installation and s.provider = p.name and s.session_id is null))
        ) h
      group by h.name) q;
    if names is null then
      exit when not floored;
      floored := false;
      shut := '{}';
      continue;
    end if;
    if not told then
      told := true;
      asker := -1;
      for i in 1 .. cardinality(seen) loop lease_id := seen[i]; ticket_id := firsts[i]; return next; end loop;
    end if;
    if not known then
      known := true;
      -- who throws the kill switch holds it exclusively, so that no lease is on its way past it (CTL-5)
      perform pg_advisory_xact_lock_shared(1263092812, 0);
      -- who works a suspect gets nothing beside it (TKT-6)
      if single then
        select array_agg(l.runner_id) into alone from lease l where l.runner_id = any (p_runners) and l.state = 'live' and l.alone;
        for i in 1 .. cardinality(wants) loop
          if p_runners[i] = any (alone) then needed := needed - wants[i]; wants[i] := 0; end if;
        end loop;
        exit when needed = 0;
      end if;
    end if;
    if probing is not null then
      for i in 1 .. cardinality(names) loop
        if names[i] = any (probing) then
          perform from provider p where p.installation_id = p_installation and p.name = names[i] and p.settled_until <= moment
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
           array_agg(c.grant_no), array_agg(c.generation), array_agg(c.lane), bool_or(c.suspect)
      into t_ids, t_runs, t_names, t_parallel, t_suspect, t_grants, t_generations, t_lanes, doubtful
    from (
      select q.name, x.* from unnest(names, quotas, heads) as q(name, n, head) cross join lateral (
        select t.id, t.run_id, t.parallel, t.suspect, t.grant_no, t.tag, t.lane, r.generation
        from ticket t cross join lateral (
          -- One run, by its id: `offset 0` keeps the plan from weighing how few of all runs are open and sorting all that
          -- is ready instead, `like any` from an index that has the status, which would do as well while there are no runs.
          select r.generation from run r
          where r.id = t.run_id and r.status like any (array['open']) and r.allowed_rule is not null
            and (r.allowed_rule <> 'person' or r.allowed_scope = 'author' or r.allowed_head = r.head)
          offset 0) r
        where t.repository_id = p_repository and t.provider = q.name and t.state = 'pending' and t.lane is not null
          -- what was before it is over: a scan from the beginning would read all of that again
          and t.tag >= q.head
          and t.run_id <> all (full_runs) and (suspects or not t.suspect)
          and (not careful or (select count(*) from lease l where l.run_id = t.run_id and l.state = 'live') < t.parallel)
        order by t.tag limit q.n for update of t skip locked) x
      where not exists (select from setting k where k.installation_id in (0, p_installation) and k.key = 'kill')
      order by x.tag) c;
    for i in 1 .. cardinality(names) loop
      if quotas[i] > coalesce(cardinality(array_positions(t_names, names[i])), 0) then shut := shut || names[i]; end if;
    end loop;
    continue when t_ids is null;
    if doubtful and busy is null then
      select coalesce(array_agg(l.runner_id), '{}') into busy from lease l where l.runner_id = any (p_runners) and l.state = 'live';
      gave := array_fill(false, array[cardinality(wants)]);
    end if;
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
    g_at := '{}'; g_who := '{}'; g_berth := '{}'; g_slot := '{}';
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
        while wants[a] = 0 loop a := a + 1; end loop;
        exit when wants[a] is null;
        s := a;
      end if;
      g_at := g_at || i; g_who := g_who || s; g_berth := g_berth || b_nos[b];
      b_runs[b] := '';
      b := array_position(slot_names, t_names[i]);
      if b is null then g_slot := g_slot || null::integer;
      else g_slot := g_slot || slot_nos[b]; slot_names[b] := ''; end if;
      if busy is not null then busy := busy || p_runners[s]; gave[s] := true; end if;
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
        select u.who, u.slot, p_ids[used + u.no] as id, p_tokens[used + u.no] as token, p_sessions[used + u.no] as session, u.berth,
               t_ids[u.at] as ticket, t_runs[u.at] as run, t_names[u.at] as name, t_grants[u.at] + 1 as nth,
               t_generations[u.at] as generation, t_suspect[u.at] as alone, t_lanes[u.at] as lane
        from unnest(g_at, g_who, g_berth, g_slot) with ordinality as u(at, who, berth, slot, no)
      ), i as (
        insert into lease (id, ticket_id, run_id, installation_id, repository_id, runner_id, token_hash, grant_no, generation,
            berth, provider, slot, session_id, lane, request, state, alone, granted_at, expires_at)
          select g.id, g.ticket, g.run, p_installation, p_repository, p_runners[g.who], g.token, g.nth, g.generation,
            g.berth, g.name, g.slot, case when g.slot is not null then g.session end, g.lane, p_requests[g.who], 'live', g.alone,
            moment, moment + p_ttl from g
          on conflict (run_id, berth) where state = 'live' do nothing
          returning id, ticket_id, grant_no, installation_id, provider, slot, session_id
      ), u as (
        update ticket t set state = 'leased', lease_id = i.id, grant_no = i.grant_no from i where t.id = any (array[i.ticket_id])
      ), o as (
        update slot s set session_id = i.session_id from i
        where s.installation_id = i.installation_id and s.provider = i.provider and s.no = i.slot
      ), p as (
        update provider p set probe_ticket = i.ticket_id,
            settled_until = moment + least(interval '5 minutes' * (2 ^ p.rounds), interval '60 minutes')
        from i where probing is not null and p.installation_id = p_installation and p.name = i.provider and p.name = any (probing)
      )
      select g.who, i.id, i.ticket_id, i.grant_no, moment + p_ttl, i.session_id from i join g on g.id = i.id;
    get diagnostics got = row_count;
    used := used + cardinality(g_at);
    -- another caller had a berth of one of these runs
    if got < cardinality(g_at) then careful := true; full_runs := full_runs || t_runs; end if;
    if probing is not null then shut := shut || probing; end if;
  end loop;
end $$;
