/** What `--help` prints and docs/command-line.md says: both from the table of commands. */
import type { Entry } from './entry.ts';

type Commands = Readonly<Record<string, Entry>>;

const EXITS: NonNullable<Entry['exits']> = [
  [0, 'done'],
  [1, 'refused or failed'],
  [3, 'a wrong call'],
];

/** All commands, one below the other. */
export function helpText(commands: Commands): string {
  const lines = Object.values(commands).flatMap(({ usage, what }) => [
    ...usage.map((one) => `  countersign ${one}`),
    `      ${what}`,
  ]);
  return [
    'usage:',
    ...lines,
    '  countersign help [COMMAND]',
    '      print this, or all there is to know of one command (also: countersign COMMAND --help)',
    '',
    'exit codes, where a command does not say otherwise:',
    ...EXITS.map(([code, means]) => `  ${code}  ${means}`),
    '',
    'Answers go to standard output and everything else to standard error. Settings come from the',
    'environment, see README.md.',
  ].join('\n');
}

/** Everything of one command. */
export function commandHelp({ usage, what, options = [], exits = EXITS }: Entry): string {
  const width = Math.max(0, ...options.map(([flag]) => flag.length));
  return [
    ...usage.map((one, i) => `${i === 0 ? 'usage: ' : '       '}countersign ${one}`),
    '',
    `${what[0]?.toUpperCase()}${what.slice(1)}.`,
    ...(options.length === 0 ? [] : ['']),
    ...options.map(([flag, means]) => `  ${flag.padEnd(width)}  ${means}`),
    '',
    'exit codes:',
    ...exits.map(([code, means]) => `  ${code}  ${means}`),
  ].join('\n');
}

/** docs/command-line.md, ending in a line end. */
export function helpPage(commands: Commands): string {
  const parts = Object.entries(commands).flatMap(([name, entry]) => [
    `## ${name}`,
    '',
    '```',
    commandHelp(entry),
    '```',
    '',
  ]);
  return [
    '# The command line',
    '',
    '<!-- Made from the table in app/cli: change it there, then run npx vitest run test/cli/help.test.ts -u. -->',
    '',
    '`npx countersign COMMAND` after `npm run build`. `countersign --help` lists the commands, `countersign COMMAND --help`',
    'says what is here. Answers go to standard output and everything else to standard error; settings come from the',
    'environment ([README](../README.md#install-it-for-real)).',
    '',
    ...parts,
  ]
    .join('\n')
    .replace(/\n+$/, '\n');
}
