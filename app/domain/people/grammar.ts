/** `/approve [CLAUSE|BLOCK|CODE] [SHA] REASON` (GAT-6): which of its words is what. Pure. */
import { SPACES } from '../command/lines.ts';
import type { ReasonCode } from '../gate/reason.ts';
import type { RunState } from '../run-state/state.ts';
import { APPROVABLE, blockName, clauseName, UNREVIEWED } from './clear.ts';

/** What an approval is for: `codes` of reasons, a block, a clause, or all that needs a person. */
export type Approved =
  | { readonly kind: 'all' }
  | { readonly kind: 'codes'; readonly codes: readonly ReasonCode[] }
  | { readonly kind: 'block' | 'clause'; readonly name: string; readonly clause: string };

/** The words of an approval. */
export interface ApproveWords {
  readonly what: Approved;
  /** At least seven lower-case hex digits; null: the head that was shown. */
  readonly sha: string | null;
  readonly reason: string;
}

/** Names that people write for codes, beside the codes themselves. */
const ALIASES: Readonly<Record<string, readonly ReasonCode[]>> = {
  unreviewed: [...UNREVIEWED],
  unreviewed_files: [...UNREVIEWED],
  ticket_unavailable: [...UNREVIEWED],
  rounds: ['rounds_exhausted'],
};

/**
 * Reads the words of an approval: the first is a code, a clause or a block of this run if it is known as
 * one, then seven or more hex digits are a commit, all else is the reason. A code wins over a block of the
 * same name, since authors name their blocks.
 */
export function readApproval(state: RunState, text: string): ApproveWords {
  const [first, afterFirst] = cut(text);
  const what = named(state, first);
  const rest = what === null ? text : afterFirst;
  const [second, afterSecond] = cut(rest);
  const sha = /^[0-9a-f]{7,64}$/i.test(second) ? second.toLowerCase() : null;
  return { what: what ?? { kind: 'all' }, sha, reason: (sha === null ? rest : afterSecond).trim() };
}

/** What a word names in this run; null: nothing. Clauses are `BLOCK/1` of `Accept-Human`, `BLOCK/a1` of `Accept`, counted in the order of the trailers. */
export function named(state: RunState, word: string): Approved | null {
  const lower = word.toLowerCase();
  const codes = Object.hasOwn(ALIASES, lower)
    ? ALIASES[lower]
    : APPROVABLE.has(lower as ReasonCode)
      ? [lower as ReasonCode]
      : undefined;
  if (codes !== undefined) return { kind: 'codes', codes };
  const clause = /^([a-z0-9][a-z0-9-]{0,63})\/(a?)([1-9][0-9]?)$/.exec(lower);
  const block = state.blocks.get(clause?.[1] ?? lower);
  if (block !== undefined && block.ended !== 'dropped') {
    if (clause === null) return { kind: 'block', name: block.id, clause: blockName(block.id) };
    const texts = clause[2] === '' ? block.acceptHuman : block.accept;
    const text = texts[Number(clause[3]) - 1];
    if (text !== undefined) return { kind: 'clause', name: lower, clause: clauseName(block.id, text) };
  }
  // `guarded` is a code; what no block owns has a name as well
  return lower === 'unowned' ? { kind: 'block', name: lower, clause: blockName(lower) } : null;
}

function cut(text: string): [first: string, rest: string] {
  const match = new RegExp(`^[${SPACES}]*([^${SPACES}]+)[${SPACES}]*(.*)$`, 's').exec(text);
  return [match?.[1] ?? '', match?.[2] ?? ''];
}
