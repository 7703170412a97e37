import type { FactOf } from './fact.ts';
import type { FileFact } from './state.ts';

/**
 * Whether a result was made at another level (BLK-6) or of other content (TKT-1) than what was decided under
 * its key: a ticket is a table's word, which somebody may have changed, and such a result never counts.
 */
export function isOfOther(
  { level, blob }: Pick<FactOf<'ticket.ended'>['data'], 'level' | 'blob'>,
  decided: Pick<FileFact, 'level' | 'blob'> | undefined,
): boolean {
  if (decided === undefined) return false;
  const read = blob ?? decided.blob;
  return decided.level !== level || decided.blob.base !== read.base || decided.blob.head !== read.head;
}
