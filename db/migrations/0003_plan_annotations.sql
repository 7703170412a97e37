ALTER TABLE "check_run" ADD COLUMN "plan" jsonb;--> statement-breakpoint
ALTER TABLE "check_run" ADD COLUMN "attempts" integer DEFAULT 0 NOT NULL;