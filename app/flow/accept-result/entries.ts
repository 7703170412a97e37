/** The policy entries under which findings were raised, as the tickets that raised them have them (RND-1). */
import type { Reader } from '../../../db/client.ts';
import type { StoredFinding } from '../../../db/store/finding.ts';
import { findTicket, type Ticket } from '../../../db/store/ticket.ts';
import { encodePath, pathKey } from '../../domain/path.ts';
import type { TicketSpec } from '../../domain/review.ts';

/** A finding with the reviewer entry that raised it; undefined when its ticket does not say. */
export type FindingWithEntry = StoredFinding & {
  readonly entry: TicketSpec['reviewers'][number] | undefined;
};

/** Adds to each finding the entry that raised it: of a command what it looked for, of a model which one it is. */
export async function withEntries(
  reader: Reader,
  findings: readonly StoredFinding[],
): Promise<FindingWithEntry[]> {
  const found: FindingWithEntry[] = [];
  for (const one of findings) {
    found.push({ ...one, entry: entryOf(await findTicket(reader, one.ticketId), one) });
  }
  return found;
}

/** A command that read the finding at another path may just not look for it here, so its entry there says nothing (REV-5). */
function entryOf(ticket: Ticket | null, finding: StoredFinding): FindingWithEntry['entry'] {
  if (ticket === null) return undefined;
  if (!finding.command)
    return [...ticket.spec.reviewers, ...ticket.spec.fallbacks].find((one) => one.name === finding.reviewer);
  if (pathKey(encodePath(ticket.path)) !== pathKey(finding.path)) return undefined;
  return ticket.spec.reviewers.find((entry) => entry.name === finding.reviewer);
}
