/** What a resident runner prints: one JSON line each, as the server does; nothing of GitHub's commands, and no secret. */
import { type Log, printable } from '../log.ts';

/** A log of JSON lines; what is masked shows as `***` in everything that is printed after it. */
export function createResidentLog(write: (text: string) => void): Log {
  const hidden = new Set<string>();
  const clean = (text: string): string => {
    let shown = printable(text);
    for (const value of hidden) shown = shown.replaceAll(value, '***');
    return shown;
  };
  const say = (level: 'info' | 'warn' | 'error', event: string, fields: Record<string, unknown>): void =>
    write(`${JSON.stringify({ level, time: new Date().toISOString(), ...fields, event })}\n`);
  return {
    line: (text) => say('info', 'runner', { text: clean(text) }),
    error: (text) => say('error', 'runner', { text: clean(text) }),
    warning: (text) => say('warn', 'runner', { text: clean(text) }),
    group: (title, lines) => say('info', 'ticket', { title: clean(title), lines: lines.map(clean) }),
    notice: (title, text) => say('info', 'runner', { title: clean(title), text: clean(text) }),
    open: (title) => say('info', 'runner', { text: clean(title) }),
    close: () => undefined,
    raw: (line) => say('info', 'runner', { text: clean(line) }),
    mask: (value) => {
      // tokens are short-lived and many: the newest are what a line could show
      for (const line of value.split(/[\r\n]+/)) if (line.trim().length >= 8) hidden.add(line);
      for (const old of hidden) {
        if (hidden.size <= 2000) break;
        hidden.delete(old);
      }
    },
  };
}
