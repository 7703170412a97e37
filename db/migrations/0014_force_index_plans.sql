-- A plan that was made while a table was small stays cached: with 1,500 leases over, looking at all of
-- them cost five times the rest of the statement. The queue's statements use their indexes whatever the
-- statistics say.
alter function lease_tickets(text, bigint, bigint, text, text[], bytea[], text[], interval) set enable_seqscan = off;
--> statement-breakpoint
alter function settle_lease(text, text, text, boolean, timestamptz, integer, integer, integer, boolean, text, text, boolean, text, text, bigint) set enable_seqscan = off;
--> statement-breakpoint
alter function ticket_window(text, text, smallint) set enable_seqscan = off;
--> statement-breakpoint
-- called from settle_lease only: its caller's settings hold, and setting them anew costs time
alter function ticket_promote(text, text, smallint, timestamptz) reset plan_cache_mode;
