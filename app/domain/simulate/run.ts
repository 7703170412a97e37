/**
 * A recorded run under a proposed policy (GAT-1): first whether its verdicts can be had again, then what
 * the last of them would have been, by the same rows, the same facts and at the same time.
 */
import type { GateConclusion, GateDecision } from '../gate/decide.ts';
import { gatePolicyOf } from '../gate/policy.ts';
import { type GateReason, isReasonCode, REASONS, type ReasonCode } from '../gate/reason.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import type { Policy } from '../policy.ts';
import { standings } from '../run-state/coverage.ts';
import type { Fact } from '../run-state/fact.ts';
import { type FileFact, presentHead, type RunState } from '../run-state/state.ts';
import { redecideFiles, type Unknown } from './redecide.ts';
import {
  decideAgain,
  factsOf,
  gateOf,
  type PolicyByHash,
  presentPolicy,
  type Replayed,
  replayRun,
} from './replay.ts';

/** A policy and its hash. */
export interface Proposed {
  readonly policy: Policy;
  readonly hash: string;
}

/** A reason that comes or goes. */
export interface Moved {
  readonly code: ReasonCode;
  readonly count: number;
  readonly detail: string | null;
}

/** A recorded verdict that the gate does not give again. */
export interface Mismatch {
  readonly seq: number;
  readonly recorded: string;
  readonly again: string;
}

/** What became of one run. */
export type RunSimulation =
  | { readonly kind: 'undecided' }
  /** Its head was never read under the recorded policy: there is nothing that another one could decide. */
  | { readonly kind: 'unread'; readonly was: string; readonly mismatches: readonly Mismatch[] }
  | {
      readonly kind: 'decided';
      /** The row of the verdict that was looked at, the last one, and the time it was decided at (ISO). */
      readonly seq: number;
      readonly at: string;
      readonly head: string;
      readonly was: string;
      readonly would: GateConclusion;
      readonly modes: readonly [was: string, would: string];
      readonly come: readonly Moved[];
      readonly go: readonly Moved[];
      readonly changed: boolean;
      /** Files that a reviewer would be asked about anew: what it would find no row tells. */
      readonly anew: number;
      readonly unknown: readonly Unknown[];
      readonly mismatches: readonly Mismatch[];
    };

/** Decides a run's verdicts again, and the last one under `proposed`. `rows` are verified. */
export function simulateRun(
  rows: readonly Fact[],
  isGroup: boolean,
  policies: PolicyByHash,
  proposed: Proposed,
  promptVersion: string,
): RunSimulation {
  const mismatches: Mismatch[] = [];
  let last: Replayed | null = null;
  const end = replayRun(rows, isGroup, policies, (replayed) => {
    const { seq, recorded, decision, same } = replayed;
    if (!same) mismatches.push({ seq, recorded: saidOf(recorded), again: saidOf(decision) });
    last = replayed;
  });
  const stood = last as Replayed | null;
  if (stood === null) return { kind: 'undecided' };
  const given = { isGroup, policies, proposed, promptVersion };
  // a verdict that stood is no row again: what came after it is weighed too, where it changed nothing
  const later = decideAgain(stood.seq, stood.recorded, end, isGroup, policies);
  if (later.same) return propose(later, end, given, mismatches);
  let found: RunSimulation = { kind: 'undecided' };
  replayRun(rows, isGroup, policies, (replayed, state) => {
    if (replayed.seq === stood.seq) found = propose(replayed, state, given, mismatches);
  });
  return found;
}

interface Given {
  readonly isGroup: boolean;
  readonly policies: PolicyByHash;
  readonly proposed: Proposed;
  readonly promptVersion: string;
}

