/** docs/commands.md, made of the table of commands and the table of cases (CMD-2): its test holds the page to this text. */
import { BUTTONS } from '../button.ts';
import { APPROVABLE, UNREVIEWED } from '../people/clear.ts';
import { usage } from './arguments.ts';
import { COMMAND_CASES } from './cases.ts';
import { whoMay } from './reply.ts';
import { COMMAND_NAMES, COMMANDS } from './table.ts';

/** The whole page, ending in a line end. */
export function commandsPage(): string {
  const commands = COMMAND_NAMES.filter((name) => COMMANDS[name].available);
  const later = COMMAND_NAMES.filter((name) => !COMMANDS[name].available);
  return [
    '# Commands',
    '',
    '<!-- Made from the tables in app/domain/command: change them there, then run npx vitest run test/domain/command/page.test.ts -u. -->',
    '',
    'A comment on a pull request may hold commands: each the first thing on a line of its own, several in one comment, run',
    'in order. The reply is one comment that is edited from then on. An 👀 says that a comment was seen, 🚀 that all of',
    'it was done, 😕 that something was not, and the reply says what.',
    '',
    '| Command | What it does | Who |',
    '|---|---|---|',
    ...commands.map(
      (name) => `| \`/${cell(usage(name))}\` | ${cell(COMMANDS[name].does)} | ${cell(whoMay(name))} |`,
    ),
    '',
    `Not available yet, and answered so: ${later.map((name) => `\`/${name}\``).join(', ')}.`,
    '',
    '## Who may',
    '',
    '- The permission that GitHub tells for the repository at that moment decides, never a label such as "member". A',
    '  look-up that fails refuses, and says to repeat the command.',
    '- Until a pull request from outside is allowed, its author has `/status` and `/help`.',
    '- Ten commands a person an hour and three replies a minute for each pull request; beyond that a reaction answers.',
    '- Only new comments count: what an edit adds or changes does nothing. Write a new comment.',
    '- Bots are not heard, but for those whose ids the policy lists in `commands.bots`.',
    '- A comment that is found more than an hour late runs `/status`, `/rerun` and `/claim`; anything else is too late.',
    '',
    '## Which head `/allow`, `/approve` and `/override` mean',
    '',
    'A comment holds no commit. `/allow SHA`, `/approve … SHA REASON` and `/override SHA REASON` name one (7 digits or more).',
    'Without it the head is meant whose verdict was the last one shown before the comment was written. If that is not the',
    'present head, the reply says so and nothing is done: a push that arrives just after your comment is not covered by it.',
    '',
    '## What `/approve` clears',
    '',
    '`/approve REASON` clears what needs a person on that head, but for files that nobody read, which want to be named. A',
    'first word that is known says what is meant:',
    '',
    `- a reason of [the gate](gate.md): ${[...APPROVABLE].map((name) => `\`${name}\``).join(', ')};`,
    `  \`unreviewed\` is short for ${[...UNREVIEWED].map((name) => `\`${name}\``).join(' and ')};`,
    '- a block by its name, for what needs a person in it;',
    '- a clause: `BLOCK/1` is the first `Accept-Human` of a block, `BLOCK/a1` its first `Accept`.',
    '',
    'All after that is the reason, which is needed and recorded. An approving review of the present head on GitHub clears',
    '`human_check`, and a later review that asks for changes, or a dismissal, takes it back.',
    '',
    '## Buttons',
    '',
    'A concluded gate has up to three buttons. Each is a command without a comment: the same rights, the same limits, the',
    'same reply, and always about the head whose check it is on; on another present head it does nothing and says so.',
    '',
    '| Button | What it does | As |',
    '|---|---|---|',
    ...Object.values(BUTTONS)
      .filter(({ command }) => COMMANDS[command].available)
      .map(({ label, description, command }) => `| ${label} | ${description} | \`/${command}\` |`),
    '',
    '## Paths',
    '',
    '- A path goes on to the end of its line, spaces included: `/release src/my file.ts`.',
    '- Quote it (`"…"`, `\'…\'`, or back-ticks) to put a block after it, or to keep what looks like a word of the command:',
    '  `/claim "src/my file.ts" parser`, `/rerun "failed"`.',
    '- Without quotes a last word that could be a block is read as one, unless all of it is a changed path.',
    '- Paths are compared byte by byte: case and accents count.',
    '',
    '## What is a command, and what is not',
    '',
    'Command words may be in any case. A prefix can be set in the policy (`commands: {prefix: cs}` makes `/cs status`); our',
    'mention works as well (`@countersign status`). Line ends of any kind, tabs, no-break spaces and spaces at the end of a',
    'line change nothing. Letters that only look like ours, and invisible ones, make a line no command.',
    '',
    'The tests run this table as it stands. `\\n` is a line end, `\\r\\n` the other kind, `\\\\` one backslash.',
    '',
    '| Case | Comment | What is done |',
    '|---|---|---|',
    ...COMMAND_CASES.map((one) => `| ${cell(one.title)} | ${code(one.body)} | ${cell(outcome(one))} |`),
    '',
  ].join('\n');
}

function outcome({ commands, hint, nearMisses, prefix }: (typeof COMMAND_CASES)[number]): string {
  const where = prefix === undefined ? '' : ` (prefix \`${prefix}\`)`;
  if (commands.length > 0) return commands.map((command) => `\`${command}\``).join(', ') + where;
  if (nearMisses !== undefined)
    return `nothing; the reply says that ${nearMisses.map((word) => `\`${word}\``).join(', ')} is no command${where}`;
  return (hint === undefined ? 'nothing' : 'nothing; a 😕 says so') + where;
}

/** A comment in one table cell: what cannot be seen is written as its escape. */
function code(body: string): string {
  const shown = JSON.stringify(body)
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replaceAll(
      /[\u00a0\u200b\uff00-\uffef\u0400-\u04ff]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  const space = longest > 0 ? ' ' : '';
  return cell(`${fence}${space}${shown}${space}${fence}`);
}

const cell = (text: string) => text.replaceAll('|', '\\|');
