/**
 * What we answer, as Markdown of our own making: whatever comes from people is neutralised, and no
 * line of it is a command (CMD-2). A reply is one item of a list; the sticky comment is all of them.
 */
import type { GateDecision } from '../gate/decide.ts';
import { REASONS } from '../gate/reason.ts';
import { showPath } from '../path.ts';
import { Markdown, md } from '../summary/markdown.ts';
import { capital, count, titleOf } from '../summary/title.ts';
import { usage } from './arguments.ts';
import { COMMAND_NAMES, COMMANDS, type CommandName } from './table.ts';

/** Most characters of a comment on GitHub. */
const MOST_BYTES = 65_000;
const MOST_LISTED = 10;

/** How a command is spelled in this repository. */
export function spelled(prefix: string, name: CommandName, withArguments = false): Markdown {
  return Markdown.code(addressed(prefix, withArguments ? usage(name) : name));
}

const addressed = (prefix: string, words: string) => (prefix === '' ? `/${words}` : `/${prefix} ${words}`);

/** A command that was done, and what that means now. */
export function doneReply(prefix: string, name: CommandName, what: Markdown): Markdown {
  return md`${spelled(prefix, name)}: ${what}`;
}

/** A command that was refused, why, and what is accepted: that command with other arguments, or a list. */
export function refusedReply(
  prefix: string,
  name: CommandName,
  why: Markdown,
  accepted: string | null,
): Markdown {
  const form = accepted?.split(' ')[0] === name ? addressed(prefix, accepted) : accepted;
  const help = form === null ? md`` : md` Accepted: ${Markdown.code(form)}.`;
  return md`${spelled(prefix, name)} was not done: ${why}.${help}`;
}

/** A word that was addressed to us and is no command. */
export function unknownReply(prefix: string, word: string, near: CommandName | null): Markdown {
  const mean = near === null ? md`` : md` Did you mean ${spelled(prefix, near)}?`;
  return md`${Markdown.code(word.slice(0, 40))} is no command.${mean} ${spelled(prefix, 'help')} lists them.`;
}

/** All commands that work, or one of them. */
export function helpReply(prefix: string, topic: CommandName | null): Markdown {
  const line = (name: CommandName) => {
    const { does, available } = COMMANDS[name];
    const later = available ? md`` : md` (not available yet)`;
    return md`${spelled(prefix, name, true)}: ${does}. Who: ${ours(whoMay(name))}.${later}`;
  };
  if (topic !== null) return line(topic);
  const names = COMMAND_NAMES.filter((name) => COMMANDS[name].available);
  return md`${spelled(prefix, 'help')}:${list(names.map(line))}`;
}

/** Who may give a command that has a rule of its own (FND-2). */
const RULES: Partial<Record<CommandName, string>> = {
  approve: 'write, or what `people.approve` asks (guarded paths: maintain), who made none of it',
  override: 'whom `people.override` names, who made none of it',
  dismiss: 'write, without a part in what it is on; below `gate.block_at` the author too',
};

/** Who may give a command, as words. */
export function whoMay(name: CommandName): string {
  switch (COMMANDS[name].right) {
    case 'anyone':
      return 'anyone';
    case 'read':
      return 'who may read the repository';
    case 'author_or_write':
      return 'the author, or write';
    case 'rerun':
      return 'write; for `failed` also the author';
    case 'write':
      return 'write';
    case 'admin':
      return 'admin';
    case 'rule':
      return RULES[name] ?? 'as its rule says';
  }
}

/** A check run that could not be written so often that it is stuck (PUB-2). */
export interface StuckCheck {
  readonly name: string;
  readonly sha: string;
  /** Code of the last failure. */
  readonly fault: string | null;
  readonly attempts: number;
  readonly failingSinceMs: number | null;
}

/** What the gate says, in words: each reason, what clears it, who may (CMD-5); and what GitHub does not let us show. */
export function statusReply(
  prefix: string,
  decision: GateDecision,
  closed: 'closed' | 'merged' | null,
  stuck: readonly StuckCheck[] = [],
): Markdown {
  const over = closed === null ? md`` : md` The pull request is ${closed}.`;
  const head = md`${spelled(prefix, 'status')} at ${Markdown.code(decision.head.slice(0, 12))}: ${titleOf(decision)}.${over}`;
  const reasons = decision.reasons.map((_, index) => reasonLine(prefix, decision, index));
  return md`${head}${list([...reasons, ...stuck.slice(0, MOST_LISTED).map(stuckLine)])}`;
}

