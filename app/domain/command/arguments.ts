/** What follows the word of a command (CMD-1, CMD-2): quoted paths, keywords, ids, free text. */
import { patternFault } from '../policy/pattern.ts';
import { SPACES } from './lines.ts';
import { COMMANDS, type CommandName } from './table.ts';

/** A command with its arguments read; what a name means (a block, a path, a head) is known only by the run. */
export type Command =
  | { readonly name: 'status' | 'resume' | 'reload' }
  | { readonly name: 'help'; readonly topic: CommandName | null }
  | {
      readonly name: 'claim';
      readonly path: string;
      /** Null: the block that touched the path last. */
      readonly block: string | null;
      /** Path and block read as one path, where unquoted words could also mean that. */
      readonly whole: string | null;
    }
  | { readonly name: 'release'; readonly path: string }
  | {
      readonly name: 'rerun';
      readonly scope: 'all' | 'failed' | 'block' | 'path';
      readonly value: string | null;
    }
  | { readonly name: 'allow'; readonly scope: 'shown' | 'head' | 'author'; readonly sha: string | null }
  | { readonly name: 'approve' | 'override' | 'seal' | 'pause' | 'stop'; readonly text: string }
  | { readonly name: 'dismiss' | 'answer' | 'explain'; readonly finding: number; readonly text: string }
  | { readonly name: 'fix'; readonly target: string };

/** Arguments that could not be read: what is wrong and what is accepted. */
export interface ArgumentFault {
  readonly message: string;
  readonly accepted: string;
}

/** The command that these words make, or what is wrong with them. */
export function readArguments(name: CommandName, words: string): Command | ArgumentFault {
  const rest = trim(words);
  const fault = (message: string): ArgumentFault => ({ message, accepted: usage(name) });
  switch (name) {
    case 'status':
    case 'resume':
    case 'reload':
      return rest === '' ? { name } : fault('takes no arguments');
    case 'help': {
      const topic = rest.replace(/^\//, '').toLowerCase();
      if (topic === '') return { name, topic: null };
      return Object.hasOwn(COMMANDS, topic)
        ? { name, topic: topic as CommandName }
        : fault('that is not a command');
    }
    case 'claim': {
      const read = readPath(rest, true);
      return 'message' in read ? fault(read.message) : { name, ...read };
    }
    case 'release': {
      const read = readPath(rest, false);
      return 'message' in read ? fault(read.message) : { name, path: read.path };
    }
    case 'rerun': {
      const tokens = rest.split(SEPARATOR);
      const first = tokens[0]?.toLowerCase() ?? '';
      if (rest === '') return { name, scope: 'all', value: null };
      if ((first === 'all' || first === 'failed') && tokens.length === 1) {
        return { name, scope: first, value: null };
      }
      if (first === 'block' && tokens.length <= 2) {
        const block = tokens[1] ?? '';
        return BLOCK.test(block) ? { name, scope: 'block', value: block } : fault('names no block');
      }
      const read = readPath(rest, false);
      return 'message' in read ? fault(read.message) : { name, scope: 'path', value: read.path };
    }
    case 'allow': {
      if (rest === '') return { name, scope: 'shown', sha: null };
      if (rest.toLowerCase() === 'author') return { name, scope: 'author', sha: null };
      return /^[0-9a-f]{7,64}$/i.test(unquote(rest))
        ? { name, scope: 'head', sha: unquote(rest).toLowerCase() }
        : fault('that is neither a commit (7 to 64 hex digits) nor the word author');
    }
    case 'pause':
    case 'stop':
      return { name, text: rest };
    case 'approve':
    case 'override':
    case 'seal':
      return rest === '' ? fault('a reason is missing') : { name, text: rest };
    case 'dismiss':
    case 'answer':
    case 'explain': {
      const match = FINDING.exec(rest);
      const finding = Number(match?.[1] ?? Number.NaN);
      if (!Number.isSafeInteger(finding)) return fault('names no finding, such as F3');
      const text = trim(match?.[2] ?? '');
      if (name !== 'explain' && text === '') return fault('the text is missing');
      return name === 'explain' && text !== '' ? fault('takes one finding') : { name, finding, text };
    }
    case 'fix': {
      const target = unquote(rest);
      return BLOCK.test(target.toLowerCase()) && target !== ''
        ? { name, target }
        : fault('names no finding and no block');
    }
  }
}

/** How a command is written, without prefix: `claim PATH [BLOCK]`. */
export function usage(name: CommandName): string {
  return `${name} ${COMMANDS[name].syntax}`.trim();
}

const BLOCK = /^[a-z0-9][a-z0-9-]{0,63}$/;
const SEPARATOR = new RegExp(`[${SPACES}]+`);
const EDGES = new RegExp(`^[${SPACES}]+|[${SPACES}]+$`, 'g');
const FINDING = new RegExp(`^[Ff]?([0-9]{1,9})(?:[${SPACES}]+(.*))?$`, 's');
/** Characters that show nothing: in a path they would name another one than the reader sees. */
const INVISIBLE = /[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
const QUOTES: Readonly<Record<string, string>> = { '"': '"', "'": "'", '`': '`', '\u201c': '\u201d' };

function trim(text: string): string {
  return text.replace(EDGES, '');
}

function unquote(text: string): string {
  const close = QUOTES[text.charAt(0)];
  return close !== undefined && text.length >= 2 && text.endsWith(close) ? text.slice(1, -1) : text;
}

interface PathArgument {
  readonly path: string;
  readonly block: string | null;
  readonly whole: string | null;
}

/**
 * A path, quoted (`"…"`, `'…'`, back-ticks) or bare to the end of the line; then a block, where one may
 * follow. Bare words that end in what could be a block are read both ways: the run knows which path it has.
 */
function readPath(rest: string, mayHaveBlock: boolean): PathArgument | { readonly message: string } {
  if (rest === '') return { message: 'a path is missing' };
  const close = QUOTES[rest.charAt(0)];
  if (close !== undefined) {
    const quoted = readQuoted(rest, close);
    if (quoted === null) return { message: 'a quote is not closed' };
    const after = trim(quoted.after);
    if (after === '') return checked({ path: quoted.text, block: null, whole: null });
    if (!mayHaveBlock || !BLOCK.test(after) || quoted.after === after) {
      return { message: 'something follows the quoted path' };
    }
    return checked({ path: quoted.text, block: after, whole: null });
  }
  if (INVISIBLE.test(rest))
    return { message: 'the path holds an invisible character; quote it if it is meant' };
  const text = rest.replaceAll(new RegExp(`[${SPACES}]`, 'g'), ' ');
  const words = text.split(' ');
  const last = words.at(-1) ?? '';
  if (mayHaveBlock && words.length > 1 && BLOCK.test(last)) {
    return checked({ path: trim(text.slice(0, -last.length)), block: last, whole: text });
  }
  return checked({ path: text, block: null, whole: null });
}

function readQuoted(text: string, close: string): { readonly text: string; readonly after: string } | null {
  let value = '';
  for (let i = 1; i < text.length; i++) {
    const char = text.charAt(i);
    if (char === close) return { text: value, after: text.slice(i + 1) };
    const next = text.charAt(i + 1);
    if (close === '"' && char === '\\' && (next === '"' || next === '\\')) {
      value += next;
      i += 1;
    } else value += char;
  }
  return null;
}

function checked(argument: PathArgument): PathArgument | { readonly message: string } {
  const fault = patternFault(argument.path);
  return fault === null ? argument : { message: `the path ${fault}` };
}
