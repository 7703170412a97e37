/** Free text that rows refer to by SHA-256, erasable while the ledger stays whole (LED-2, LED-17). */
import { index, pgTable } from 'drizzle-orm/pg-core';
import { bytea, moment } from './columns.ts';

/** One text by the SHA-256 of its UTF-8 bytes; `content` is null once erased. */
export const storedText = pgTable(
  'stored_text',
  {
    sha256: bytea().primaryKey(),
    content: bytea(),
    /** When it was last put: a text in use does not age. */
    storedAt: moment('stored_at').notNull(),
    erasedAt: moment('erased_at'),
  },
  (t) => [index('stored_text_age').on(t.storedAt)],
);
