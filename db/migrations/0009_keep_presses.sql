CREATE TABLE "press" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "press_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"delivery" text NOT NULL,
	"repository_id" bigint NOT NULL,
	"sha" text NOT NULL,
	"name" text NOT NULL,
	"action" text NOT NULL,
	"user_id" bigint NOT NULL,
	"login" text NOT NULL,
	"bot" boolean NOT NULL,
	"pressed_at" timestamp with time zone NOT NULL,
	CONSTRAINT "press_delivery_unique" UNIQUE("delivery")
);
--> statement-breakpoint
CREATE TABLE "remark" (
	"repository_id" bigint NOT NULL,
	"pull" bigint NOT NULL,
	"sha" text NOT NULL,
	"run_id" text NOT NULL,
	"state" text NOT NULL,
	"github_id" bigint,
	"findings" jsonb NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"intended_at" timestamp with time zone NOT NULL,
	CONSTRAINT "remark_repository_id_pull_sha_pk" PRIMARY KEY("repository_id","pull","sha")
);
--> statement-breakpoint
ALTER TABLE "check_run" ADD COLUMN "fault" text;--> statement-breakpoint
ALTER TABLE "check_run" ADD COLUMN "failing_since" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "remark_run" ON "remark" USING btree ("run_id");