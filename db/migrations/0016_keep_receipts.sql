CREATE TABLE "receipt" (
	"run_id" text NOT NULL,
	"block_id" text NOT NULL,
	"id" text NOT NULL,
	"repository_id" bigint NOT NULL,
	"head" text NOT NULL,
	"commands" jsonb NOT NULL,
	"definition" text NOT NULL,
	"state" text NOT NULL,
	"why" text,
	"workflow_run" bigint,
	"attempt" integer,
	"job" bigint,
	"seq" bigint NOT NULL,
	"reserved_at" timestamp with time zone NOT NULL,
	"rerun_after" integer,
	CONSTRAINT "receipt_run_id_block_id_id_pk" PRIMARY KEY("run_id","block_id","id")
);
--> statement-breakpoint
ALTER TABLE "receipt" ADD CONSTRAINT "receipt_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "receipt_head" ON "receipt" USING btree ("repository_id","head");