/** The signed ledger: a head per chain and its rows (LED-1, LED-3, LED-5). Triggers, the sizes they hold and grants are in the migrations `guard_ledger` and `guard_in_one`. */
import { bigint, foreignKey, pgTable, primaryKey, text, unique } from 'drizzle-orm/pg-core';
import { bigintId, bytea } from './columns.ts';

/** The head of one chain: a run, or `i/<installation id>` for facts of no run (LED-4). `hash` is null until the first row. */
export const ledgerHead = pgTable('ledger_head', {
  runId: text('run_id').primaryKey(),
  installationId: bigintId('installation_id').notNull(),
  log: text().notNull(),
  /** Null for an installation's own chain. */
  repositoryId: bigintId('repository_id'),
  /** What `prev` of row 1 must be (LED-3). */
  genesis: bytea().notNull(),
  seq: bigint({ mode: 'number' }).notNull().default(0),
  hash: bytea(),
});

/** One signed row: the exact body bytes, never re-made to verify (LED-1). `kind` repeats the body's for look-ups and is verified against it. */
export const ledgerRow = pgTable(
  'ledger_row',
  {
    runId: text('run_id').notNull(),
    seq: bigint({ mode: 'number' }).notNull(),
    prev: bytea().notNull(),
    hash: bytea().notNull(),
    mac: bytea().notNull(),
    kind: text().notNull(),
    body: bytea().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.seq] }),
    // no fork: a second child of the same row is refused by Postgres itself (case 62)
    unique('ledger_row_prev').on(t.runId, t.prev),
    foreignKey({ columns: [t.runId], foreignColumns: [ledgerHead.runId], name: 'ledger_row_head' })
      .onDelete('restrict')
      .onUpdate('restrict'),
  ],
);
