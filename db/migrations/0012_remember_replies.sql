ALTER TABLE "sticky" ALTER COLUMN "body" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "check_run" ADD COLUMN "published_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "command" ADD COLUMN "login" text NOT NULL;--> statement-breakpoint
ALTER TABLE "sticky" ADD COLUMN "intended_at" timestamp with time zone NOT NULL;