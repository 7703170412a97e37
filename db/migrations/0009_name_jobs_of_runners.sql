DROP INDEX "lease_login";--> statement-breakpoint
ALTER TABLE "runner" ADD COLUMN "job" bigint;--> statement-breakpoint
ALTER TABLE "ticket" ADD COLUMN "providers" jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "lease" DROP COLUMN "login_id";