function stuckLine({ name, sha, fault, attempts, failingSinceMs }: StuckCheck): Markdown {
  const since = failingSinceMs === null ? md`` : md` since ${clock(failingSinceMs)}`;
  const why = fault === null ? md`` : md` (${Markdown.code(fault)})`;
  return md`The check ${Markdown.code(name)} of ${Markdown.code(sha.slice(0, 12))} is stuck${since}: GitHub did not take it ${attempts} times in a row${why}. It is tried once an hour. Who: the operator of this server.`;
}

function reasonLine(prefix: string, decision: GateDecision, index: number): Markdown {
  const reason = decision.reasons[index];
  if (reason === undefined) return md``;
  const { what, who } = REASONS[reason.code];
  const clears = decision.next[index]?.what ?? REASONS[reason.code].clears;
  // the most particular of what is named: a pseudo-block beside its paths says nothing to people
  const concerns =
    reason.findings.length > 0
      ? reason.findings.map((number) => `F${number}`)
      : reason.paths.length > 0
        ? reason.paths.map(showPath)
        : reason.blocks;
  const shown = concerns.slice(0, MOST_LISTED).map((one) => Markdown.code(one));
  const more = reason.count - shown.length;
  const which =
    shown.length === 0
      ? md``
      : md` (${Markdown.join([...shown, ...(more > 0 ? [md`${more} more`] : [])], ', ')})`;
  const detail = reason.detail === null ? md`` : md`: ${reason.detail}`;
  const until = reason.past
    ? md`; its time is up`
    : reason.untilMs === null
      ? md``
      : md`; until ${clock(reason.untilMs)}`;
  const blocking =
    reason.code === 'open_findings' ? md` ${count(decision.blocking.length, 'finding')}.` : md``;
  return md`${Markdown.code(reason.code)} ${capital(what)}${which}${detail}${until}.${blocking} Clears it: ${ours(clears.replaceAll('`/', prefix === '' ? '`/' : `\`/${prefix} `))}. Who: ${ours(who)}.`;
}

/** The whole sticky comment: newest comment first, within GitHub's limit. `marker` finds it again. */
export function stickyBody(
  marker: string,
  prefix: string,
  groups: readonly {
    /** Of the comment that is answered; null for a button that was pressed. */
    readonly address: string | null;
    readonly login: string;
    readonly replies: readonly string[];
  }[],
): string {
  const parts = groups.map(({ address, login, replies }) => {
    const who = Markdown.code(login);
    const to =
      address === null
        ? md`**To the button that ${who} pressed**`
        : md`**To ${Markdown.link(md`this comment`, address)} of ${who}**`;
    return Markdown.join([to, listOf(replies.map(ours))], '\n\n');
  });
  const head = md`**Countersign** answers commands here, the newest first; ${spelled(prefix, 'help')} lists them.`;
  return Markdown.join([ours(marker), head, ...parts], '\n\n').cut(MOST_BYTES, md`… older replies are cut.`)
    .text;
}

/** What the sticky comment of a pull request begins with. */
export function stickyMarker(repositoryId: string, pull: string): string {
  return `<!-- countersign:sticky ${repositoryId}/${pull} -->`;
}

/** Markdown that this code or the table of reasons holds, or that it made before. */
function ours(text: string): Markdown {
  return Markdown.md([text] as unknown as TemplateStringsArray);
}

function list(items: readonly Markdown[]): Markdown {
  return items.length === 0
    ? md``
    : md`${ours('\n')}${Markdown.join(
        items.map((item) => md`  - ${item}`),
        '\n',
      )}`;
}

function listOf(items: readonly Markdown[]): Markdown {
  return Markdown.join(
    items.map((item) => md`- ${item}`),
    '\n',
  );
}

/** A product time to the minute. */
function clock(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
