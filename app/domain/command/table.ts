/** Every command there is (CMD-1): syntax, who may (CMD-3), whether it works in this version, whether it runs when found late (CMD-4). */

/** Who may give a command, by the permission GitHub answers at that moment; `author` is the author of the pull request. */
export type Right = 'anyone' | 'read' | 'author_or_write' | 'rerun' | 'write' | 'admin' | 'rule';

/** One command. */
export interface CommandEntry {
  /** What follows the word, as a person reads it. */
  readonly syntax: string;
  readonly right: Right;
  /** What it does, in words that stand alone; no trailing period. */
  readonly does: string;
  /** False: answered as not available yet. */
  readonly available: boolean;
  /** Whether it still runs when it is found more than an hour late. */
  readonly late: boolean;
}

/** All commands by name, in the order of the help. */
export const COMMANDS = {
  status: {
    syntax: '',
    right: 'anyone',
    does: 'says what holds this pull request, what clears it, and who may',
    available: true,
    late: true,
  },
  rerun: {
    syntax: '[all|failed|block B|PATH|COMMAND]',
    right: 'rerun',
    does: 'opens the next round of review, and runs verify commands again that have ended; without a word for all',
    available: true,
    late: true,
  },
  claim: {
    syntax: 'PATH [BLOCK]',
    right: 'author_or_write',
    does: 'gives one path to a block, or reserves one that is not changed; without BLOCK to the block that touched it last',
    available: true,
    late: true,
  },
  release: {
    syntax: 'PATH',
    right: 'author_or_write',
    does: 'takes a claim back',
    available: true,
    late: false,
  },
  allow: {
    syntax: '[SHA|author]',
    right: 'write',
    does: 'allows spending on the head that you saw, on the head that you name, or on the later heads of this author',
    available: true,
    late: false,
  },
  help: { syntax: '[COMMAND]', right: 'anyone', does: 'lists the commands', available: true, late: false },
  approve: {
    syntax: '[CLAUSE|BLOCK|CODE] [SHA] REASON',
    right: 'rule',
    does: 'clears what needs a person',
    available: true,
    late: false,
  },
  dismiss: {
    syntax: 'F REASON',
    right: 'rule',
    does: 'dismisses a finding for this pull request; a critical one takes two people',
    available: true,
    late: false,
  },
  answer: {
    syntax: 'F TEXT',
    right: 'author_or_write',
    does: 'answers a finding: its file is reviewed again with the answer at hand; until then it blocks as before',
    available: true,
    late: false,
  },
  override: {
    syntax: 'REASON',
    right: 'rule',
    does: 'overrides the gate for this head',
    available: true,
    late: false,
  },
  pause: { syntax: '[REASON]', right: 'write', does: 'pauses the run', available: false, late: false },
  stop: { syntax: '[REASON]', right: 'write', does: 'stops the run', available: false, late: false },
  resume: { syntax: '', right: 'write', does: 'resumes the run', available: false, late: false },
  fix: {
    syntax: 'F|BLOCK',
    right: 'write',
    does: 'offers a fix for a finding or a block',
    available: false,
    late: false,
  },
  explain: { syntax: 'F', right: 'read', does: 'shows a finding in full', available: true, late: false },
  reload: {
    syntax: '',
    right: 'write',
    does: 'reads the policy of the base branch again and decides anew',
    available: true,
    late: false,
  },
  seal: {
    syntax: 'REASON',
    right: 'admin',
    does: 'closes a run whose ledger does not verify, with a reason, and opens the next at the same head',
    available: true,
    late: false,
  },
} as const satisfies Record<string, CommandEntry>;

/** The name of a command. */
export type CommandName = keyof typeof COMMANDS;

/** All names, in the order of the help. */
export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];

/** Whether a lower-case word is a command. */
export function isCommandName(word: string): word is CommandName {
  return Object.hasOwn(COMMANDS, word);
}
