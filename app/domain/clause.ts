/** What models say of a ticket's acceptance clauses (REV-3, BLK-3). Pure. */

/** A clause by its index in the ticket, as a model says it. */
export interface ClauseWord {
  readonly index: number;
  readonly status: 'met' | 'unmet';
  readonly reviewer: string;
}

/** One word a clause, of models whose session completed: who denies it has the word. A clause that the ticket has not is none. */
export function clauseWords(
  clauses: readonly string[],
  words: readonly ClauseWord[],
  complete: ReadonlySet<string>,
): { readonly clause: string; readonly status: 'met' | 'unmet' }[] {
  return clauses.flatMap((clause, index) => {
    const said = words.filter((word) => word.index === index && complete.has(word.reviewer));
    if (said.length === 0) return [];
    return [{ clause, status: said.some((word) => word.status === 'unmet') ? 'unmet' : 'met' }];
  });
}
