/**
 * Commands in comments (CMD-1, CMD-2): which lines are commands, and what they say. Pure; the same
 * parser is run over our own replies, which must hold none.
 */
import { type ArgumentFault, type Command, readArguments } from './command/arguments.ts';
import { readLines, SPACES } from './command/lines.ts';
import { COMMAND_NAMES, type CommandName, isCommandName } from './command/table.ts';
import { nearest } from './policy/explain.ts';

/** How this repository addresses commands. */
export interface Addressing {
  /** The policy's `commands.prefix`; empty: the bare command. */
  readonly prefix: string;
  /** The App's slug, whose mention addresses a command as well; null where it is not known. */
  readonly mention: string | null;
}

/** A command of a comment; `index` counts from 0 in the order of the lines (CMD-4). */
export interface ParsedCommand {
  readonly index: number;
  readonly line: number;
  readonly name: CommandName;
  readonly command: Command | ArgumentFault;
}

/** A word that was addressed to us and is no command. */
export interface NearMiss {
  readonly line: number;
  readonly word: string;
  /** The command it may mean; null when none is near. */
  readonly nearest: CommandName | null;
}

/** What a comment asks of us. */
export interface ParsedComment {
  readonly commands: readonly ParsedCommand[];
  readonly nearMisses: readonly NearMiss[];
  /**
   * Something that looks like a command and is none, where no command was found: a lone back-ticked
   * one, one that renders inside a quote, or one with a slip of one letter. It gets a reaction.
   */
  readonly hint?: 'backticked' | 'beside_quote' | 'misspelt';
}

/** Most commands of one comment; what follows is not read. */
export const MOST_COMMANDS = 20;
/** Most characters of a comment that are read: GitHub's own limit. */
const MOST_CHARACTERS = 65_536;

/** Reads a comment. Never throws; linear in its length. */
export function parseComment(body: string, addressing: Addressing): ParsedComment {
  const commands: ParsedCommand[] = [];
  const nearMisses: NearMiss[] = [];
  let hint: ParsedComment['hint'];
  const address = addressOf(addressing);
  for (const line of readLines(body.slice(0, MOST_CHARACTERS))) {
    if (commands.length >= MOST_COMMANDS) break;
    if (line.role !== 'text' && line.role !== 'beside_quote') continue;
    const lone = LONE.exec(line.text)?.[2];
    if (lone !== undefined) {
      if (isKnown(read(lone, address))) hint ??= 'backticked';
      continue;
    }
    const found = read(line.text, address);
    if (found === null) continue;
    if (line.role === 'beside_quote') {
      if (isKnown(found)) hint ??= 'beside_quote';
    } else if (isCommandName(found.word)) {
      const command = readArguments(found.word, found.rest);
      commands.push({ index: commands.length, line: line.number, name: found.word, command });
    } else if (found.addressed) {
      const near = nearest(found.word, COMMAND_NAMES) as CommandName | null;
      if (near !== null || found.slash)
        nearMisses.push({ line: line.number, word: found.word, nearest: near });
    } else if (found.word.length >= 4 && nearest(found.word, COMMAND_NAMES) !== null) {
      hint ??= 'misspelt';
    }
  }
  const silent = commands.length === 0 && nearMisses.length === 0;
  return { commands, nearMisses, ...(silent && hint !== undefined ? { hint } : {}) };
}

interface Addressed {
  /** Lower case. */
  readonly word: string;
  readonly rest: string;
  /** Whether a prefix or our mention addressed us, as against a bare slash. */
  readonly addressed: boolean;
  readonly slash: boolean;
}

const LONE = new RegExp(`^(\`+)([^\`]+)\\1[${SPACES}]*$`);

interface Address {
  readonly slash: RegExp;
  readonly mention: RegExp | null;
  readonly prefixed: boolean;
}

function addressOf({ prefix, mention }: Addressing): Address {
  const word = `([A-Za-z][A-Za-z-]{0,30})(?=[${SPACES}]|$)(.*)$`;
  const lead = prefix === '' ? '' : `${literal(prefix)}[${SPACES}]+`;
  return {
    slash: new RegExp(`^()/${lead}${word}`, 'is'),
    mention:
      mention === null
        ? null
        : new RegExp(`^@${literal(mention)}(?:\\[bot\\])?[:,]?[${SPACES}]+(/?)${word}`, 'is'),
    prefixed: prefix !== '',
  };
}

const literal = (text: string) => text.replaceAll(/[^A-Za-z0-9]/g, '\\$&');

function read(text: string, address: Address): Addressed | null {
  const slash = address.slash.exec(text);
  if (slash !== null) return addressed(slash, address.prefixed, true);
  const mention = address.mention?.exec(text) ?? null;
  return mention === null ? null : addressed(mention, true, mention[1] === '/');
}

function addressed(match: RegExpExecArray, byName: boolean, slash: boolean): Addressed {
  const rest = withoutComment(match[3] ?? '');
  return { word: (match[2] ?? '').toLowerCase(), rest, addressed: byName, slash };
}

/** What GitHub does not show is no argument. */
function withoutComment(rest: string): string {
  return rest.replaceAll(/<!--.*?(?:-->|$)/gs, '');
}

function isKnown(found: Addressed | null): boolean {
  return found !== null && isCommandName(found.word);
}
