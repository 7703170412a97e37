-- What the guard sees anyway it also holds: a CHECK constraint, and a WHEN over a row, is parsed again by the
-- server with every statement, which together was a third of what appending one row cost it. Lengths of
-- `prev` and `hash`, and `seq` above 0, follow from the chain itself: a hash is compared with sha256, `prev`
-- with the hash or the genesis before it, and a head starts at 0.
ALTER TABLE "ledger_head" DROP CONSTRAINT "ledger_head_genesis";--> statement-breakpoint
ALTER TABLE "ledger_head" DROP CONSTRAINT "ledger_head_hash";--> statement-breakpoint
ALTER TABLE "ledger_row" DROP CONSTRAINT "ledger_row_sizes";--> statement-breakpoint
create or replace function ledger_guard() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  added_run text;
  added_seq bigint;
  added_prev bytea;
  added_hash bytea;
  fits boolean;
  run text;
  first_seq bigint;
  first_prev bytea;
  last_seq bigint;
  last_hash bytea;
begin
  -- in the order of the statement: rows that are not in order do not follow each other and are refused
  for added_run, added_seq, added_prev, added_hash, fits in
    select f.run_id, f.seq, f.prev, f.hash,
           f.hash = sha256('\x00'::bytea || f.body) and length(f.mac) = 32 and length(f.body) <= 32768
    from fresh f
  loop
    if not fits then
      raise exception 'ledger: the hash of row % of % is not that of its body, or its MAC or body has not the size of one',
        added_seq, added_run using errcode = 'CSL01';
    end if;
    if run is distinct from added_run then
      if run is not null then
        update public.ledger_head h set seq = last_seq, hash = last_hash
          where h.run_id = run and h.seq = first_seq - 1 and coalesce(h.hash, h.genesis) = first_prev;
        if not found then
          raise exception 'ledger: rows of % do not continue its head', run using errcode = 'CSL02';
        end if;
      end if;
      run := added_run;
      first_seq := added_seq;
      first_prev := added_prev;
    elsif added_seq <> last_seq + 1 or added_prev <> last_hash then
      raise exception 'ledger: row % of % does not follow the one before it', added_seq, added_run using errcode = 'CSL02';
    end if;
    last_seq := added_seq;
    last_hash := added_hash;
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
-- a head moves only from inside the guard; by statement, since a trigger by row locks the head once more
drop trigger ledger_head_moved on ledger_head;
--> statement-breakpoint
create trigger ledger_head_moved before update on ledger_head
  for each statement when (pg_trigger_depth() = 0) execute function ledger_refuse();
--> statement-breakpoint
-- a new head starts at its genesis
drop trigger ledger_head_start on ledger_head;
--> statement-breakpoint
create trigger ledger_head_start before insert on ledger_head
  for each row when (new.seq <> 0 or new.hash is not null or length(new.genesis) <> 32) execute function ledger_refuse();
--> statement-breakpoint
alter table ledger_head enable always trigger ledger_head_moved;
--> statement-breakpoint
alter table ledger_head enable always trigger ledger_head_start;
