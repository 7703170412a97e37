/**
 * What people clear (GAT-6): which acts stand on the present head, and whether one of them clears a need.
 * Pure, from verified rows and the policy's rules; the offline replay gives the same answer.
 */
import type { Permission } from '../command/rights.ts';
import type { ReasonCode } from '../gate/reason.ts';
import type { WirePath } from '../path.ts';
import { type ActFact, presentHead, type RunState } from '../run-state/state.ts';
import { authorsOf } from './authors.ts';
import { isAtLeast, type PeopleRules } from './rules.ts';

/** Something that a person can clear. */
export interface Need {
  readonly code: ReasonCode;
  /** The blocks it concerns. */
  readonly blocks: readonly string[];
  /** The clause (`clauseName`) it is; null: none. */
  readonly clause: string | null;
  /** The paths whose makers may not clear it; empty: all of the head. */
  readonly paths: readonly WirePath[];
  /** An act that is not newer than this row did not know of it. */
  readonly sinceSeq: number;
  /** Product time in ms before which nobody may clear it; null: at any time. */
  readonly notBeforeMs: number | null;
  /** It is about what was done and not about what the head holds: an act on any head since counts. */
  readonly anyHead?: boolean;
}

/** Codes that `/approve` clears; `unreviewed` in a comment names three of them. */
export const APPROVABLE: ReadonlySet<ReasonCode> = new Set([
  'human_check',
  'guarded',
  'rule_break',
  'rounds_exhausted',
  'nothing_to_review',
  'conflict',
  'budget',
  'unreviewed_files',
  'ticket_unavailable',
]);
/** Codes of files that nobody read: cleared by name only, and shown as such (POOL-3, BLK-7). */
export const UNREVIEWED: ReadonlySet<ReasonCode> = new Set(['unreviewed_files', 'ticket_unavailable']);
/** What naming a block covers. */
const OF_BLOCK: ReadonlySet<ReasonCode> = new Set([
  'human_check',
  'rule_break',
  'rounds_exhausted',
  'conflict',
  'budget',
]);

/** The least permission that clears a code: guarded paths need maintain, whatever the policy says (OWN-8). */
export function leastFor(code: ReasonCode, rules: PeopleRules): Permission {
  return code === 'guarded' && rules.approve === 'write' ? 'maintain' : rules.approve;
}

/** The newest standing act that clears a need; null: none does. */
export function clearing(state: RunState, rules: PeopleRules, need: Need): ActFact | null {
  if (need.code === 'human_check' && objections(state).length > 0) return null;
  return (
    state.acts.findLast(
      (act) =>
        names(act, need) &&
        act.seq > need.sinceSeq &&
        (need.notBeforeMs === null || Date.parse(act.at) >= need.notBeforeMs) &&
        isAtLeast(act.permission, leastFor(need.code, rules)) &&
        (need.anyHead === true ? isOfPerson(act) : stands(state, rules.carry, act)) &&
        mayJudge(state, rules, need.paths, act),
    ) ?? null
  );
}

/** Reviews of people with write that asked for changes and were neither dismissed nor followed by their approval (case 48). */
export function objections(state: RunState): ActFact[] {
  return state.acts.filter(
    (act) =>
      act.act === 'review' &&
      act.verdict === 'changes_requested' &&
      !act.revoked &&
      act.actorKind === 'person' &&
      isAtLeast(act.permission, 'write'),
  );
}

/** The act that overrides the gate on the present head (GAT-7); null: none. */
export function overriding(state: RunState, rules: PeopleRules): ActFact | null {
  const { override } = rules;
  if (override === 'none') return null;
  return (
    state.acts.findLast(
      (act) =>
        act.act === 'override' &&
        isAtLeast(act.permission, override) &&
        stands(state, 'none', act) &&
        mayJudge(state, rules, [], act),
    ) ?? null
  );
}

/** Whether a person may answer for these paths: they had no part in them, or are alone here and the policy lets them. */
export function mayJudge(
  state: RunState,
  rules: Pick<PeopleRules, 'solo'>,
  paths: readonly WirePath[],
  person: { readonly actor: string; readonly solo?: boolean | undefined },
): boolean {
  if (rules.solo && person.solo === true) return true;
  const { accounts, known } = authorsOf(state, paths);
  return known && !accounts.has(person.actor);
}

/** Whether an act is one of a person, was not taken back, and was on what the present head holds. */
export function stands(state: RunState, carry: PeopleRules['carry'], act: ActFact): boolean {
  const head = presentHead(state);
  if (!isOfPerson(act) || head === null) return false;
  if (act.content === null || act.content !== head.content) return false;
  return act.head === head.head || carry === 'identical';
}

function isOfPerson(act: ActFact): boolean {
  return !act.revoked && act.actorKind === 'person';
}

/** How a clause of `Accept-Human` is named in a row: its block, and the digest of its text. */
export function clauseName(block: string, text: string): string {
  return `clause:${block}:${text}`;
}

/** How a block is named in a row. */
export function blockName(block: string): string {
  return `block:${block}`;
}

function names(act: ActFact, need: Need): boolean {
  if (act.act === 'review') return act.verdict === 'approved' && need.code === 'human_check';
  if (act.act !== 'approve' || act.clause === null) return false;
  if (act.clause.startsWith('clause:')) return need.code === 'human_check' && act.clause === need.clause;
  if (act.clause.startsWith('block:'))
    return OF_BLOCK.has(need.code) && need.blocks.some((block) => act.clause === blockName(block));
  return act.clause.split(',').includes(need.code);
}
