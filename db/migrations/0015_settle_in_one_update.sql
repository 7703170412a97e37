-- One statement less a settlement: the lane that becomes free comes back from the update itself.
create or replace function settle_lease(
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
