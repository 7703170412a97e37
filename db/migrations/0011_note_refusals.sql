ALTER TABLE "lease" ADD COLUMN "refused" text;--> statement-breakpoint
ALTER TABLE "provider" ADD COLUMN "noted" boolean DEFAULT true NOT NULL;