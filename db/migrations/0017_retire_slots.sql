CREATE INDEX "slot_retiring" ON "slot" USING btree ("installation_id","provider") WHERE "slot"."retiring";
--> statement-breakpoint
-- ADM-1, POL-2: a slot that comes free is handed to the first who waits for one, or goes in place of one that is above
-- the cap and still busy: a cap that was lowered is kept from the first slot that comes free.
create or replace function slot_hand_over() returns trigger language plpgsql as $$
declare
  next text;
  spared integer;
begin
  update slot set retiring = false
    where installation_id = new.installation_id and provider = new.provider and no = (
      select no from slot
      where installation_id = new.installation_id and provider = new.provider and retiring and no <> new.no
      limit 1 for update skip locked)
    returning no into spared;
  if spared is not null then
    new.retiring := true;
    return new;
  end if;
  select s.id into next from session s
    where s.installation_id = new.installation_id and s.provider = new.provider and s.state = 'waiting' and s.slot is null
      and s.seen_at > cs_now() - interval '1 minute'
    order by s.turn limit 1 for update skip locked;
  if next is not null then
    update session set slot = new.no where id = next;
    new.session_id := next;
  end if;
  return new;
end $$;
