/** The inbox: deliveries as GitHub sent them (OPS-1). */
import { index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { bigintId, bytea, moment } from './columns.ts';

/** One delivery, exact bytes. Seen is a row here; done is `state = done`. */
export const delivery = pgTable(
  'delivery',
  {
    id: text().primaryKey(),
    event: text().notNull(),
    action: text(),
    installationId: bigintId('installation_id'),
    repositoryId: bigintId('repository_id'),
    body: bytea().notNull(),
    sha256: bytea().notNull(),
    state: text().$type<'stored' | 'done' | 'ignored' | 'failed'>().notNull().default('stored'),
    attempts: integer().notNull().default(0),
    error: text(),
    receivedAt: moment('received_at').notNull(),
    doneAt: moment('done_at'),
  },
  (t) => [index('delivery_state').on(t.state, t.receivedAt), index('delivery_bytes').on(t.sha256)],
);
