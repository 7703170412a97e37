-- What drizzle cannot express: product time, the guard of the ledger (LED-5), the application's role.

-- Changes that an older app cannot live with: such a migration ends with
--   insert into schema_break (tag) values ('<its own tag>');
-- and an app that does not know the tag refuses to start (OPS-4).
create table schema_break (tag text primary key, at timestamptz not null default now());
--> statement-breakpoint
-- Product time is clock_timestamp() plus this offset. It has a row only in tests: the trigger refuses
-- one unless the owner of the database marked it as throw-away (alter database … set countersign.throwaway).
-- The mark is read from the catalogue, since any session may set a variable of that name for itself.
create table clock_offset (one boolean primary key default true check (one), ahead interval not null);
--> statement-breakpoint
create function cs_throwaway() returns boolean language sql stable parallel safe set search_path = pg_catalog, pg_temp as $$
  select exists (
    select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
    where d.datname = current_database() and s.setrole = 0 and 'countersign.throwaway=on' = any (s.setconfig))
$$;
--> statement-breakpoint
create function cs_refuse_clock() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if not public.cs_throwaway() then
    raise exception 'the clock moves only in a database that is marked as throw-away' using errcode = '42501';
  end if;
  return new;
end $$;
--> statement-breakpoint
create trigger clock_offset_refuse before insert or update on clock_offset for each row execute function cs_refuse_clock();
--> statement-breakpoint
alter table clock_offset enable always trigger clock_offset_refuse;
--> statement-breakpoint
-- STABLE, so that `due_at <= cs_now()` can use an index; plpgsql, so that it is not inlined as volatile.
-- An offset that came with a dump of a test database is not believed either.
create function cs_now() returns timestamptz language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  moved interval;
begin
  select ahead into moved from public.clock_offset;
  if moved is not null and public.cs_throwaway() then
    return clock_timestamp() + moved;
  end if;
  return clock_timestamp();
end $$;
--> statement-breakpoint
-- A head changes with every append: room for the new version on the same page, so no index entry is written.
alter table ledger_head set (fillfactor = 50);
--> statement-breakpoint
-- The guard: rows continue their chain from its head without a gap, each links to the one before, each
-- hash is the hash of its body, and the head moves on. One statement, one call, one update per chain.
create function ledger_guard() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  added record;
  run text;
  first_seq bigint;
  first_prev bytea;
  last_seq bigint;
  last_hash bytea;
begin
  -- in the order of the statement: rows that are not in order do not follow each other and are refused
  for added in select f.run_id, f.seq, f.prev, f.hash, f.body from fresh f loop
    if added.hash <> sha256('\x00'::bytea || added.body) then
      raise exception 'ledger: the hash of row % of % is not that of its body', added.seq, added.run_id using errcode = 'CSL01';
    end if;
    if run is distinct from added.run_id then
      if run is not null then
        update public.ledger_head h set seq = last_seq, hash = last_hash
          where h.run_id = run and h.seq = first_seq - 1 and coalesce(h.hash, h.genesis) = first_prev;
        if not found then
          raise exception 'ledger: rows of % do not continue its head', run using errcode = 'CSL02';
        end if;
      end if;
      run := added.run_id;
      first_seq := added.seq;
      first_prev := added.prev;
    elsif added.seq <> last_seq + 1 or added.prev <> last_hash then
      raise exception 'ledger: row % of % does not follow the one before it', added.seq, added.run_id using errcode = 'CSL02';
    end if;
    last_seq := added.seq;
    last_hash := added.hash;
  end loop;
  if run is not null then
    update public.ledger_head h set seq = last_seq, hash = last_hash
      where h.run_id = run and h.seq = first_seq - 1 and coalesce(h.hash, h.genesis) = first_prev;
    if not found then
      raise exception 'ledger: rows of % do not continue its head', run using errcode = 'CSL02';
    end if;
  end if;
  return null;
