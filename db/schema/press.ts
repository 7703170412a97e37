/** Buttons of check runs that were pressed (PUB-6). */
import { bigint, boolean, pgTable, text } from 'drizzle-orm/pg-core';
import { bigintId, moment } from './columns.ts';

/** One press, by the delivery that told of it; as a command its comment id is minus `id`, which no comment of GitHub's has. */
export const press = pgTable('press', {
  id: bigint({ mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  delivery: text().notNull().unique(),
  repositoryId: bigintId('repository_id').notNull(),
  /** The commit and the name of the check run whose button it was. */
  sha: text().notNull(),
  name: text().notNull(),
  action: text().notNull(),
  userId: bigintId('user_id').notNull(),
  login: text().notNull(),
  bot: boolean().notNull(),
  pressedAt: moment('pressed_at').notNull(),
});
