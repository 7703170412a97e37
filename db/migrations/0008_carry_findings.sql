ALTER TABLE "finding" ADD COLUMN "answer" text;--> statement-breakpoint
ALTER TABLE "finding" ADD COLUMN "dismissals" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "finding" ADD COLUMN "carried_seq" bigint;
