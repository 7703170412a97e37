DROP INDEX "ticket_cell";--> statement-breakpoint
DROP INDEX "ticket_held";--> statement-breakpoint
CREATE UNIQUE INDEX "ticket_cell" ON "ticket" USING btree ("run_id","block_id",sha256("path")) WHERE "ticket"."state" in ('pending', 'leased');--> statement-breakpoint
CREATE INDEX "ticket_held" ON "ticket" USING btree ("run_id",sha256("path")) WHERE "ticket"."state" = 'held';