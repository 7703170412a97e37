import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { COMMAND_CASES } from '../../../app/domain/command/cases.ts';
import { readLines } from '../../../app/domain/command/lines.ts';
import { COMMAND_NAMES, COMMANDS } from '../../../app/domain/command/table.ts';
import { MOST_COMMANDS, type ParsedCommand, parseComment } from '../../../app/domain/command.ts';
import { cpuNow } from '../../helpers/cpu.ts';

const parse = (body: string, prefix = '') => parseComment(body, { prefix, mention: 'countersign' });
const only = (body: string) => parse(body).commands[0]?.command;

function shown({ name, command }: ParsedCommand): string {
  if ('message' in command) return `${name} ! ${command.message}`;
  switch (command.name) {
    case 'claim':
      return command.block === null ? `claim ${command.path}` : `claim ${command.path} | ${command.block}`;
    case 'release':
      return `release ${command.path}`;
    case 'rerun':
      return command.scope === 'all'
        ? 'rerun'
        : `rerun ${command.scope}${command.value === null ? '' : ` ${command.value}`}`;
    default:
      return name;
  }
}

describe('the fixed table', () => {
  it.each(COMMAND_CASES)(
    'CMD-2, cases 43 and 44, attack 23: $title',
    ({ body, prefix, commands, hint, nearMisses }) => {
      const read = parse(body, prefix);
      expect(read.commands.map(shown)).toEqual(commands);
      expect(read.hint).toBe(hint);
      expect(read.nearMisses.map((miss) => miss.word)).toEqual(nearMisses ?? []);
    },
  );

  it('CMD-2: every case reads the same with CRLF and with spaces at the ends of its lines', () => {
    for (const { body, prefix, commands } of COMMAND_CASES) {
      expect(
        parse(body.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n'), prefix).commands.map(shown),
      ).toEqual(commands);
      // a line of three marks or an end of a fence may end in spaces as well
      expect(parse(body.replaceAll('\n', '  \n'), prefix).commands.map(shown)).toEqual(commands);
    }
  });
});

describe('arguments', () => {
  it('CMD-1: a bare path that ends in what could be a block keeps both readings', () => {
    expect(only('/claim src/b c')).toEqual({ name: 'claim', path: 'src/b', block: 'c', whole: 'src/b c' });
    expect(only('/claim "src/b c"')).toEqual({ name: 'claim', path: 'src/b c', block: null, whole: null });
    expect(only('/claim "a\\"b.ts"')).toEqual({ name: 'claim', path: 'a"b.ts', block: null, whole: null });
    expect(only('/claim "a\\\\b"')).toHaveProperty('message', 'the path holds a backslash');
  });

  it.each([
    ['/claim', 'a path is missing', 'claim PATH [BLOCK]'],
    ['/claim "a b', 'a quote is not closed', 'claim PATH [BLOCK]'],
    ['/claim "a" B_', 'something follows the quoted path', 'claim PATH [BLOCK]'],
    ['/claim ../x', 'the path holds the segment ".."', 'claim PATH [BLOCK]'],
    [
      '/claim /abs',
      'the path is absolute; patterns start at the root of the repository',
      'claim PATH [BLOCK]',
    ],
    [
      '/release src/\u200ba.ts',
      'the path holds an invisible character; quote it if it is meant',
      'release PATH',
    ],
    ['/status now', 'takes no arguments', 'status'],
    ['/allow 123', 'that is neither a commit (7 to 64 hex digits) nor the word author', 'allow [SHA|author]'],
    ['/rerun block', 'names no block', 'rerun [all|failed|block B|PATH|COMMAND]'],
    ['/dismiss 3', 'the text is missing', 'dismiss F REASON'],
    ['/seal', 'a reason is missing', 'seal REASON'],
  ])('CMD-1: %s is refused and says what is accepted', (body, message, accepted) => {
    expect(only(body)).toEqual({ message, accepted });
  });

  it.each([
    ['/rerun', { name: 'rerun', scope: 'all', value: null }],
    ['/rerun all', { name: 'rerun', scope: 'all', value: null }],
    ['/rerun FAILED', { name: 'rerun', scope: 'failed', value: null }],
    ['/rerun block parser-2', { name: 'rerun', scope: 'block', value: 'parser-2' }],
    ['/rerun "failed"', { name: 'rerun', scope: 'path', value: 'failed' }],
    ['/rerun all of it.ts', { name: 'rerun', scope: 'path', value: 'all of it.ts' }],
    ['/allow', { name: 'allow', scope: 'shown', sha: null }],
    ['/allow author', { name: 'allow', scope: 'author', sha: null }],
    ['/allow `ABCDEF1`', { name: 'allow', scope: 'head', sha: 'abcdef1' }],
    ['/dismiss F12 it is fine', { name: 'dismiss', finding: 12, text: 'it is fine' }],
    ['/explain 4', { name: 'explain', finding: 4, text: '' }],
    ['/pause lunch', { name: 'pause', text: 'lunch' }],
    ['/help /claim', { name: 'help', topic: 'claim' }],
    ['/fix F3', { name: 'fix', target: 'F3' }],
  ])('CMD-1: %s', (body, command) => {
    expect(only(body)).toEqual(command);
  });

  it('CMD-1: every command is read, with the arguments its syntax shows', () => {
    for (const name of COMMAND_NAMES) {
      const sample = COMMANDS[name].syntax
        .replace(/\[[^\]]*\] ?/g, '')
        .replace('F|BLOCK', 'F3')
        .replace(/\bF\b/, 'F3')
        .replace(/PATH|REASON|TEXT/g, 'word');
      const [found] = parse(`/${name} ${sample}`).commands;
      expect(found?.name).toBe(name);
      expect(found?.command).not.toHaveProperty('message');
    }
  });
});

describe('limits', () => {
  it('CMD-4: commands are numbered in the order of their lines, at most 20 of a comment', () => {
    const read = parse('/status\n'.repeat(50));
    expect(read.commands.map((command) => command.index)).toEqual(
      Array.from({ length: MOST_COMMANDS }, (_, i) => i),
    );
  });

  it('CMD-2: a comment of any characters is read in linear time and never throws', () => {
    const hostile = [
      '`',
      '``',
      '<!--',
      '-->',
      '> ',
      '- ',
      '    ',
      '\t',
      '```',
      '~~~',
      '<pre>',
      '/status',
      '\n',
      '\n\n',
      'x',
      '\\',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...hostile), { maxLength: 200 }), (parts) => {
        const body = parts.join('');
        expect(readLines(body).length).toBe(body.split(/\r\n|\n|\r/).length);
        parse(body);
      }),
      { numRuns: 500 },
    );
    const times = ['`', '` ', '`\n', '``a`', '<!--', '- ', '-\n', '> \n', '\\', '<pre>\n', '[`<!--'].map(
      (unit) => {
        const start = cpuNow();
        parse(unit.repeat(Math.ceil(65_536 / unit.length)));
        return cpuNow() - start;
      },
    );
    expect(Math.max(...times)).toBeLessThan(1_500);
  });

  it('CMD-2: no line of quoted text is a command, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const quoted = text
          .split(/\r\n|\n|\r/)
          .map((line) => `> ${line}`)
          .join('\n');
        expect(parse(`${quoted}\n> /status`).commands).toEqual([]);
      }),
    );
  });
});
