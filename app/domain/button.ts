/** The buttons of the gate's check run (PUB-6): at most three, each does what a command does, with the presser's rights. */
import type { Command } from './command/arguments.ts';
import { COMMANDS, type CommandName } from './command/table.ts';
import type { GateDecision } from './gate/decide.ts';
import type { ReasonCode } from './gate/reason.ts';
import { APPROVABLE, UNREVIEWED } from './people/clear.ts';

interface Entry {
  /** At most 20 characters. */
  readonly label: string;
  /** At most 40 characters. */
  readonly description: string;
  readonly command: CommandName;
}

/** Every button by its identifier, which GitHub sends back when it is pressed: at most 20 characters. */
export const BUTTONS = {
  'rerun-all': { label: 'Re-run', description: 'Opens the next round for all files', command: 'rerun' },
  'rerun-failed': { label: 'Re-run', description: 'Reviews again what failed', command: 'rerun' },
  allow: { label: 'Allow', description: 'Lets this head be reviewed', command: 'allow' },
  'claim-orphans': {
    label: 'Claim orphans',
    description: 'Each goes to the block that touched it',
    command: 'claim',
  },
  approve: { label: 'Approve', description: 'Clears what waits for a person', command: 'approve' },
} as const satisfies Record<string, Entry>;

/** The identifier of a button. */
export type ButtonId = keyof typeof BUTTONS;

/** Whether a word is the identifier of a button of ours. */
export function isButton(word: string): word is ButtonId {
  return Object.hasOwn(BUTTONS, word);
}

/** A button as GitHub takes it. */
export interface ButtonAction {
  readonly label: string;
  readonly description: string;
  readonly identifier: ButtonId;
}

/** What `/approve` clears without naming it (GAT-6): what nobody read needs its name. */
function isApprovable(code: ReasonCode): boolean {
  return APPROVABLE.has(code) && !UNREVIEWED.has(code);
}

/**
 * The buttons of a verdict, in the order Re-run, Claim orphans or Allow, Approve; GitHub shows them
 * once a check run is concluded. Only what would change something is offered, and only what works.
 */
export function buttonsOf(decision: GateDecision): ButtonAction[] {
  if (decision.conclusion === 'in_progress' || decision.conclusion === 'queued') return [];
  const has = (code: ReasonCode) => decision.reasons.some((reason) => reason.code === code);
  const first = decision.reasons[0]?.class;
  // what is broken or held moves by no round of review
  const moves = first !== 'broken' && first !== 'held';
  const shown: (ButtonId | null)[] = [
    moves ? (has('ticket_unavailable') || has('verify_failed') ? 'rerun-failed' : 'rerun-all') : null,
    has('needs_allow') ? 'allow' : moves && has('orphan') ? 'claim-orphans' : null,
    moves && decision.reasons.some((reason) => isApprovable(reason.code)) ? 'approve' : null,
  ];
  return shown
    .filter((id) => id !== null)
    .filter((id) => COMMANDS[BUTTONS[id].command].available)
    .map((identifier) => {
      const { label, description } = BUTTONS[identifier];
      return { label, description, identifier };
    });
}

/** Most paths that one press claims; the next press takes the next. */
const MOST_CLAIMS = 50;

/**
 * The commands that a press means, on the head whose check it was: never another one than the person
 * saw (GAT-6). `orphans` are the paths that `Claim orphans` is about.
 */
export function commandsOf(button: ButtonId, head: string, orphans: readonly string[]): Command[] {
  switch (button) {
    case 'rerun-all':
      return [{ name: 'rerun', scope: 'all', value: null }];
    case 'rerun-failed':
      return [{ name: 'rerun', scope: 'failed', value: null }];
    case 'allow':
      return [{ name: 'allow', scope: 'head', sha: head }];
    case 'claim-orphans':
      return orphans.slice(0, MOST_CLAIMS).map((path) => ({ name: 'claim', path, block: null, whole: null }));
    case 'approve':
      return [{ name: 'approve', text: `${head} by the button of the check` }];
  }
}
