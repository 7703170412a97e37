/** Tickets of a run on a line of time: when each waited and when each was worked, by its table and its verified rows. */
import type { Reader } from '../../../db/client.ts';
import { listRunTickets, type TicketLine } from '../../../db/store/browse.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import { plain } from '../../domain/neutralise.ts';
import { encodePath, showPath } from '../../domain/path.ts';

/** One stretch of work on a ticket. */
export interface WorkView {
  readonly fromMs: number;
  /** Null: it is going on. */
  readonly toMs: number | null;
  /** `reviewed` or why it was not. */
  readonly end: string | null;
  readonly seq: number | null;
}

/** A ticket for its page. */
export interface TicketView extends Omit<TicketLine, 'path' | 'leasedAtMs'> {
  readonly path: string;
  readonly work: readonly WorkView[];
}

/** The tickets of a run, oldest first; the newest of `count`. */
export interface TicketsView {
  readonly tickets: readonly TicketView[];
  readonly count: number;
}

const MOST = 300;

/** The newest tickets with their work; `rows` are verified. */
export async function readTickets(
  reader: Reader,
  runId: string,
  rows: readonly AnyRow[],
): Promise<TicketsView> {
  const { tickets, count } = await listRunTickets(reader, runId, MOST);
  const work = new Map<string, WorkView[]>();
  for (const row of rows) {
    if (row.kind !== 'ticket.ended') continue;
    const toMs = Date.parse(row.at);
    const one = { fromMs: toMs - row.data.ms, toMs, end: row.data.end, seq: row.seq };
    work.set(row.data.ticket, [...(work.get(row.data.ticket) ?? []), one]);
  }
  return {
    count,
    tickets: tickets
      .map(({ path, leasedAtMs, ...ticket }) => ({
        ...ticket,
        path: plain(showPath(encodePath(path))),
        reason: ticket.reason === null ? null : plain(ticket.reason),
        work: [
          ...(work.get(ticket.id) ?? []),
          ...(leasedAtMs === null ? [] : [{ fromMs: leasedAtMs, toMs: null, end: null, seq: null }]),
        ],
      }))
      .reverse(),
  };
}
