-- The queue's statements (LSE-1, performance.md L1…L8): a lease searches for nothing, whatever waits.
-- A plan that was made while a table was small stays cached: with 1,500 leases over, looking at all of
-- them cost five times the rest of the statement. So these statements use their indexes whatever the
-- statistics say.

-- A slot changes with every lease: room on the page keeps the update in place, so no index entry is written.
alter table slot set (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
--> statement-breakpoint
alter table ticket set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
--> statement-breakpoint
alter table lease set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
-- The lane goes to the first waiting ticket of its (run, provider). The tag orders windows against each
-- other: a run re-enters behind all that wait, so runs take turns whatever their backlog is.
-- called from the functions below only: their settings hold, and setting them anew costs time
create function ticket_promote(p_run text, p_provider text, p_lane smallint, p_moment timestamptz) returns void
language plpgsql as $$
begin
  update ticket set lane = p_lane, tag = nextval('ticket_tag')
  where id = (
    select t.id from ticket t
    where t.run_id = p_run and t.provider = p_provider and t.state = 'pending' and t.lane is null
      and (t.not_before is null or t.not_before <= p_moment)
    order by t.turn, t.id limit 1 for update skip locked);
end $$;
--> statement-breakpoint
-- Fills the free lanes of a (run, provider). The caller holds the run's lock, so lanes cannot be given twice.
create function ticket_window(p_run text, p_provider text, p_parallel smallint) returns integer
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  moment timestamptz := cs_now();
  filled integer;
begin
  with free as (
    select n, row_number() over (order by n) as i from generate_series(1, p_parallel) n
    where n not in (
      select t.lane from ticket t
      where t.run_id = p_run and t.provider = p_provider and t.state in ('pending', 'leased') and t.lane is not null)
  ), next as (
    select w.id, row_number() over (order by w.turn, w.id) as i from (
      select t.id, t.turn from ticket t
      where t.run_id = p_run and t.provider = p_provider and t.state = 'pending' and t.lane is null
        and (t.not_before is null or t.not_before <= moment)
      order by t.turn, t.id limit (select count(*) from free)) w
  )
  update ticket t set lane = free.n, tag = nextval('ticket_tag')
  from next join free on free.i = next.i where t.id = next.id;
  get diagnostics filled = row_count;
  return filled;
end $$;
--> statement-breakpoint
-- LSE-1. Grants up to cardinality(p_ids) tickets of one repository to one runner. Caps are rows or index
-- entries: a slot row per unit of provider capacity, an entry of lease_berth per unit of the run's
-- parallelism. Nothing waits for another caller: what is locked is skipped.
create function lease_tickets(
  p_runner text, p_installation bigint, p_repository bigint, p_run text,
  p_ids text[], p_tokens bytea[], p_sessions text[], p_ttl interval)
returns table (lease_id text, ticket_id text, grant_no integer, expires_at timestamptz, session_id text)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  moment timestamptz := cs_now();
  until timestamptz := moment + p_ttl;
  wanted integer := cardinality(p_ids);
  taken integer := 0;
  busy boolean := false;
  stopped boolean := false;
  probe boolean;
  source record;
  found_ticket record;
  slot_no integer;
  berth_no smallint;
  of_session text;
  full_runs text[] := '{}';
begin
  select true, bool_or(l.alone) into busy, stopped from lease l where l.runner_id = p_runner and l.state = 'live' having count(*) > 0;
  busy := coalesce(busy, false);
  if coalesce(stopped, false) then return; end if;
  <<sources>>
  for source in
    select p.name, p.settled_until, h.tag
    from provider p cross join lateral (
      select t.tag from ticket t
      where t.repository_id = p_repository and t.provider = p.name and t.state = 'pending' and t.lane is not null
      order by t.tag limit 1) h
    where p.installation_id = p_installation
    order by h.tag
  loop
    probe := false;
    if source.settled_until is not null then
      continue when source.settled_until > moment;
      -- one ticket an expiry goes through as the probe (POOL-3)
      perform from provider p
        where p.installation_id = p_installation and p.name = source.name and p.settled_until <= moment
        for update skip locked;
      continue when not found;
      probe := true;
    end if;
    loop
      slot_no := null;
      of_session := null;
      if source.name <> 'command' then
        select s.no into slot_no from slot s
          where s.installation_id = p_installation and s.provider = source.name and s.session_id is null
          limit 1 for update skip locked;
        exit when not found; -- at its cap: not one ticket was looked at
        of_session := p_sessions[taken + 1];
      end if;
      select t.id, t.run_id, t.parallel, t.suspect, t.grant_no, r.generation into found_ticket
        from ticket t join run r on r.id = t.run_id
        where t.repository_id = p_repository and t.provider = source.name and t.state = 'pending' and t.lane is not null
          and r.status = 'open' and r.allowed_rule is not null
          and (r.allowed_rule <> 'person' or r.allowed_scope = 'author' or r.allowed_head = r.head)
          and (p_run is null or t.run_id = p_run)
          and t.run_id <> all (full_runs)
          and (not t.suspect or (not busy and taken = 0))
        order by t.tag limit 1 for update of t skip locked;
      exit when not found;
      -- a berth that nobody is taking right now; a finished one that this snapshot does not show is caught below
      berth_no := null;
      select f.n into berth_no from (
          select n from generate_series(1, found_ticket.parallel) n
          where not exists (select from lease l where l.run_id = found_ticket.run_id and l.berth = n and l.state = 'live')
          offset 0) f
        where pg_try_advisory_xact_lock(hashtext(found_ticket.run_id), f.n) limit 1;
      if berth_no is null then
        full_runs := full_runs || found_ticket.run_id;
        continue;
      end if;
      insert into lease (id, ticket_id, run_id, installation_id, repository_id, runner_id, token_hash, grant_no, generation,
          berth, provider, slot, session_id, state, alone, granted_at, expires_at)
        values (p_ids[taken + 1], found_ticket.id, found_ticket.run_id, p_installation, p_repository, p_runner, p_tokens[taken + 1],
          found_ticket.grant_no + 1, found_ticket.generation, berth_no, source.name, slot_no, of_session, 'live',
          found_ticket.suspect, moment, until)
        on conflict (run_id, berth) where state = 'live' do nothing;
      if not found then
        full_runs := full_runs || found_ticket.run_id;
        continue;
      end if;
      update ticket t set state = 'leased', lease_id = p_ids[taken + 1], grant_no = t.grant_no + 1 where t.id = found_ticket.id;
      if slot_no is not null then
        update slot s set session_id = of_session
          where s.installation_id = p_installation and s.provider = source.name and s.no = slot_no;
      end if;
      taken := taken + 1;
      lease_id := p_ids[taken];
      ticket_id := found_ticket.id;
      grant_no := found_ticket.grant_no + 1;
      expires_at := until;
      session_id := of_session;
      return next;
      if probe then
        update provider p set probe_ticket = found_ticket.id,
            settled_until = moment + least(interval '5 minutes' * (2 ^ p.rounds), interval '60 minutes')
          where p.installation_id = p_installation and p.name = source.name;
        exit;
      end if;
      exit sources when found_ticket.suspect or taken = wanted;
    end loop;
    exit when taken = wanted;
  end loop;
end $$;
--> statement-breakpoint
-- Ends a live lease and says what becomes of its ticket, in one call: lease, slots, ticket, the held
-- ticket of the same cell, and the next ticket for the lane. False: the lease was not live any more.
create function settle_lease(
  p_lease text, p_lease_state text, p_state text, p_front boolean, p_not_before timestamptz,
  p_losses integer, p_timeouts integer, p_transients integer, p_suspect boolean,
  p_end text, p_verdict text, p_partial boolean, p_result text, p_reason text, p_seq bigint)
returns boolean language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  moment timestamptz := cs_now();
  l record;
  t record;
  held record;
  next_state text := p_state;
begin
  update lease set state = p_lease_state, ended_at = moment where id = p_lease and state = 'live'
    returning ticket_id, run_id, installation_id, provider, slot, session_id, admitted into l;
  if not found then return false; end if;
  if l.slot is not null then
    update slot s set session_id = null
      where s.installation_id = l.installation_id and s.provider = l.provider and s.no = l.slot and s.session_id = l.session_id;
  end if;
  if l.admitted then
    update slot s set session_id = null from session x
      where x.lease_id = p_lease and x.state = 'admitted' and x.slot is not null
        and s.installation_id = x.installation_id and s.provider = x.provider and s.no = x.slot and s.session_id = x.id;
    update session set state = 'ended', end_code = 'abandoned', ended_at = moment where lease_id = p_lease and state = 'admitted';
  end if;
  -- held tickets are few: this looks at an index that holds nothing else
  select h.id, h.provider, h.parallel into held
    from ticket h join ticket c on c.id = l.ticket_id
    where h.run_id = l.run_id and h.state = 'held' and sha256(h.path) = sha256(c.path) limit 1;
  -- other content waits for this cell: this one is not wanted again (TKT-3)
  if held.id is not null and p_state = 'pending' then next_state := 'superseded'; end if;
  update ticket k set
      state = next_state, lane = null, lease_id = null,
      turn = case when p_front then k.turn % 1024 else k.turn end,
      not_before = case when next_state = 'pending' then p_not_before end,
      losses = p_losses, timeouts = p_timeouts, transients = p_transients, suspect = p_suspect,
      end_code = coalesce(p_end, k.end_code), verdict = coalesce(p_verdict, k.verdict), partial = p_partial,
      result = coalesce(p_result, k.result),
      result_grant = case when p_result is null then k.result_grant else k.grant_no end,
      reason = p_reason, seq = coalesce(p_seq, k.seq),
      ended_at = case when next_state = 'pending' then null else moment end
    from ticket o where k.id = l.ticket_id and o.id = k.id
    returning o.lane, o.provider, o.run_id into t;
  if held.id is not null then
    update ticket set state = 'pending' where id = held.id;
  end if;
  if t.lane is not null then
    perform ticket_promote(t.run_id, t.provider, t.lane, moment);
  end if;
  if held.id is not null and held.provider <> t.provider then
    perform ticket_window(t.run_id, held.provider, held.parallel);
  end if;
  return true;
end $$;
--> statement-breakpoint
-- Bodies are read once and soon deleted: compressing them on the way in cost a sixth of the ingest rate (performance.md §4).
alter table delivery alter column body set storage external;
