/** What models say of things a ticket brought them: earlier findings, and the block's acceptance clauses. */
import * as z from 'zod';

/** A proposal about an earlier finding (RND-1). */
export const answerWord = z.strictObject({
  finding: z.int().min(1),
  proposal: z.enum(['fixed', 'persists', 'withdrawn']),
  reason: z.string().max(1000),
  reviewer: z.string().max(100),
  /** Whether the quote is nowhere in the file any more; null where the ticket brought none. */
  gone: z.boolean().nullable(),
});

/** Whether a clause is met, by its index in the ticket (REV-3); what a model could not tell is not said. */
export const clauseWord = z.strictObject({
  index: z.int().min(0),
  status: z.enum(['met', 'unmet']),
  reviewer: z.string().max(100),
});
