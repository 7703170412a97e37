CREATE TABLE "spend" (
	"scope" smallint NOT NULL,
	"id" text NOT NULL,
	"period" text NOT NULL,
	"sessions" bigint DEFAULT 0 NOT NULL,
	"tokens" bigint DEFAULT 0 NOT NULL,
	"micro" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "spend_scope_id_period_pk" PRIMARY KEY("scope","id","period")
);
--> statement-breakpoint
CREATE TABLE "setting" (
	"installation_id" bigint NOT NULL,
	"key" text NOT NULL,
	"value" jsonb NOT NULL,
	"actor" text NOT NULL,
	"reason" text NOT NULL,
	"set_at" timestamp with time zone NOT NULL,
	CONSTRAINT "setting_installation_id_key_pk" PRIMARY KEY("installation_id","key")
);
--> statement-breakpoint
ALTER TABLE "finding" ADD COLUMN "repository_id" bigint;--> statement-breakpoint
ALTER TABLE "finding" ADD COLUMN "raised_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "repository_id" bigint;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "run_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "block_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "outsider" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "period" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "turn" bigserial NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "seen_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "price_in" double precision;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "price_out" double precision;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "reserved_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "reserved_micro" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "booked" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "booked_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "booked_micro" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "settled" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "session" ADD COLUMN "usage_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "slot" ADD COLUMN "retiring" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "finding_history" ON "finding" USING btree ("repository_id",sha256("path"),"raised_at") WHERE "finding"."raised_at" is not null;--> statement-breakpoint
CREATE INDEX "session_waiting" ON "session" USING btree ("installation_id","provider","turn") WHERE "session"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX "session_unsettled" ON "session" USING btree ("installation_id","id") WHERE "session"."state" = 'ended' and not "session"."settled";--> statement-breakpoint
update session set settled = true;
--> statement-breakpoint
-- ADM-1: a slot that comes free, or is new, is handed to the first who waits for one; nobody leases it from under them.
-- Who did not ask for a minute is not there any more.
create function slot_hand_over() returns trigger language plpgsql as $$
declare
  next text;
begin
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
--> statement-breakpoint
create trigger slot_hand_over before insert or update of session_id on slot
  for each row when (new.session_id is null and not new.retiring) execute function slot_hand_over();
--> statement-breakpoint
-- POL-2: a slot above the cap that was busy when the cap was lowered ends with its session.
create function slot_retire() returns trigger language plpgsql as $$
begin
  delete from slot where installation_id = new.installation_id and provider = new.provider and no = new.no;
  return null;
end $$;
--> statement-breakpoint
create trigger slot_retire after update of session_id on slot
  for each row when (new.session_id is null and new.retiring) execute function slot_retire();
--> statement-breakpoint
-- Whoever waits for a slot under a lease stops waiting with it.
create function lease_over() returns trigger language plpgsql as $$
begin
  with gone as (
    delete from session where lease_id = new.id and state = 'waiting' returning id, installation_id, provider, slot
  )
  update slot s set session_id = null from gone g
    where g.slot is not null and s.installation_id = g.installation_id and s.provider = g.provider and s.no = g.slot
      and s.session_id = g.id;
  return null;
end $$;
--> statement-breakpoint
create trigger lease_over after update of state on lease
  for each row when (old.state = 'live' and new.state <> 'live') execute function lease_over();
--> statement-breakpoint
-- CTL-5: nothing is leased while the kill switch of the installation, or of the whole app (0), is on. Who throws it
-- holds the lock exclusively, so that no lease is on its way past it; everybody else shares it.
create function lease_guard() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(1263092812, 0);
  if exists (select from setting where installation_id in (0, new.installation_id) and key = 'kill') then return null; end if;
  return new;
end $$;
--> statement-breakpoint
create trigger lease_guard before insert on lease for each row execute function lease_guard();
--> statement-breakpoint
-- ADM-2. Reserves for one session in every count that is given, in their order, or in none. Answers 0, or where it does
-- not fit: ten times the place of the count plus 1 sessions, 2 tokens, 3 money. It is the last a transaction does: the
-- rows it locks are let go with the commit.
create function spend_take(
  p_session text, p_scopes smallint[], p_ids text[], p_periods text[],
  p_sessions bigint[], p_tokens bigint[], p_micro bigint[], p_take_tokens bigint, p_take_micro bigint) returns integer