function propose(
  { seq, recorded, decision: was }: Replayed,
  state: RunState,
  given: Given,
  mismatches: readonly Mismatch[],
): RunSimulation {
  const { isGroup, policies, proposed, promptVersion } = given;
  if (presentHead(state) === null) return { kind: 'unread', was: recorded.conclusion, mismatches };
  const present = presentPolicy(state, policies);
  const redecided = present === null ? null : redecideFiles(state, present, proposed.policy, promptVersion);
  const after = stateUnder(state, proposed, redecided?.files ?? state.files, isGroup);
  const pending = pendingKeys(state);
  const left = pendingKeys(after);
  const done = [...pending].filter((key) => !left.has(key)).length;
  const then = factsOf(recorded);
  const facts = {
    ...then,
    mode: proposed.policy.mode,
    // a ticket of a file that nobody would read any more
    openTickets: Math.max(0, then.openTickets - done),
  };
  const now = Date.parse(recorded.now);
  const would = gateOf(isGroup)(after, gatePolicyOf(proposed.policy), facts, now);
  const [come, go] = [beyond(would, was), beyond(was, would)];
  const modes: [string, string] = [recorded.mode, would.mode];
  const blocking = was.blocking.join() !== would.blocking.join();
  return {
    kind: 'decided',
    seq,
    at: recorded.now,
    head: recorded.head,
    was: recorded.conclusion,
    would: would.conclusion,
    modes,
    come,
    go,
    changed:
      recorded.conclusion !== would.conclusion ||
      come.length + go.length > 0 ||
      modes[0] !== modes[1] ||
      blocking,
    anew: [...left].filter((key) => !pending.has(key)).length,
    unknown: [...(redecided?.unknown ?? [])],
    mismatches,
  };
}

/** The state as if the proposed policy had been the base's. The one that is given stays as it is. */
function stateUnder(
  state: RunState,
  { policy, hash }: Proposed,
  files: ReadonlyMap<string, FileFact>,
  isGroup: boolean,
): RunState {
  const stands = state.policy;
  return {
    ...state,
    files: new Map(files),
    allowances: allowancesUnder(state, policy),
    policy: {
      state: 'valid',
      // members of a group were decided under the recorded policy, and it compares them by its hash (GAT-5)
      hash: isGroup ? (stands?.hash ?? null) : hash,
      commit: stands?.commit ?? null,
      mode: policy.mode,
      seq: stands?.seq ?? 0,
    },
  };
}

/** Consent that the list of the policy gives, and none that only the recorded one's gave (RUN-10). */
function allowancesUnder(state: RunState, policy: Policy): RunState['allowances'] {
  const author = state.opened?.author?.id;
  const head = presentHead(state);
  const listed = author !== undefined && policy.allow.authors.includes(author);
  const kept = state.allowances.filter((one) => one.rule !== 'allow_list' || listed);
  if (!listed || head === null || kept.some((one) => one.head === head.head)) return kept;
  return [...kept, { rule: 'allow_list', scope: 'head', head: head.head, seq: state.seq }];
}

/** Keys of the files that wait for a review. */
function pendingKeys(state: RunState): Set<string> {
  return new Set(
    standings(state).flatMap(({ file, standing }) =>
      standing === 'pending' && file.key !== null ? [file.key] : [],
    ),
  );
}

/** Reasons of `a` whose code `b` does not have in that class. */
function beyond(a: GateDecision, b: GateDecision): Moved[] {
  const name = ({ code, class: of, past }: GateReason) => `${code} ${of} ${past}`;
  const there = new Set(b.reasons.map(name));
  return a.reasons
    .filter((reason) => !there.has(name(reason)))
    .map(({ code, count, detail }) => ({ code, count, detail }));
}

/** A verdict as words: its conclusion, and the codes that decide. */
function saidOf({
  conclusion,
  reasons,
}: Pick<GateDecision, 'conclusion' | 'reasons'> | RowData<'gate.decided'>): string {
  const codes = reasons.map(({ code }) => code);
  return codes.length === 0 ? conclusion : `${conclusion} (${codes.join(', ')})`;
}

/** The words of a reason that comes or goes. */
export function movedText({ code, count, detail }: Moved): string {
  const what = isReasonCode(code) ? REASONS[code].what : code;
  return `${code}${count > 1 ? ` ${count}` : ''}: ${detail ?? what}`;
}
