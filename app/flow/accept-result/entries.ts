/** The policy entries under which findings were raised, as the tickets that raised them have them (RND-1). */
import type { Reader } from '../../../db/client.ts';
import type { StoredFinding } from '../../../db/store/finding.ts';
import { findTicket } from '../../../db/store/ticket.ts';
import type { TicketSpec } from '../../domain/review.ts';

/** A finding with the reviewer entry that raised it; undefined when its ticket does not say. */
export type FindingWithEntry = StoredFinding & {
  readonly entry: TicketSpec['reviewers'][number] | undefined;
};

/** Adds to each finding the entry that raised it; only commands' are looked up, since nothing hangs on a model's. */
export async function withEntries(
  reader: Reader,
  findings: readonly StoredFinding[],
): Promise<FindingWithEntry[]> {
  const found: FindingWithEntry[] = [];
  for (const one of findings) {
    const raisedBy = one.command ? await findTicket(reader, one.ticketId) : null;
    found.push({ ...one, entry: raisedBy?.spec.reviewers.find((entry) => entry.name === one.reviewer) });
  }
  return found;
}