language plpgsql as $$
declare
  found_row spend%rowtype;
  bits integer := 0;
begin
  for i in 1 .. cardinality(p_scopes) loop
    loop
      select * into found_row from spend s where s.scope = p_scopes[i] and s.id = p_ids[i] and s.period = p_periods[i] for update;
      exit when found;
      insert into spend (scope, id, period) values (p_scopes[i], p_ids[i], p_periods[i]) on conflict do nothing;
    end loop;
    if found_row.sessions + 1 > p_sessions[i] then return i * 10 + 1; end if;
    if found_row.tokens + p_take_tokens > p_tokens[i] then return i * 10 + 2; end if;
    if found_row.micro + p_take_micro > p_micro[i] then return i * 10 + 3; end if;
    bits := bits | (1 << p_scopes[i]);
  end loop;
  update spend s set sessions = s.sessions + 1, tokens = s.tokens + p_take_tokens, micro = s.micro + p_take_micro
    from unnest(p_scopes, p_ids, p_periods) as u(scope, id, period)
    where s.scope = u.scope and s.id = u.id and s.period = u.period;
  update session set booked = bits, booked_tokens = p_take_tokens, booked_micro = p_take_micro where id = p_session;
  return 0;
end $$;
--> statement-breakpoint
-- ADM-2. Books what sessions that ended came to: their usage, or their reservation while no usage arrived. Counts are
-- brought up in the order in which spend_take locks them, by one settler an installation at a time. Answers how many
-- counts there were.
create function spend_settle(p_installation bigint, p_limit integer) returns integer
language plpgsql as $$
declare
  part record;
  counts integer := 0;
begin
  perform pg_advisory_xact_lock(hashtext('spend ' || p_installation));
  for part in
    with due as (
      select x.id, x.installation_id, x.repository_id, x.run_id, x.block_id, x.outsider, x.period, x.booked, x.booked_tokens,
        x.booked_micro,
        case when x.usage_at is null then x.reserved_tokens else x.tokens_in + x.tokens_out end as tokens,
        case when x.usage_at is null then x.reserved_micro
             when x.price_in is null then x.cost_micro
             else ceil(x.tokens_in * x.price_in + x.tokens_out * x.price_out)::bigint end as micro
      from session x
      where x.installation_id = p_installation and x.state = 'ended' and not x.settled
      order by x.id limit p_limit for update skip locked
    ), marked as (
      -- 62: in all of scopes 1 to 5
      update session x set settled = true, booked = 62, booked_tokens = d.tokens, booked_micro = d.micro
        from due d where x.id = d.id
    )
    select k.scope, k.id, k.period,
      sum(case when d.booked & (1 << k.scope) = 0 then 1 else 0 end)::bigint as sessions,
      sum(d.tokens - case when d.booked & (1 << k.scope) = 0 then 0 else d.booked_tokens end)::bigint as tokens,
      sum(d.micro - case when d.booked & (1 << k.scope) = 0 then 0 else d.booked_micro end)::bigint as micro
    from due d cross join lateral (values
      (1::smallint, d.run_id || '/' || d.block_id, ''),
      (2::smallint, d.run_id, ''),
      (3::smallint, case when d.outsider then d.repository_id::text end, d.period),
      (4::smallint, d.repository_id::text, d.period),
      (5::smallint, d.installation_id::text, d.period)) as k(scope, id, period)
    where k.id is not null
    group by k.scope, k.id, k.period order by k.scope, k.id, k.period
  loop
    counts := counts + 1;
    insert into spend as s (scope, id, period, sessions, tokens, micro)
      values (part.scope, part.id, part.period, part.sessions, part.tokens, part.micro)
      on conflict (scope, id, period) do update set
        sessions = s.sessions + excluded.sessions, tokens = s.tokens + excluded.tokens, micro = s.micro + excluded.micro;
  end loop;
  return counts;
end $$;