end $$;
--> statement-breakpoint
create function ledger_refuse() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'ledger: % on % is refused', tg_op, tg_table_name using errcode = 'CSL03';
end $$;
--> statement-breakpoint
create trigger ledger_row_guard after insert on ledger_row referencing new table as fresh
  for each statement execute function ledger_guard();
--> statement-breakpoint
create trigger ledger_row_refuse before update or delete or truncate on ledger_row
  for each statement execute function ledger_refuse();
--> statement-breakpoint
create trigger ledger_head_refuse before delete or truncate on ledger_head
  for each statement execute function ledger_refuse();
--> statement-breakpoint
-- a head moves only from inside the guard
create trigger ledger_head_moved before update on ledger_head
  for each row when (pg_trigger_depth() = 0) execute function ledger_refuse();
--> statement-breakpoint
-- a new head starts at its genesis
create trigger ledger_head_start before insert on ledger_head
  for each row when (new.seq <> 0 or new.hash is not null) execute function ledger_refuse();
--> statement-breakpoint
-- ALWAYS: session_replication_role = replica skips every other trigger
alter table ledger_row enable always trigger ledger_row_guard;
--> statement-breakpoint
alter table ledger_row enable always trigger ledger_row_refuse;
--> statement-breakpoint
alter table ledger_head enable always trigger ledger_head_refuse;
--> statement-breakpoint
alter table ledger_head enable always trigger ledger_head_moved;
--> statement-breakpoint
alter table ledger_head enable always trigger ledger_head_start;
--> statement-breakpoint
-- The application's role is one per server, the grants one per database. Run after every migration, so
-- that tables added later are covered, whichever role added them. False: no right to create the role.
create function cs_grant() returns boolean language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  item record;
begin
  if not exists (select from pg_roles where rolname = 'countersign_app') then
    begin
      create role countersign_app nologin;
    exception
      when duplicate_object or unique_violation then null; -- another database of this server was faster
      when insufficient_privilege then return false;
    end;
  end if;
  begin
    execute format('grant countersign_app to %I', current_user);
  exception
    when insufficient_privilege or invalid_grant_operation then null; -- a superuser gave it already, or has to
  end;
  grant usage on schema public to countersign_app;
  for item in
    select c.oid::regclass as name, c.relname, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind in ('r', 'p', 'S')
  loop
    if item.relkind = 'S' then
      execute format('grant usage, select on sequence %s to countersign_app', item.name);
    elsif item.relname = 'ledger_row' then
      execute format('revoke all on %s from public, countersign_app', item.name);
      execute format('grant select, insert on %s to countersign_app', item.name);
    elsif item.relname = 'ledger_head' then
      execute format('revoke all on %s from public, countersign_app', item.name);
      -- by column: whoever may set seq and hash may begin a chain with a forged head
      execute format('grant select, insert (run_id, installation_id, log, repository_id, genesis) on %s to countersign_app', item.name);
    elsif item.relname in ('clock_offset', 'schema_break') then
      execute format('grant select on %s to countersign_app', item.name);
    else
      execute format('grant select, insert, update, delete on %s to countersign_app', item.name);
    end if;
  end loop;
  if exists (select from pg_namespace where nspname = 'graphile_worker') then
    grant usage on schema graphile_worker to countersign_app;
    grant execute on all functions in schema graphile_worker to countersign_app;
    grant usage, select on all sequences in schema graphile_worker to countersign_app;
    grant select, insert, update, delete on all tables in schema graphile_worker to countersign_app;
    -- the queue's tables have row security on, which only their owner passes
    for item in
      select c.oid, c.oid::regclass as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'graphile_worker' and c.relrowsecurity
        and not exists (select from pg_policy p where p.polrelid = c.oid and p.polname = 'countersign_app')
    loop
      execute format('create policy countersign_app on %s to countersign_app using (true) with check (true)', item.name);
    end loop;
  end if;
  return true;
end $$;
