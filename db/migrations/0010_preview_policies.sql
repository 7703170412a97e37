CREATE TABLE "preview" (
	"repository_id" bigint NOT NULL,
	"pull" bigint NOT NULL,
	"sha" text NOT NULL,
	"conclusion" text NOT NULL,
	"title" text NOT NULL,
	"summary" text NOT NULL,
	"made_at" timestamp with time zone NOT NULL,
	CONSTRAINT "preview_repository_id_pull_pk" PRIMARY KEY("repository_id","pull")
);
--> statement-breakpoint
CREATE INDEX "preview_head" ON "preview" USING btree ("repository_id","sha");