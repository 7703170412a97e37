/** What one event of an agent's log means, whichever agent wrote it (REV-7). */

/** A JSON object as an agent printed it: nothing about it is believed. */
export type LogEvent = Readonly<Record<string, unknown>>;

/** Tokens and cost as an agent counts them; cost in millionths of a dollar. */
export type Usage = Readonly<{ tokensIn: number; tokensOut: number; costMicro: number }>;

/** The meaning of an event. `act` is the one that counts: the session did something. */
export type Step =
  /** The session began; `unsafe` says why it cannot be held without tools. */
  | Readonly<{ kind: 'start'; unsafe: string | null }>
  | Readonly<{ kind: 'say'; text: string }>
  /** A tool event; `entry` names it. */
  | Readonly<{ kind: 'act'; entry: string }>
  /** The session ended by itself; `text` is its answer where the event brings it. */
  | Readonly<{ kind: 'end'; finish: string; text: string | null; usage: Usage }>
  /** The provider or the program failed; not `sure` where the program may go on after it. */
  | Readonly<{ kind: 'fail'; sure: boolean; status: number | null; code: string | null }>
  | Readonly<{ kind: 'skip' }>
  /** No event that this agent is known to print. */
  | Readonly<{ kind: 'unknown'; why: string }>;

/** Reads one event of an agent's log. */
export type EventReader = (event: LogEvent) => readonly Step[];

/** The value as an object; null for everything else. */
export function objectOf(value: unknown): LogEvent | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as LogEvent) : null;
}

/** The value as a string; null for everything else. */
export function stringOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** The value as a count; 0 for everything that is none. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0
    ? Math.min(Math.round(value), 2 ** 40)
    : 0;
}

/** An HTTP status; null for everything that is none. */
export function statusOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 599 ? value : null;
}

/** A short name out of a log, as an entry shows it: one line, at most 120 characters. */
export function shown(...parts: readonly (string | null)[]): string {
  const text = parts.filter((part) => part !== null && part !== '').join(': ');
  const line = text.replace(/\s+/g, ' ').trim().toWellFormed();
  return line.length <= 120 ? line : `${line.slice(0, 119).toWellFormed()}…`;
}
