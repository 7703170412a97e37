-- LSE-2: wishes for slots and probes cost a turn a statement only where there are any. Whether there is anything at all is
-- asked before the turn, by who was refused (db/store/turn.ts). An end may leave out what is null, false or 0.
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
  moment timestamptz;
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
  nothing text;
  wished boolean;
  served text[] := '{}';
  seen text[];
  firsts bigint[];
  slot_names text[];
  slot_nos integer[];
  t_ids text[]; t_runs text[]; t_names text[]; t_parallel smallint[]; t_suspect boolean[]; t_grants integer[]; t_generations bigint[]; t_lanes smallint[];
  b_runs text[]; b_nos integer[];
  g_at integer[]; g_who integer[]; g_berth integer[]; g_slot integer[];
  a integer; b integer; s integer; got integer; used integer := 0; gave boolean[];
begin
  moment := cs_now();
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
        (select true from lease l where l.runner_id = any (p_runners) and l.state = 'live' and l.alone limit 1),
        exists (select from slot_wish w where w.installation_id = p_installation)
      into names, quotas, heads, probing, seen, firsts, single, wished
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
      nothing := pg_advisory_xact_lock_shared(1263092812, 0);
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
    if not wished then
      select coalesce(array_agg(q.name), '{}'), coalesce(array_agg(f.no), '{}') into slot_names, slot_nos
      from unnest(names, quotas) as q(name, n) cross join lateral (
        select s.no from slot s
        where s.installation_id = p_installation and s.provider = q.name and s.session_id is null
        limit q.n for update skip locked) f
      where q.name <> 'command';
    else
      select coalesce(array_agg(x.name), '{}'), coalesce(array_agg(x.no), '{}') into slot_names, slot_nos from (
        select q.name, f.no from unnest(names, quotas, heads) as q(name, n, head) cross join lateral (
          select s.no from slot s
          where s.installation_id = p_installation and s.provider = q.name and s.session_id is null
          -- slots are of the installation: who asked before in another repository, with what waits longer, has one of them
          limit greatest(0, least(q.n,
              (select count(*) from slot o where o.installation_id = p_installation and o.provider = q.name and o.session_id is null)
            - (select count(*) from slot_wish w
               where w.installation_id = p_installation and w.provider = q.name and w.repository_id <> p_repository
                 and w.tag < q.head and w.seen_at > moment - interval '2 seconds')))
          for update skip locked) f
        where q.name <> 'command') x;
    end if;
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
      )
      select g_who[array_position(p_ids, i.id, used + 1) - used], i.id, i.ticket_id, i.grant_no, moment + p_ttl, i.session_id from i;
    get diagnostics got = row_count;
    if probing is not null then
      update provider p set probe_ticket = l.ticket_id,
          settled_until = moment + least(interval '5 minutes' * (2 ^ p.rounds), interval '60 minutes')
      from lease l
      where l.id = any (p_ids[used + 1 : used + cardinality(g_at)]) and p.installation_id = p_installation and p.name = l.provider
        and p.name = any (probing);
    end if;
    used := used + cardinality(g_at);
    served := served || t_names;
    -- another caller had a berth of one of these runs
    if got < cardinality(g_at) then careful := true; full_runs := full_runs || t_runs; end if;
    if probing is not null then shut := shut || probing; end if;
  end loop;
  if wished and used > 0 then
    -- a turn waits for nobody: whoever else is at it makes or takes away the same
    delete from slot_wish w using (
      select o.provider from slot_wish o
      where o.installation_id = p_installation and o.repository_id = p_repository and o.provider = any (served)
      for update skip locked) g
    where w.installation_id = p_installation and w.repository_id = p_repository and w.provider = g.provider;
  end if;
end $$;
--> statement-breakpoint
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
      losses = coalesce(l.losses, 0), timeouts = coalesce(l.timeouts, 0), transients = coalesce(l.transients, 0),
      suspect = coalesce(l.suspect, false),
      end_code = coalesce(l.end_code, k.end_code), verdict = coalesce(l.verdict, k.verdict), partial = coalesce(l.partial, false),
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
  -- other: a run re-enters behind all that wait, so runs take turns whatever their backlog is. What was leased before
  -- and is at the front of its block has had its turn: it keeps its tag, before what has lanes already (LSE-5).
  if held is null then
    update ticket t set lane = x.lane, tag = case when t.turn < 1024 and t.grant_no > 0 then t.tag else nextval('ticket_tag') end
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
    update ticket t set state = 'pending', lane = x.lane, tag = case when t.turn < 1024 and t.grant_no > 0 then t.tag else nextval('ticket_tag') end
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
