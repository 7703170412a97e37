ALTER TABLE "lease" ADD COLUMN "runner_id" text NOT NULL;--> statement-breakpoint
CREATE INDEX "lease_runner" ON "lease" USING btree ("runner_id") WHERE "lease"."state" = 'live';