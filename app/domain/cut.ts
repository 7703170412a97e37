/** Which tickets a head wants and what becomes of those there are (TKT-1…TKT-3, TKT-5): pure. */
import type { TicketState } from './ticket.ts';

/** A changed path that is to be reviewed. Paths are their `pathKey`. */
export interface WantedReview {
  readonly path: string;
  readonly block: string;
  readonly key: string;
  /** Whether its block waits for another one (LSE-1): then nobody may lease it. */
  readonly waits: boolean;
  /** The row of the newest open finding of this path that was raised on other content; null: none. */
  readonly foreignSeq: number | null;
}

/** A ticket there is: active ones (pending, leased, held) and those that are over under a wanted key. */
export interface KnownTicket {
  readonly id: string;
  readonly path: string;
  readonly block: string;
  readonly key: string;
  readonly round: number;
  readonly state: TicketState;
  readonly end: string | null;
  readonly lease: string | null;
  /** The row of its end; null while it has none. */
  readonly seq: number | null;
}

/** What a person asks to be reviewed again (CMD-1). A path is its `pathKey`. */
export type Rerun =
  | { readonly scope: 'all' | 'failed' }
  | { readonly scope: 'block' | 'path'; readonly value: string }
  /** A finding of the path was answered: also while its file is being reviewed by a runner that has not heard it. */
  | { readonly scope: 'answer'; readonly value: string };

/** What to do. */
export interface Cut<W extends WantedReview> {
  /** Tickets to open, in the order given; `held` waits for the leased one of its path, or for another block. */
  readonly open: readonly { readonly wanted: W; readonly round: number; readonly held: boolean }[];
  /** Pending or held tickets that nobody wants any more. */
  readonly drop: readonly {
    readonly id: string;
    readonly state: 'superseded' | 'cancelled';
    readonly reason: string;
  }[];
  /** Pending tickets whose block waits now, and held ones whose block waits no longer. */
  readonly hold: readonly string[];
  readonly free: readonly string[];
  /** Leases on unwanted content: recalled where no session was admitted. */
  readonly recall: readonly string[];
}

/**
 * TKT-3: the same review key stands, whatever became of it; other content of a pending path replaces
 * it, of a leased path it is held, so a file is never with two runners and a burst of pushes costs one
 * review. A rerun opens the next round of what is over; what is active is not asked for twice. So does
 * a finding of other content that its reviewer never heard of: a force push back would else show it for ever.
 */
export function planCut<W extends WantedReview>(
  wanted: readonly W[],
  known: readonly KnownTicket[],
  rerun: Rerun | null,
): Cut<W> {
  const active = new Map<string, KnownTicket[]>();
  const over = new Map<string, KnownTicket[]>();
  for (const ticket of known) {
    const [map, name] = isActive(ticket) ? [active, ticket.path] : [over, ticket.key];
    const list = map.get(name);
    if (list === undefined) map.set(name, [ticket]);
    else list.push(ticket);
  }
  const open: { wanted: W; round: number; held: boolean }[] = [];
  const drop: { id: string; state: 'superseded' | 'cancelled'; reason: string }[] = [];
  const hold: string[] = [];
  const free: string[] = [];
  const recall: string[] = [];
  const paths = new Set<string>();
  for (const one of wanted) {
    paths.add(one.path);
    const mine = active.get(one.path) ?? [];
    for (const ticket of mine) {
      if (ticket.key === one.key) continue;
      if (ticket.state === 'leased') {
        if (ticket.lease !== null) recall.push(ticket.lease);
      } else drop.push({ id: ticket.id, state: 'superseded', reason: 'new_content' });
    }
    const leased = mine.some((ticket) => ticket.state === 'leased');
    const same = mine.find((ticket) => ticket.key === one.key);
    if (same !== undefined) {
      if (same.state === 'pending' && one.waits) hold.push(same.id);
      // a held one whose path is leased goes on when that lease ends
      else if (same.state === 'held' && !one.waits && !leased) free.push(same.id);
      const next = unheardAnswer(one, mine, rerun) && !one.waits;
      if (next)
        open.push({
          wanted: one,
          round: newestRound([...mine, ...(over.get(one.key) ?? [])]) + 1,
          held: true,
        });
      continue;
    }
    // the end of the lease would bring a held one forward, whatever its block waits for
    if (one.waits && leased) continue;
    const before = over.get(one.key) ?? [];
    const ended = before.filter((ticket) => ticket.state === 'ended');
    if (ended.length > 0 && !asks(rerun, one, ended) && !unheard(one, ended)) continue;
    const round = ended.length > 0 ? newestRound(ended) + 1 : before.length > 0 ? newestRound(before) : 0;
    open.push({ wanted: one, round, held: leased || one.waits });
  }
  for (const [path, tickets] of active) {
    if (paths.has(path)) continue;
    for (const ticket of tickets) {
      if (ticket.state !== 'leased')
        drop.push({ id: ticket.id, state: 'cancelled', reason: 'left_the_change' });
      else if (ticket.lease !== null) recall.push(ticket.lease);
    }
  }
  return { open, drop, hold, free, recall };
}

function newestRound(tickets: readonly KnownTicket[]): number {
  return Math.max(...tickets.map((ticket) => ticket.round));
}

/** An answer that came while a runner had the file: it was told of the findings when it leased it. */
function unheardAnswer(wanted: WantedReview, mine: readonly KnownTicket[], rerun: Rerun | null): boolean {
  if (rerun?.scope !== 'answer' || rerun.value !== wanted.path) return false;
  return mine.every((ticket) => ticket.state === 'leased');
}

function isActive(ticket: KnownTicket): boolean {
  return ticket.state === 'pending' || ticket.state === 'leased' || ticket.state === 'held';
}

function asks(rerun: Rerun | null, wanted: WantedReview, ended: readonly KnownTicket[]): boolean {
  if (rerun === null) return false;
  switch (rerun.scope) {
    case 'all':
      return true;
    case 'block':
      return wanted.block === rerun.value;
    case 'path':
    case 'answer':
      return wanted.path === rerun.value;
    case 'failed': {
      const newest = ended.reduce((a, b) => (b.round > a.round ? b : a));
      return newest.end !== 'reviewed';
    }
  }
}

function unheard(wanted: WantedReview, ended: readonly KnownTicket[]): boolean {
  const { foreignSeq } = wanted;
  if (foreignSeq === null) return false;
  return ended.every((ticket) => ticket.end === 'reviewed' && ticket.seq !== null && ticket.seq < foreignSeq);
}

/** The order of a ticket within its run: the n-th of its block (from 0), blocks in their order (LSE-1). */
export function turnOf(nth: number, blockPosition: number): number {
  return Math.min(nth, 1_000_000) * 1024 + Math.min(Math.max(blockPosition, 0), 1023);
}
