CREATE SEQUENCE "public"."ticket_tag" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "check_run" (
	"repository_id" bigint NOT NULL,
	"sha" text NOT NULL,
	"name" text NOT NULL,
	"n" integer NOT NULL,
	"run_id" text NOT NULL,
	"github_id" bigint,
	"state" text NOT NULL,
	"conclusion" text,
	"written" text,
	"wanted" text,
	"annotations" integer DEFAULT 0 NOT NULL,
	"plan" jsonb,
	"attempts" integer DEFAULT 0 NOT NULL,
	"published_at" timestamp with time zone,
	"written_at" timestamp with time zone,
	"due_at" timestamp with time zone,
	"seq" bigint,
	CONSTRAINT "check_run_repository_id_sha_name_n_pk" PRIMARY KEY("repository_id","sha","name","n")
);
--> statement-breakpoint
CREATE TABLE "command" (
	"comment_id" bigint NOT NULL,
	"index" integer NOT NULL,
	"run_id" text,
	"repository_id" bigint NOT NULL,
	"user_id" bigint NOT NULL,
	"login" text NOT NULL,
	"name" text NOT NULL,
	"state" text NOT NULL,
	"code" text,
	"reply" "bytea",
	"taken_at" timestamp with time zone NOT NULL,
	CONSTRAINT "command_comment_id_index_pk" PRIMARY KEY("comment_id","index")
);
--> statement-breakpoint
CREATE TABLE "gate" (
	"run_id" text PRIMARY KEY NOT NULL,
	"head" text NOT NULL,
	"conclusion" text NOT NULL,
	"digest" text NOT NULL,
	"seq" bigint NOT NULL,
	"decided_at" timestamp with time zone NOT NULL,
	"due_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "sticky" (
	"repository_id" bigint NOT NULL,
	"pull" bigint NOT NULL,
	"comment_id" bigint,
	"intended_at" timestamp with time zone NOT NULL,
	"written" text,
	CONSTRAINT "sticky_repository_id_pull_pk" PRIMARY KEY("repository_id","pull")
);
--> statement-breakpoint
CREATE TABLE "delivery" (
	"id" text PRIMARY KEY NOT NULL,
	"event" text NOT NULL,
	"action" text,
	"installation_id" bigint,
	"repository_id" bigint,
	"body" "bytea" NOT NULL,
	"sha256" "bytea" NOT NULL,
	"state" text DEFAULT 'stored' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"error" text,
	"received_at" timestamp with time zone NOT NULL,
	"done_at" timestamp with time zone
);
--> statement-breakpoint
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
CREATE TABLE "finding" (
	"run_id" text NOT NULL,
	"number" integer NOT NULL,
	"fingerprint" text NOT NULL,
	"path" "bytea" NOT NULL,
	"side" text NOT NULL,
	"start_line" integer NOT NULL,
	"end_line" integer NOT NULL,
	"severity" text NOT NULL,
	"lens" text NOT NULL,
	"state" text NOT NULL,
	"reviewer" text NOT NULL,
	"command" boolean NOT NULL,
	"ticket_id" text NOT NULL,
	"key" text NOT NULL,
	"blob" text,
	"title" text NOT NULL,
	"body" text NOT NULL,
	"quote" text NOT NULL,
	"suggestion" text,
	"seq" bigint NOT NULL,
	CONSTRAINT "finding_run_id_number_pk" PRIMARY KEY("run_id","number")
);
--> statement-breakpoint
CREATE TABLE "enrolment" (
	"repository_id" bigint NOT NULL,
	"base_ref" text NOT NULL,
	"state" text NOT NULL,
	"policy_hash" text,
	"commit" text NOT NULL,
	"mode" text NOT NULL,
	"error" jsonb,
	"enrolled_at" timestamp with time zone,
	"checked_at" timestamp with time zone NOT NULL,
	CONSTRAINT "enrolment_repository_id_base_ref_pk" PRIMARY KEY("repository_id","base_ref")
);
--> statement-breakpoint
CREATE TABLE "installation" (
	"id" bigint PRIMARY KEY NOT NULL,
	"account_id" bigint NOT NULL,
	"account_login" text NOT NULL,
	"status" text NOT NULL,
	"permissions" jsonb NOT NULL,
	"epoch" integer DEFAULT 1 NOT NULL,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "policy" (
	"hash" text PRIMARY KEY NOT NULL,
	"bytes" "bytea" NOT NULL,
	"stored_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "repository" (
	"id" bigint PRIMARY KEY NOT NULL,
	"installation_id" bigint NOT NULL,
	"owner_id" bigint NOT NULL,
	"owner" text NOT NULL,
	"name" text NOT NULL,
	"default_branch" text NOT NULL,
	"private" boolean NOT NULL,
	"status" text NOT NULL,
	"setup_cause" text,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "lease" (
	"id" text PRIMARY KEY NOT NULL,
	"ticket_id" text NOT NULL,
	"run_id" text NOT NULL,
	"installation_id" bigint NOT NULL,
	"repository_id" bigint NOT NULL,
	"runner_id" text NOT NULL,
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
	"refused" text,
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
CREATE TABLE "ledger_head" (
	"run_id" text PRIMARY KEY NOT NULL,
	"installation_id" bigint NOT NULL,
	"log" text NOT NULL,
	"repository_id" bigint,
	"genesis" "bytea" NOT NULL,
	"seq" bigint DEFAULT 0 NOT NULL,
	"hash" "bytea",
	CONSTRAINT "ledger_head_genesis" CHECK (length("ledger_head"."genesis") = 32),
	CONSTRAINT "ledger_head_hash" CHECK (("ledger_head"."seq" = 0) = ("ledger_head"."hash" is null))
);
--> statement-breakpoint
CREATE TABLE "ledger_row" (
	"run_id" text NOT NULL,
	"seq" bigint NOT NULL,
	"prev" "bytea" NOT NULL,
	"hash" "bytea" NOT NULL,
	"mac" "bytea" NOT NULL,
	"kind" text NOT NULL,
	"body" "bytea" NOT NULL,
	CONSTRAINT "ledger_row_run_id_seq_pk" PRIMARY KEY("run_id","seq"),
	CONSTRAINT "ledger_row_prev" UNIQUE("run_id","prev"),
	CONSTRAINT "ledger_row_sizes" CHECK (length("ledger_row"."prev") = 32 and length("ledger_row"."hash") = 32 and length("ledger_row"."mac") = 32 and length("ledger_row"."body") <= 32768 and "ledger_row"."seq" > 0)
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
	"noted" boolean DEFAULT true NOT NULL,
	CONSTRAINT "provider_installation_id_name_pk" PRIMARY KEY("installation_id","name")
);
--> statement-breakpoint
CREATE TABLE "read_cursor" (
	"name" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "block" (
	"run_id" text NOT NULL,
	"id" text NOT NULL,
	"position" integer NOT NULL,
	"identity" text NOT NULL,
	"title" text NOT NULL,
	"named" boolean NOT NULL,
	"kind" text NOT NULL,
	"level" text NOT NULL,
	"status" text NOT NULL,
	"attempt" integer NOT NULL,
	"commits" jsonb NOT NULL,
	"detail" jsonb NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	CONSTRAINT "block_run_id_id_pk" PRIMARY KEY("run_id","id")
);
--> statement-breakpoint
CREATE TABLE "claim" (
	"run_id" text NOT NULL,
	"block_id" text NOT NULL,
	"path" "bytea" NOT NULL,
	"entry" text NOT NULL,
	"auto" boolean NOT NULL,
	"seq" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "file" (
	"run_id" text NOT NULL,
	"path" "bytea" NOT NULL,
	"from_path" "bytea",
	"status" text NOT NULL,
	"mode_base" text,
	"mode_head" text,
	"blob_base" text,
	"blob_head" text,
	"kind" text NOT NULL,
	"level" text NOT NULL,
	"asked" text,
	"reason" text,
	"lines" integer,
	"block_id" text NOT NULL,
	"ownership" text NOT NULL,
	"key" text
);
--> statement-breakpoint
CREATE TABLE "reason" (
	"run_id" text NOT NULL,
	"code" text NOT NULL,
	"since" timestamp with time zone NOT NULL,
	"due_at" timestamp with time zone,
	"detail" text,
	CONSTRAINT "reason_run_id_code_pk" PRIMARY KEY("run_id","code")
);
--> statement-breakpoint
CREATE TABLE "run" (
	"id" text PRIMARY KEY NOT NULL,
	"installation_id" bigint NOT NULL,
	"repository_id" bigint NOT NULL,
	"pull" bigint,
	"group_head" text,
	"epoch" integer NOT NULL,
	"status" text NOT NULL,
	"generation" bigint DEFAULT 1 NOT NULL,
	"version" bigint DEFAULT 1 NOT NULL,
	"author_id" bigint,
	"author_login" text,
	"head_repository_id" bigint,
	"head_ref" text,
	"draft" boolean DEFAULT false NOT NULL,
	"title" text DEFAULT '' NOT NULL,
	"told_head" text NOT NULL,
	"head" text,
	"base_ref" text NOT NULL,
	"base" text,
	"merge_base" text,
	"policy_hash" text,
	"mode" text DEFAULT 'enforce' NOT NULL,
	"allowed_rule" text,
	"allowed_scope" text,
	"allowed_head" text,
	"head_at" timestamp with time zone NOT NULL,
	"opened_at" timestamp with time zone NOT NULL
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
	"job" bigint,
	"version" text NOT NULL,
	"capacity" integer NOT NULL,
	"keys" jsonb,
	"started_at" timestamp with time zone NOT NULL,
	"heartbeat_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "stored_text" (
	"sha256" "bytea" PRIMARY KEY NOT NULL,
	"content" "bytea",
	"stored_at" timestamp with time zone NOT NULL,
	"erased_at" timestamp with time zone
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
	"providers" jsonb NOT NULL,
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
ALTER TABLE "finding" ADD CONSTRAINT "finding_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "ledger_row" ADD CONSTRAINT "ledger_row_head" FOREIGN KEY ("run_id") REFERENCES "public"."ledger_head"("run_id") ON DELETE restrict ON UPDATE restrict;--> statement-breakpoint
ALTER TABLE "block" ADD CONSTRAINT "block_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "claim" ADD CONSTRAINT "claim_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file" ADD CONSTRAINT "file_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "reason" ADD CONSTRAINT "reason_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "check_run_due" ON "check_run" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "command_person" ON "command" USING btree ("run_id","user_id","taken_at");--> statement-breakpoint
CREATE INDEX "delivery_state" ON "delivery" USING btree ("state","received_at");--> statement-breakpoint
CREATE INDEX "delivery_bytes" ON "delivery" USING btree ("sha256");--> statement-breakpoint
CREATE UNIQUE INDEX "dispatch_nonce" ON "dispatch" USING btree ("nonce_hash");--> statement-breakpoint
CREATE INDEX "dispatch_repository" ON "dispatch" USING btree ("repository_id","state");--> statement-breakpoint
CREATE INDEX "dispatch_workflow" ON "dispatch" USING btree ("workflow_run");--> statement-breakpoint
CREATE INDEX "dispatch_due" ON "dispatch" USING btree ("due_at");--> statement-breakpoint
CREATE UNIQUE INDEX "finding_fingerprint" ON "finding" USING btree ("run_id","fingerprint");--> statement-breakpoint
CREATE INDEX "repository_installation" ON "repository" USING btree ("installation_id");--> statement-breakpoint
CREATE UNIQUE INDEX "lease_berth" ON "lease" USING btree ("run_id","berth") WHERE "lease"."state" = 'live';--> statement-breakpoint
CREATE INDEX "lease_runner" ON "lease" USING btree ("runner_id") WHERE "lease"."state" = 'live';--> statement-breakpoint
CREATE INDEX "lease_over" ON "lease" USING btree ("ended_at") WHERE "lease"."state" <> 'live';--> statement-breakpoint
CREATE INDEX "session_lease" ON "session" USING btree ("lease_id");--> statement-breakpoint
CREATE UNIQUE INDEX "claim_path" ON "claim" USING btree ("run_id",sha256("path"));--> statement-breakpoint
CREATE UNIQUE INDEX "file_path" ON "file" USING btree ("run_id",sha256("path"));--> statement-breakpoint
CREATE INDEX "file_key" ON "file" USING btree ("run_id","key");--> statement-breakpoint
CREATE INDEX "reason_due" ON "reason" USING btree ("due_at");--> statement-breakpoint
CREATE UNIQUE INDEX "run_pull" ON "run" USING btree ("installation_id","repository_id","pull","epoch");--> statement-breakpoint
CREATE UNIQUE INDEX "run_group" ON "run" USING btree ("installation_id","repository_id","group_head");--> statement-breakpoint
CREATE INDEX "run_head" ON "run" USING btree ("repository_id","told_head");--> statement-breakpoint
CREATE INDEX "run_base" ON "run" USING btree ("repository_id","base_ref","status");--> statement-breakpoint
CREATE INDEX "jti_expiry" ON "jti" USING btree ("expires_at");--> statement-breakpoint
CREATE UNIQUE INDEX "login_token" ON "login" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "login_runner" ON "login" USING btree ("runner_id");--> statement-breakpoint
CREATE INDEX "runner_repository" ON "runner" USING btree ("repository_id","ended_at");--> statement-breakpoint
CREATE INDEX "runner_workflow" ON "runner" USING btree ("workflow_run","attempt");--> statement-breakpoint
CREATE INDEX "stored_text_age" ON "stored_text" USING btree ("stored_at");--> statement-breakpoint
CREATE INDEX "ticket_ready" ON "ticket" USING btree ("repository_id","provider","tag") WHERE "ticket"."state" = 'pending' and "ticket"."lane" is not null;--> statement-breakpoint
CREATE INDEX "ticket_waiting" ON "ticket" USING btree ("run_id","provider","turn","id") WHERE "ticket"."state" = 'pending' and "ticket"."lane" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "ticket_cell" ON "ticket" USING btree ("run_id","block_id",sha256("path")) WHERE "ticket"."state" in ('pending', 'leased');--> statement-breakpoint
CREATE INDEX "ticket_held" ON "ticket" USING btree ("run_id",sha256("path")) WHERE "ticket"."state" = 'held';--> statement-breakpoint
CREATE INDEX "ticket_over" ON "ticket" USING btree ("run_id","key") WHERE "ticket"."state" not in ('pending', 'leased', 'held');--> statement-breakpoint
CREATE INDEX "ticket_due" ON "ticket" USING btree ("not_before") WHERE "ticket"."state" = 'pending' and "ticket"."not_before" is not null;