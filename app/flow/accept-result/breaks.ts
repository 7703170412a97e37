/** Keeps what sessions did that no reviewer may do, as rows that hold the gate until a person clears them (REV-7). */
import type { Ticket } from '../../../db/store/ticket.ts';
import type { Actor, Cause } from '../../domain/ledger/row-fields.ts';
import { redactor } from '../../domain/redact.ts';
import { clip } from '../../domain/result.ts';
import type { RuleBreak } from '../../domain/session-log.ts';
import type { RunUnit } from '../append-rows.ts';

/** Rows of one result: the first alone holds the gate. */
const MOST_BREAKS = 4;

/** Appends a row `rule.break` for each session that broke the rule. */
export function appendBreaks(
  unit: RunUnit,
  ticket: Ticket,
  breaks: readonly RuleBreak[],
  by: { readonly actor: Actor; readonly cause: Cause },
): void {
  for (const { session, detail } of breaks.slice(0, MOST_BREAKS))
    unit.append('rule.break', {
      block: ticket.blockId,
      ...by,
      data: {
        ticket: ticket.id,
        session: clip(session, 64) || 'none',
        detail: clip(redactor().redact(detail), 180) || 'a tool was used',
      },
    });
}
