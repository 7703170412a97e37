/** Which provider a reviewer spends the capacity of (LSE-1, POOL-3). */
import type { TicketReviewer } from './review.ts';

/** The provider of every command: it has no slots and is never settled. */
export const COMMAND = 'command';

/**
 * The provider of a reviewer: its `uses`, and for a reviewer with a `base_url` of its own the host
 * too, since two servers that speak one protocol fail apart. At most 60 characters.
 */
export function providerOf(reviewer: Pick<TicketReviewer, 'uses' | 'base_url'>): string {
  if (reviewer.uses === 'command') return COMMAND;
  if (reviewer.base_url === undefined) return reviewer.uses;
  const host = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#]+)/i.exec(reviewer.base_url)?.[1] ?? '';
  return host === '' ? reviewer.uses : `${reviewer.uses}@${host.toLowerCase()}`.slice(0, 60);
}
