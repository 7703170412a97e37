CREATE TABLE "operator_token" (
	"name" text PRIMARY KEY NOT NULL,
	"installation_id" bigint NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "operator_token_hash" ON "operator_token" USING btree ("token_hash");