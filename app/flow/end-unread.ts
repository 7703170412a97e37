import { endUnleased, type NewTicket } from '../../db/store/ticket.ts';
import { encodePath } from '../domain/path.ts';
import type { RunUnit } from './append-rows.ts';
import type { Deps } from './deps.ts';

/** Why nobody reads it, and which step says so. */
export interface Unread {
  readonly end: 'route_invalid' | 'config-snapshot' | 'budget';
  readonly detail: string;
  readonly by: string;
}

/**
 * Ends a ticket that no runner has, with its row (TKT-2).
 *
 * Reads: nothing. Writes: ticket; row `ticket.ended`. Calls: nothing.
 */
export async function endUnread(
  deps: Deps,
  unit: RunUnit,
  ticket: Omit<NewTicket, 'state'>,
  { end, detail, by }: Unread,
): Promise<void> {
  const seq = unit.append('ticket.ended', {
    block: ticket.blockId,
    actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
    cause: { kind: 'schedule', id: by, sha256: null },
    data: {
      ticket: ticket.id,
      key: ticket.key,
      path: encodePath(ticket.path),
      block: ticket.blockId,
      round: ticket.round,
      grant: 0,
      level: ticket.level,
      policy: ticket.policyHash,
      end,
      final: true,
      verdict: null,
      partial: false,
      detail: detail.slice(0, 200),
      runner: null,
      sessions: [],
      findings: [],
      brief: null,
      result: null,
      ms: 0,
    },
  });
  await endUnleased(unit.tx, ticket.id, end, detail, seq);
}
