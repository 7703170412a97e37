/** Where tickets stand on the line of time: computed here, drawn in timeline-figure.tsx. */
import type { TicketView } from '../../../flow/read-run/tickets.ts';
import { duration } from '../words.ts';

/** One ticket's line. */
export interface TimeLine {
  readonly ticket: TicketView;
  readonly y: number;
  /** When it waited, and its stretches of work, as positions. */
  readonly waits: readonly { readonly from: number; readonly to: number }[];
  readonly work: readonly {
    readonly from: number;
    readonly to: number;
    readonly end: string | null;
    readonly ms: number;
  }[];
}

/** The picture; all lengths in units of its view box. */
export interface Timeline {
  readonly width: number;
  readonly height: number;
  readonly lines: readonly TimeLine[];
  readonly ticks: readonly { readonly x: number; readonly label: string }[];
  readonly fromMs: number;
  readonly toMs: number;
  /** Tickets that are not drawn. */
  readonly more: number;
}

/** Left and right edge of the axis, and the height of a line and of the axis' own text. */
export const TIME = { width: 960, left: 300, right: 940, line: 24, top: 30 } as const;

const MOST = 60;
const STEPS_S = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800,
  604_800,
];

/** Lays out the last tickets, oldest first; what goes on ends at `nowMs`. Null: there is none. */
export function layTimeline(tickets: readonly TicketView[], nowMs: number): Timeline | null {
  const drawn = tickets.slice(-MOST);
  if (drawn.length === 0) return null;
  const starts = drawn.flatMap((ticket) => [ticket.queuedAtMs, ...ticket.work.map((one) => one.fromMs)]);
  const ends = drawn.map((ticket) => endOf(ticket, nowMs));
  const fromMs = Math.min(...starts);
  const toMs = Math.max(fromMs + 1, ...ends);
  const x = (ms: number) =>
    TIME.left +
    ((Math.min(Math.max(ms, fromMs), toMs) - fromMs) / (toMs - fromMs)) * (TIME.right - TIME.left);
  return {
    width: TIME.width,
    height: TIME.top + drawn.length * TIME.line + 6,
    fromMs,
    toMs,
    more: tickets.length - drawn.length,
    ticks: ticksOf(toMs - fromMs).map((ms) => ({
      x: x(fromMs + ms),
      label: ms === 0 ? '0' : `+${duration(ms)}`,
    })),
    lines: drawn.map((ticket, index) => ({
      ticket,
      y: TIME.top + (index + 0.5) * TIME.line,
      waits: waitsOf(ticket, nowMs).map(({ from, to }) => ({ from: x(from), to: x(to) })),
      work: ticket.work.map((one) => ({
        from: x(one.fromMs),
        to: x(one.toMs ?? nowMs),
        end: one.end,
        ms: (one.toMs ?? nowMs) - one.fromMs,
      })),
    })),
  };
}

/** Between the stretches of work it waited, and before the first; after the last one only what is not over. */
function waitsOf(ticket: TicketView, nowMs: number): { from: number; to: number }[] {
  const waits: { from: number; to: number }[] = [];
  let from = ticket.queuedAtMs;
  for (const one of ticket.work) {
    if (one.fromMs > from) waits.push({ from, to: one.fromMs });
    from = Math.max(from, one.toMs ?? nowMs);
  }
  const open = ticket.state === 'pending' || ticket.state === 'held';
  const over = ticket.work.length === 0 ? ticket.endedAtMs : null;
  const to = open ? nowMs : over;
  if (to !== null && to > from) waits.push({ from, to });
  return waits;
}

function endOf(ticket: TicketView, nowMs: number): number {
  const open = ticket.state === 'pending' || ticket.state === 'held' || ticket.state === 'leased';
  if (open) return nowMs;
  return Math.max(ticket.endedAtMs ?? 0, ticket.queuedAtMs, ...ticket.work.map((one) => one.toMs ?? nowMs));
}

/** Round times in `ms`, from 0, at most seven. */
export function ticksOf(ms: number): number[] {
  const step = (STEPS_S.find((one) => ms / (one * 1000) <= 6) ?? Math.ceil(ms / 6000)) * 1000;
  return Array.from({ length: Math.floor(ms / step) + 1 }, (_, index) => index * step);
}
