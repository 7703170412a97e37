CREATE SEQUENCE "public"."ticket_tag" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "dispatch" (
	"id" text PRIMARY KEY NOT NULL,
	"installation_id" bigint NOT NULL,
	"repository_id" bigint NOT NULL,
	"run_id" text NOT NULL,
	"pool" text NOT NULL,
	"workflow" text NOT NULL,
	"generation" bigint NOT NULL,
	"nonce_hash" "bytea" NOT NULL,
	"workflow_run" bigint,
	"attempt" integer,
	"state" text NOT NULL,
	"detail" text,
	"created_at" timestamp with time zone NOT NULL,
	"due_at" timestamp with time zone,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "lease" (
	"id" text PRIMARY KEY NOT NULL,
	"ticket_id" text NOT NULL,
	"run_id" text NOT NULL,
	"installation_id" bigint NOT NULL,
	"repository_id" bigint NOT NULL,
	"login_id" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"grant_no" integer NOT NULL,
	"generation" bigint NOT NULL,
	"berth" smallint NOT NULL,
	"provider" text NOT NULL,
	"slot" integer,
	"session_id" text,
	"state" text DEFAULT 'live' NOT NULL,
	"alone" boolean DEFAULT false NOT NULL,
	"admitted" boolean DEFAULT false NOT NULL,
	"recalled" boolean DEFAULT false NOT NULL,
	"granted_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"drain_until" timestamp with time zone,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "session" (
	"id" text PRIMARY KEY NOT NULL,
	"lease_id" text NOT NULL,
	"ticket_id" text NOT NULL,
	"installation_id" bigint NOT NULL,
	"reviewer" text NOT NULL,
	"provider" text NOT NULL,
	"purpose" text NOT NULL,
	"slot" integer,
	"state" text NOT NULL,
	"end_code" text,
	"detail" text,
	"prompt_tokens" bigint NOT NULL,
	"tokens_in" bigint DEFAULT 0 NOT NULL,
	"tokens_out" bigint DEFAULT 0 NOT NULL,
	"cost_micro" bigint DEFAULT 0 NOT NULL,
	"admitted_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "slot" (
	"installation_id" bigint NOT NULL,
	"provider" text NOT NULL,
	"no" integer NOT NULL,
	"session_id" text,
	CONSTRAINT "slot_installation_id_provider_no_pk" PRIMARY KEY("installation_id","provider","no")
);
--> statement-breakpoint
CREATE TABLE "pool" (
	"repository_id" bigint NOT NULL,
	"name" text NOT NULL,
	"installation_id" bigint NOT NULL,
	"missed" integer DEFAULT 0 NOT NULL,
	"settled_until" timestamp with time zone,
	"rounds" integer DEFAULT 0 NOT NULL,
	"detail" text,
	CONSTRAINT "pool_repository_id_name_pk" PRIMARY KEY("repository_id","name")
);
--> statement-breakpoint
CREATE TABLE "provider" (
	"installation_id" bigint NOT NULL,
	"name" text NOT NULL,
	"strikes" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"settled_until" timestamp with time zone,
	"settled_since" timestamp with time zone,
	"rounds" integer DEFAULT 0 NOT NULL,
	"probe_ticket" text,
	"detail" text,
	CONSTRAINT "provider_installation_id_name_pk" PRIMARY KEY("installation_id","name")
);
--> statement-breakpoint
CREATE TABLE "jti" (
	"issuer" text NOT NULL,
	"id" text NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "jti_issuer_id_pk" PRIMARY KEY("issuer","id")
);
--> statement-breakpoint
CREATE TABLE "login" (
	"id" text PRIMARY KEY NOT NULL,
	"runner_id" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"identity" jsonb NOT NULL,
	"claims" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"revoked_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "runner" (
	"id" text PRIMARY KEY NOT NULL,
	"installation_id" bigint NOT NULL,
	"repository_id" bigint NOT NULL,
	"pool" text NOT NULL,
	"workflow_run" bigint,
	"attempt" integer,
	"version" text NOT NULL,
	"capacity" integer NOT NULL,
	"keys" jsonb,
	"started_at" timestamp with time zone NOT NULL,
	"heartbeat_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "ticket" (
	"id" text PRIMARY KEY NOT NULL,
	"run_id" text NOT NULL,
	"installation_id" bigint NOT NULL,
	"repository_id" bigint NOT NULL,
	"block_id" text NOT NULL,
	"path" "bytea" NOT NULL,
	"from_path" "bytea",
	"kind" text DEFAULT 'review' NOT NULL,
	"key" text NOT NULL,
	"round" integer NOT NULL,
	"state" text NOT NULL,
	"level" text NOT NULL,
	"policy_hash" text NOT NULL,
	"spec" jsonb NOT NULL,
	"reviewers" jsonb NOT NULL,
	"provider" text NOT NULL,
	"parallel" smallint NOT NULL,
	"turn" integer NOT NULL,
	"lane" smallint,
	"tag" bigint,
	"lease_id" text,
	"grant_no" integer DEFAULT 0 NOT NULL,
	"losses" integer DEFAULT 0 NOT NULL,
	"timeouts" integer DEFAULT 0 NOT NULL,
	"transients" integer DEFAULT 0 NOT NULL,
	"suspect" boolean DEFAULT false NOT NULL,
	"not_before" timestamp with time zone,
	"end_code" text,
	"verdict" text,
	"partial" boolean DEFAULT false NOT NULL,
	"result" text,
	"result_grant" integer,
	"reason" text,
	"seq" bigint,
	"queued_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE UNIQUE INDEX "dispatch_nonce" ON "dispatch" USING btree ("nonce_hash");--> statement-breakpoint
CREATE INDEX "dispatch_repository" ON "dispatch" USING btree ("repository_id","state");--> statement-breakpoint
CREATE INDEX "dispatch_workflow" ON "dispatch" USING btree ("workflow_run");--> statement-breakpoint
CREATE INDEX "dispatch_due" ON "dispatch" USING btree ("due_at");--> statement-breakpoint
CREATE UNIQUE INDEX "lease_berth" ON "lease" USING btree ("run_id","berth") WHERE "lease"."state" = 'live';--> statement-breakpoint
CREATE INDEX "lease_login" ON "lease" USING btree ("login_id") WHERE "lease"."state" = 'live';--> statement-breakpoint
CREATE INDEX "lease_over" ON "lease" USING btree ("ended_at") WHERE "lease"."state" <> 'live';--> statement-breakpoint
CREATE INDEX "session_lease" ON "session" USING btree ("lease_id");--> statement-breakpoint
CREATE INDEX "jti_expiry" ON "jti" USING btree ("expires_at");--> statement-breakpoint
CREATE UNIQUE INDEX "login_token" ON "login" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "login_runner" ON "login" USING btree ("runner_id");--> statement-breakpoint
CREATE INDEX "runner_repository" ON "runner" USING btree ("repository_id","ended_at");--> statement-breakpoint
CREATE INDEX "runner_workflow" ON "runner" USING btree ("workflow_run","attempt");--> statement-breakpoint
CREATE INDEX "ticket_ready" ON "ticket" USING btree ("repository_id","provider","tag") WHERE "ticket"."state" = 'pending' and "ticket"."lane" is not null;--> statement-breakpoint
CREATE INDEX "ticket_waiting" ON "ticket" USING btree ("run_id","provider","turn","id") WHERE "ticket"."state" = 'pending' and "ticket"."lane" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "ticket_cell" ON "ticket" USING btree ("run_id","block_id","path") WHERE "ticket"."state" in ('pending', 'leased');--> statement-breakpoint
CREATE INDEX "ticket_held" ON "ticket" USING btree ("run_id","path") WHERE "ticket"."state" = 'held';--> statement-breakpoint
CREATE INDEX "ticket_over" ON "ticket" USING btree ("run_id","key") WHERE "ticket"."state" not in ('pending', 'leased', 'held');--> statement-breakpoint
CREATE INDEX "ticket_due" ON "ticket" USING btree ("not_before") WHERE "ticket"."state" = 'pending' and "ticket"."not_before" is not null;