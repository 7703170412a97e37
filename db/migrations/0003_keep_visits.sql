CREATE TABLE "visit" (
	"secret_hash" "bytea" PRIMARY KEY NOT NULL,
	"family" text NOT NULL,
	"user_id" bigint NOT NULL,
	"login" text NOT NULL,
	"installations" jsonb NOT NULL,
	"signed_in_at" timestamp with time zone NOT NULL,
	"made_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"replaced" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE INDEX "visit_family" ON "visit" USING btree ("family");--> statement-breakpoint
CREATE INDEX "visit_expiry" ON "visit" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "run_newest" ON "run" USING btree ("installation_id","opened_at","id");