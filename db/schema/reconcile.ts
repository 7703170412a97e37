/** How far reconciliation has read what GitHub lists (OPS-2). */
import { pgTable, text } from 'drizzle-orm/pg-core';
import { moment } from './columns.ts';

/** One reading position by name: `deliveries`, or `comments/<run id>`. */
export const readCursor = pgTable('read_cursor', {
  name: text().primaryKey(),
  value: text().notNull(),
  updatedAt: moment('updated_at').notNull(),
});
