CREATE TABLE "group_member" (
	"run_id" text NOT NULL,
	"position" integer NOT NULL,
	"pull" bigint NOT NULL,
	"head" text NOT NULL,
	"member_run" text,
	"digest" text,
	CONSTRAINT "group_member_run_id_position_pk" PRIMARY KEY("run_id","position")
);
--> statement-breakpoint
ALTER TABLE "group_member" ADD CONSTRAINT "group_member_run_id_run_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."run"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "group_member_run" ON "group_member" USING btree ("member_run");--> statement-breakpoint
CREATE INDEX "ticket_reviewed" ON "ticket" USING btree ("repository_id","key") WHERE "ticket"."state" = 'ended' and "ticket"."end_code" = 'reviewed' and not "ticket"."partial";