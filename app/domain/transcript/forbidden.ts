/**
 * What a session did, matched with what it must not do (REV-7): for sessions that have tools. A log that
 * is not structured says nothing of what was done, so in it every mention counts. One pass over the log.
 */
import { type AgentKind, type LogLine, linesOfLog } from '../transcript.ts';
import { type LogEvent, objectOf, shown, stringOf } from './step.ts';

/**
 * One entry of the forbidden list. `prefix`: a command begins so. `any_prefix`: a command or what follows
 * a separator in it begins so. `flag`: an argument is it, alone or with a value. `contains`: anywhere in
 * what was done. `path`: it, or something below it, is named. `path_write`: the same, written.
 */
export type Forbidden = Readonly<{
  kind: 'prefix' | 'any_prefix' | 'flag' | 'contains' | 'path' | 'path_write';
  value: string;
}>;
/** A thing that was done and is forbidden: the entry of the list, the line of the log, and what was done. */
export type ForbiddenHit = Readonly<{ entry: Forbidden; line: number; deed: string }>;

/** What one event did: a text to look in, and the paths that it wrote. */
type Deed = Readonly<{ text: string; written: readonly string[] }>;

/** Characters that end a word of a command line. */
const SEPARATOR = /[\s;|&()<>`"'$={},[\]]/;

/** The hits of a log, in its order; each entry of the list once a line. */
export function scanForbidden(kind: AgentKind, log: string, list: readonly Forbidden[]): ForbiddenHit[] {
  const lines = [...linesOfLog(kind, log)];
  const structured =
    lines.every((one) => one.event !== null && stringOf(one.event['type']) !== null) &&
    (kind !== 'codex' || lines[0] === undefined || lines[0].event?.['type'] === 'thread.started');
  return lines.flatMap((one) => {
    const deeds = structured ? deedsOf(kind, one) : [{ text: one.text, written: [] }];
    return list.flatMap((entry): ForbiddenHit[] => {
      const deed = deeds.find((done) =>
        structured ? matches(entry, done) : done.text.includes(entry.value),
      );
      return deed === undefined ? [] : [{ entry, line: one.line, deed: shown(deed.text) }];
    });
  });
}

function deedsOf(kind: AgentKind, { event, steps }: LogLine): readonly Deed[] {
  if (event === null || !steps.some((step) => step.kind === 'act')) return [];
  if (kind !== 'codex') return [{ text: textOf(event), written: [] }];
  const item = objectOf(event['item']);
  if (item === null) return [];
  if (item['type'] === 'file_change' && Array.isArray(item['changes']))
    return item['changes'].map((change): Deed => {
      const path = stringOf(objectOf(change)?.['path']);
      return path === null ? { text: textOf(change), written: [] } : { text: path, written: [path] };
    });
  const command = item['type'] === 'command_execution' ? stringOf(item['command']) : null;
  // what a command printed is what it read, not what it did
  const { aggregated_output: _, ...rest } = item;
  return [{ text: command ?? textOf(rest), written: [] }];
}

/** Every text of a value, one after another: an escape in JSON must not hide a word. */
function textOf(value: unknown): string {
  const texts: string[] = [];
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === 'string') texts.push(next);
    else if (Array.isArray(next)) for (const one of next) waiting.push(one);
    else for (const [key, one] of Object.entries(objectOf(next) ?? ({} as LogEvent))) waiting.push(one, key);
  }
  return texts.reverse().join('\n');
}

function matches({ kind, value }: Forbidden, { text, written }: Deed): boolean {
  if (value === '') return false;
  switch (kind) {
    case 'prefix':
      return text.trimStart().startsWith(value);
    case 'any_prefix':
      return somewhere(text, value, (before) => before === undefined || SEPARATOR.test(before));
    case 'flag':
      return somewhere(
        text,
        value,
        (before, after) =>
          (before === undefined || SEPARATOR.test(before)) && (after === undefined || SEPARATOR.test(after)),
      );
    case 'contains':
      return text.includes(value);
    case 'path':
      return somewhere(text, trimmed(value), (before, after) => isEdge(before) && isEdge(after));
    case 'path_write':
      return written.some((path) => {
        const plain = trimmed(path.replace(/^(?:\.\/)+/, ''));
        return (
          plain === trimmed(value) ||
          plain.startsWith(`${trimmed(value)}/`) ||
          plain.endsWith(`/${trimmed(value)}`) ||
          plain.includes(`/${trimmed(value)}/`)
        );
      });
  }
}

const trimmed = (path: string): string => path.replace(/\/+$/, '');
const isEdge = (character: string | undefined): boolean =>
  character === undefined || character === '/' || SEPARATOR.test(character);

/** Whether a value stands somewhere in a text between characters that fit. */
function somewhere(
  text: string,
  value: string,
  fits: (before: string | undefined, after: string | undefined) => boolean,
): boolean {
  for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + 1))
    if (fits(text[at - 1], text[at + value.length])) return true;
  return false;
}
