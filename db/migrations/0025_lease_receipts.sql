CREATE TABLE "receipt_lease" (
	"id" text PRIMARY KEY NOT NULL,
	"run_id" text NOT NULL,
	"block_id" text NOT NULL,
	"receipt_id" text NOT NULL,
	"head" text NOT NULL,
	"command" text NOT NULL,
	"runner_id" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"grant_no" integer NOT NULL,
	"generation" bigint NOT NULL,
	"request" text,
	"state" text DEFAULT 'live' NOT NULL,
	"result" text,
	"refused" text,
	"granted_at" timestamp with time zone NOT NULL,
	"started_at" timestamp with time zone,
	"expires_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "receipt" ADD COLUMN "pool" text;--> statement-breakpoint
ALTER TABLE "receipt" ADD COLUMN "lease_id" text;--> statement-breakpoint
ALTER TABLE "receipt" ADD COLUMN "grant_no" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "receipt" ADD COLUMN "losses" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "receipt" ADD COLUMN "not_before" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "runner" ADD COLUMN "runtime" text;--> statement-breakpoint
CREATE UNIQUE INDEX "receipt_lease_one" ON "receipt_lease" USING btree ("run_id","block_id","receipt_id") WHERE "receipt_lease"."state" = 'live';--> statement-breakpoint
CREATE INDEX "receipt_lease_runner" ON "receipt_lease" USING btree ("runner_id") WHERE "receipt_lease"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "receipt_lease_open" ON "receipt_lease" USING btree ("expires_at") WHERE "receipt_lease"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "receipt_lease_over" ON "receipt_lease" USING btree ("ended_at") WHERE "receipt_lease"."ended_at" is not null;--> statement-breakpoint
CREATE INDEX "receipt_pool" ON "receipt" USING btree ("pool","reserved_at") WHERE "receipt"."pool" is not null and "receipt"."lease_id" is null and "receipt"."state" in ('reserved', 'waiting');