/** How states, times and numbers read on the pages. */

/** A tone of the style sheet, and the shape that says the same without colour. */
export type Tone = 'ok' | 'bad' | 'wait' | 'busy' | 'off';

/** A state as a reader sees it. */
export interface Word {
  readonly text: string;
  readonly tone: Tone;
}

const CONCLUSIONS: Readonly<Record<string, Word>> = {
  success: { text: 'Passed', tone: 'ok' },
  failure: { text: 'Failed', tone: 'bad' },
  action_required: { text: 'Needs a person', tone: 'wait' },
  in_progress: { text: 'Under way', tone: 'busy' },
  queued: { text: 'Draft', tone: 'off' },
  cancelled: { text: 'Superseded', tone: 'off' },
};

/** A verdict; null: none yet. */
export function conclusionWord(conclusion: string | null): Word {
  if (conclusion === null) return { text: 'Not decided yet', tone: 'busy' };
  return CONCLUSIONS[conclusion] ?? { text: conclusion, tone: 'off' };
}

const STANDINGS: Readonly<Record<string, Word>> = {
  counted: { text: 'reviewed', tone: 'ok' },
  pending: { text: 'waits for review', tone: 'busy' },
  unavailable: { text: 'could not be reviewed', tone: 'bad' },
  unreviewed: { text: 'recorded, not reviewed', tone: 'off' },
  keyless: { text: 'no reviewer for it', tone: 'bad' },
};

/** How a path stands. */
export function standingWord(standing: string): Word {
  return STANDINGS[standing] ?? { text: standing, tone: 'off' };
}

const BLOCKS: Readonly<Record<string, Word>> = {
  passed: { text: 'passed', tone: 'ok' },
  reviewing: { text: 'under review', tone: 'busy' },
  blocked: { text: 'blocked', tone: 'bad' },
  held: { text: 'held', tone: 'wait' },
  waiting: { text: 'waits', tone: 'wait' },
};

/** A block's verdict. */
export function blockWord(verdict: string): Word {
  return BLOCKS[verdict] ?? { text: verdict, tone: 'off' };
}

const CLASSES: Readonly<Record<string, Tone>> = {
  broken: 'bad',
  held: 'wait',
  machine: 'busy',
  wrong: 'bad',
  person: 'wait',
};

/** The tone of a reason's class. */
export function classTone(of: string): Tone {
  return CLASSES[of] ?? 'off';
}

const SEVERITIES: Readonly<Record<string, Tone>> = { critical: 'bad', high: 'bad', medium: 'wait' };

/** The tone of a severity. */
export function severityTone(severity: string): Tone {
  return SEVERITIES[severity] ?? 'off';
}

/** How a ticket ended, or stands. */
export function ticketWord(ticket: { readonly state: string; readonly end: string | null }): Word {
  if (ticket.state === 'ended')
    return ticket.end === 'reviewed'
      ? { text: 'reviewed', tone: 'ok' }
      : { text: ticket.end ?? 'ended', tone: 'bad' };
  if (ticket.state === 'leased') return { text: 'with a runner', tone: 'busy' };
  if (ticket.state === 'pending') return { text: 'waits', tone: 'busy' };
  if (ticket.state === 'held') return { text: 'held', tone: 'wait' };
  return { text: ticket.state, tone: 'off' };
}

/** `3 files`, `1 file`. */
export function count(n: number, noun: string): string {
  return `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
}

/** Digits in groups of three. */
export function number(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** A length of time in its two largest units. */
export function duration(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s === 0) return '0 s';
  if (s < 1) return `${Math.round(Math.max(0, ms))} ms`;
  if (s < 10) return `${Number(s.toFixed(1))} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const whole = Math.round(s);
  const [d, h, m] = [Math.floor(whole / 86_400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (d > 0) return h === 0 ? `${d} d` : `${d} d ${h} h`;
  if (h > 0) return m === 0 ? `${h} h` : `${h} h ${m} min`;
  return whole % 60 === 0 ? `${m} min` : `${m} min ${whole % 60} s`;
}

/** A moment against another one, roughly. */
export function ago(ms: number, nowMs: number): string {
  const past = nowMs - ms;
  const rough = roughly(Math.abs(past));
  if (rough === null) return 'just now';
  return past >= 0 ? `${rough} ago` : `in ${rough}`;
}

function roughly(ms: number): string | null {
  const s = Math.round(ms / 1000);
  if (s < 5) return null;
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129_600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} days`;
}

/** A moment in full, in UTC. */
export function moment(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Money in millionths of its unit. */
export function money(micro: number): string {
  const units = micro / 1_000_000;
  return units.toFixed(units !== 0 && units < 0.1 ? 4 : 2);
}

/** The middle of a text that is too long gives way: paths differ at both ends. */
export function middle(text: string, most: number): string {
  const letters = Array.from(text);
  if (letters.length <= most) return text;
  const tail = Math.ceil((most - 1) * 0.6);
  return `${letters.slice(0, most - 1 - tail).join('')}…${letters.slice(-tail).join('')}`;
}
