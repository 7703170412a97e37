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
	"body" text NOT NULL,
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
	"updated_at" timestamp with time zone NOT NULL
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
	"seq" bigint NOT NULL,
	CONSTRAINT "claim_run_id_path_pk" PRIMARY KEY("run_id","path")
);
--> statement-breakpoint
CREATE TABLE "decision" (
	"run_id" text NOT NULL,
	"path" "bytea" NOT NULL,
	"content" text NOT NULL,
	"policy" text NOT NULL,
	"level" text NOT NULL,
	"asked" text,
	"reason" text,
	"kind" text NOT NULL,
	"seq" bigint NOT NULL,
	CONSTRAINT "decision_run_id_path_content_policy_pk" PRIMARY KEY("run_id","path","content","policy")
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
	"block_id" text NOT NULL,
	"ownership" text NOT NULL,
	"key" text,
	CONSTRAINT "file_run_id_path_pk" PRIMARY KEY("run_id","path")
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
CREATE TABLE "stored_text" (
	"sha256" "bytea" PRIMARY KEY NOT NULL,
	"content" "bytea",
	"stored_at" timestamp with time zone NOT NULL,
	"erased_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "finding" ADD CONSTRAINT "finding_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "ledger_row" ADD CONSTRAINT "ledger_row_head" FOREIGN KEY ("run_id") REFERENCES "public"."ledger_head"("run_id") ON DELETE restrict ON UPDATE restrict;--> statement-breakpoint
ALTER TABLE "block" ADD CONSTRAINT "block_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "claim" ADD CONSTRAINT "claim_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "decision" ADD CONSTRAINT "decision_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file" ADD CONSTRAINT "file_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "reason" ADD CONSTRAINT "reason_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "check_run_due" ON "check_run" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "command_person" ON "command" USING btree ("run_id","user_id","taken_at");--> statement-breakpoint
CREATE INDEX "delivery_state" ON "delivery" USING btree ("state","received_at");--> statement-breakpoint
CREATE UNIQUE INDEX "finding_fingerprint" ON "finding" USING btree ("run_id","path","fingerprint");--> statement-breakpoint
CREATE INDEX "repository_installation" ON "repository" USING btree ("installation_id");--> statement-breakpoint
CREATE INDEX "file_key" ON "file" USING btree ("run_id","key");--> statement-breakpoint
CREATE INDEX "reason_due" ON "reason" USING btree ("due_at");--> statement-breakpoint
CREATE UNIQUE INDEX "run_pull" ON "run" USING btree ("installation_id","repository_id","pull","epoch");--> statement-breakpoint
CREATE UNIQUE INDEX "run_group" ON "run" USING btree ("installation_id","repository_id","group_head");--> statement-breakpoint
CREATE INDEX "run_head" ON "run" USING btree ("repository_id","told_head");--> statement-breakpoint
CREATE INDEX "run_base" ON "run" USING btree ("repository_id","base_ref","status");--> statement-breakpoint
CREATE INDEX "stored_text_age" ON "stored_text" USING btree ("stored_at");