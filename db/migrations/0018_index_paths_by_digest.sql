DROP INDEX "finding_fingerprint";--> statement-breakpoint
ALTER TABLE "claim" DROP CONSTRAINT "claim_run_id_path_pk";--> statement-breakpoint
ALTER TABLE "file" DROP CONSTRAINT "file_run_id_path_pk";--> statement-breakpoint
CREATE UNIQUE INDEX "claim_path" ON "claim" USING btree ("run_id",sha256("path"));--> statement-breakpoint
CREATE UNIQUE INDEX "file_path" ON "file" USING btree ("run_id",sha256("path"));--> statement-breakpoint
CREATE UNIQUE INDEX "finding_fingerprint" ON "finding" USING btree ("run_id","fingerprint");