/** The fixed table of what is a command and what is none (CMD-2): the tests run it and docs/commands.md shows it. */

/** One comment and what we make of it. */
export interface CommandCase {
  readonly title: string;
  readonly body: string;
  /** The commands, each as its name and its arguments; empty: none. */
  readonly commands: readonly string[];
  readonly hint?: 'backticked' | 'beside_quote' | 'misspelt';
  /** The policy's `commands.prefix`, where it is set. */
  readonly prefix?: string;
  /** Words that are answered as no command. */
  readonly nearMisses?: readonly string[];
}

/** All cases, in the order of the page. */
export const COMMAND_CASES: readonly CommandCase[] = [
  { title: 'a command alone', body: '/status', commands: ['status'] },
  { title: 'upper case', body: '/Status', commands: ['status'] },
  { title: 'up to three spaces before it', body: '   /status', commands: ['status'] },
  { title: 'spaces, tabs and no-break spaces after it', body: '/status \t\u00a0 ', commands: ['status'] },
  {
    title: 'a no-break space between word and argument',
    body: '/release\u00a0src/a.ts',
    commands: ['release src/a.ts'],
  },
  { title: 'text above and below', body: 'Thanks!\n\n/status\nand bye', commands: ['status'] },
  {
    title: 'several commands with CRLF, in order',
    body: '/claim src/a.ts\r\n/claim src/b c.ts\r\n\r\nthanks\r\n/status',
    commands: ['claim src/a.ts', 'claim src/b c.ts', 'status'],
  },
  { title: 'a path and a block', body: '/claim src/a.ts parser', commands: ['claim src/a.ts | parser'] },
  {
    title: 'a quoted path with spaces and a block',
    body: '/claim "src/my file.ts" parser',
    commands: ['claim src/my file.ts | parser'],
  },
  { title: 'a path in back-ticks', body: '/claim `src/a.ts`', commands: ['claim src/a.ts'] },
  {
    title: 'a path in the quotes of a telephone',
    body: '/release \u201csrc/my file.ts\u201d',
    commands: ['release src/my file.ts'],
  },
  {
    title: 'an argument in an HTML comment is none',
    body: '/rerun <!-- all --> failed',
    commands: ['rerun failed'],
  },
  { title: 'our mention instead of the slash', body: '@countersign status', commands: ['status'] },
  { title: 'our mention and the slash', body: '@Countersign: /rerun failed', commands: ['rerun failed'] },
  { title: 'a prefix is set and used', body: '/cs status', prefix: 'cs', commands: ['status'] },
  { title: 'a prefix is set and not used', body: '/status', prefix: 'cs', commands: [] },
  {
    title: 'an unknown word behind a prefix is answered',
    body: '/cs stauts',
    prefix: 'cs',
    commands: [],
    nearMisses: ['stauts'],
  },
  {
    title: 'a near miss behind our mention is answered',
    body: '@countersign stauts',
    commands: [],
    nearMisses: ['stauts'],
  },
  { title: 'talk behind our mention is not', body: '@countersign thanks for that', commands: [] },
  { title: 'a slip of a letter gets a reaction', body: '/claimx src/a.ts', commands: [], hint: 'misspelt' },
  { title: 'a command of another bot', body: '/lgtm\n/close', commands: [] },
  { title: 'not the first thing on its line', body: 'please /status', commands: [] },
  { title: 'a file path', body: '/usr/bin/foo\n/status/page', commands: [] },
  { title: 'a lone back-ticked command gets a reaction', body: '`/stop`', commands: [], hint: 'backticked' },
  { title: 'back-ticks within a sentence', body: 'I typed `/stop` before', commands: [] },
  { title: 'inline code over two lines', body: 'see `this\n/stop\n` there', commands: [] },
  { title: 'a fence of back-ticks', body: '```\n/stop\n```', commands: [] },
  { title: 'a fence of tildes', body: '~~~\n/stop\n~~~', commands: [] },
  { title: 'a fence with a language', body: '```sh\n/stop\n```\n/status', commands: ['status'] },
  { title: 'a fence that is never closed', body: '```\n/stop\n\n/status', commands: [] },
  {
    title: 'a longer fence holding a shorter one',
    body: '````\n```\n/stop\n```\n/stop\n````\n/status',
    commands: ['status'],
  },
  { title: 'a fence closed by the other kind is not closed', body: '```\n~~~\n/stop', commands: [] },
  { title: 'a fence in a list item', body: '- see\n  ```\n  /stop\n  ```', commands: [] },
  { title: 'a fence that ends with its list item', body: '- ```\n  /stop\n\n/status', commands: ['status'] },
  {
    title: 'a fence left open in a list item, another begun below',
    body: '- ```\n  /stop\n```\n/stop\n```\n/status',
    commands: ['status'],
  },
  { title: 'four spaces', body: 'text\n\n    /stop', commands: [] },
  { title: 'four spaces right below text', body: 'text\n    /stop', commands: [] },
  { title: 'a tab before it', body: '\t/stop', commands: [] },
  { title: 'a quote', body: '> /stop', commands: [] },
  { title: 'a quote without a space', body: '>/stop', commands: [] },
  { title: 'a quote in a quote', body: '> > /stop', commands: [] },
  {
    title: 'right below a quote, where GitHub shows it inside',
    body: '> what now?\n/stop',
    commands: [],
    hint: 'beside_quote',
  },
  { title: 'below a quote and an empty line', body: '> what now?\n\n/status', commands: ['status'] },
  {
    title: 'an e-mail reply above the quoted mail',
    body: '/status\n\nOn Mon, 1 Jan 2024, Ada wrote:\n> /stop\n> bye',
    commands: ['status'],
  },
  {
    title: 'a forwarded mail',
    body: '/status\n-----Original Message-----\nFrom: Ada\n\n/stop',
    commands: ['status'],
  },
  { title: 'an HTML comment', body: '<!-- /stop -->', commands: [] },
  { title: 'an HTML comment over lines', body: '<!--\n/stop\n\n/stop\n-->\n/status', commands: ['status'] },
  { title: 'an HTML comment that is never closed', body: 'text <!--\n/stop', commands: [] },
  { title: 'on the line where an HTML comment ends', body: '<!--\n--> /stop', commands: [] },
  {
    title: 'an HTML comment shown as code hides nothing',
    body: 'write `<!--` first\n/status',
    commands: ['status'],
  },
  { title: 'an HTML element of code', body: '<pre>\n/stop\n\n/stop\n</pre>\n/status', commands: ['status'] },
  { title: 'an HTML quote', body: '<blockquote>\n\n/stop\n\n</blockquote>', commands: [] },
  { title: 'a list item', body: '- /stop\n* /stop\n1. /stop\n- [ ] /stop', commands: [] },
  { title: 'an indented line of a list item', body: '- one\n  /stop\n\n  /stop', commands: [] },
  { title: 'an unindented line below a list', body: '- one\n- two\n/status', commands: ['status'] },
  { title: 'a heading, bold text, a table', body: '# /stop\n**/stop**\n| /stop |', commands: [] },
  { title: 'an escaped slash', body: '\\/stop', commands: [] },
  { title: 'a zero-width space before it', body: '\u200b/stop', commands: [] },
  { title: 'a zero-width space in it', body: '/st\u200bop', commands: [] },
  { title: 'a zero-width space after it', body: '/stop\u200b', commands: [] },
  { title: 'a full-width slash', body: '\uff0fstop', commands: [] },
  { title: 'full-width letters', body: '/\uff53\uff54\uff4f\uff50', commands: [] },
  { title: 'a Cyrillic letter that looks the same', body: '/st\u043ep', commands: [] },
];
