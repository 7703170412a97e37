CREATE TABLE "pool_token" (
	"id" text PRIMARY KEY NOT NULL,
	"pool" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"revoked_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "pool_use" (
	"pool" text NOT NULL,
	"installation_id" bigint NOT NULL,
	"repository_id" bigint NOT NULL,
	"base_ref" text NOT NULL,
	CONSTRAINT "pool_use_pool_installation_id_repository_id_base_ref_pk" PRIMARY KEY("pool","installation_id","repository_id","base_ref")
);
--> statement-breakpoint
CREATE TABLE "resident_pool" (
	"name" text PRIMARY KEY NOT NULL,
	"serves" jsonb NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "resident_scope" (
	"pool" text NOT NULL,
	"installation_id" bigint NOT NULL,
	"repositories" jsonb,
	"served_at" timestamp with time zone,
	CONSTRAINT "resident_scope_pool_installation_id_pk" PRIMARY KEY("pool","installation_id")
);
--> statement-breakpoint
ALTER TABLE "runner" ALTER COLUMN "installation_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "runner" ALTER COLUMN "repository_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "login" ADD COLUMN "pool_token" text;--> statement-breakpoint
ALTER TABLE "runner" ADD COLUMN "instance" text;--> statement-breakpoint
CREATE UNIQUE INDEX "pool_token_hash" ON "pool_token" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "pool_token_pool" ON "pool_token" USING btree ("pool");--> statement-breakpoint
CREATE INDEX "pool_use_repository" ON "pool_use" USING btree ("repository_id","base_ref");--> statement-breakpoint
CREATE INDEX "login_pool_token" ON "login" USING btree ("pool_token") WHERE "login"."pool_token" is not null and "login"."revoked_at" is null;--> statement-breakpoint
CREATE INDEX "runner_pool" ON "runner" USING btree ("pool") WHERE "runner"."repository_id" is null and "runner"."ended_at" is null;
--> statement-breakpoint
-- LSE-1 for a resident runner: places of its pool that have a ticket ready and room for it, by installation; the
-- lease then goes on as for a workflow runner of that repository. Nothing is locked and nothing of the backlog is
-- looked at: from each repository that names the pool it leaps to the next that has something ready, and back, so
-- a step is two look-ups by an index however many others wait. `p_most` steps an installation; where it was cut
-- short, a row without a tag says where to go on.
create function pool_places(p_pool text, p_installations bigint[], p_after bigint[], p_most integer)
returns table (installation_id bigint, repository_id bigint, tag bigint, served_at timestamptz)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  moment timestamptz := cs_now();
  scope record;
  start bigint;
  place bigint;
  used bigint;
  ready bigint;
  wrapped boolean;
  steps integer;
begin
  for scope in
    select s.installation_id, s.repositories, s.served_at from resident_scope s
    join installation i on i.id = s.installation_id and i.status = 'active'
    where s.pool = p_pool
  loop
    start := coalesce(p_after[array_position(p_installations, scope.installation_id)], 0);
    place := start;
    wrapped := start = 0;
    steps := 0;
    loop
      if steps >= p_most then
        return query select scope.installation_id, place, null::bigint, scope.served_at;
        exit;
      end if;
      steps := steps + 1;
      select u.repository_id into used from pool_use u
        where u.pool = p_pool and u.installation_id = scope.installation_id and u.repository_id > place
        order by u.repository_id limit 1;
      ready := null;
      if used is not null then
        select t.repository_id into ready from ticket t
          where t.repository_id >= used and t.state = 'pending' and t.lane is not null
          order by t.repository_id limit 1;
      end if;
      if ready is null then
        exit when wrapped;
        -- from the front, up to where this began
        wrapped := true;
        place := 0;
        continue;
      end if;
      exit when wrapped and start > 0 and ready > start;
      if ready <> used then place := ready - 1; continue; end if;
      place := used;
      return query
        select scope.installation_id, r.id, min(h.tag), scope.served_at
        from repository r
        join provider p on p.installation_id = r.installation_id and (p.settled_until is null or p.settled_until <= moment)
        cross join lateral (
          select t.tag from ticket t
          where t.repository_id = r.id and t.provider = p.name and t.state = 'pending' and t.lane is not null
          order by t.tag limit 1) h
        where r.id = used and r.installation_id = scope.installation_id and r.status = 'active' and r.setup_cause is null
          and (scope.repositories is null or scope.repositories ? r.id::text)
          and (p.name = 'command' or exists (
            select from slot s where s.installation_id = p.installation_id and s.provider = p.name and s.session_id is null))
        group by r.id;
    end loop;
  end loop;
end $$;
