/**
 * The gate: rows → verdict (GAT-1…GAT-3). Pure: state from verified rows, the policy's part, facts
 * that no row proves, and one evaluation time. The App, the offline verifier and `simulate` call it.
 */

import { LIMITS } from '../limits.ts';
import type { PeopleRules } from '../people/rules.ts';
import { blockingFindings, gaps, isAllowed, standings } from '../run-state/coverage.ts';
import { type FindingFact, presentHead, type RunState } from '../run-state/state.ts';
import { withDependencies } from './dependency.ts';
import { type NextStep, nextStep, OUTAGES } from './next.ts';
import { applyOverride, type Overridden } from './override.ts';
import type { Clearance } from './person.ts';
import {
  CLASSES,
  type GateReason,
  isReasonCode,
  REASONS,
  type ReasonClass,
  type ReasonCode,
  sortReasons,
} from './reason.ts';
import { isRepair, ofRepair } from './repair.ts';
import { coverageReasons } from './review.ts';
import { PENDING, stillFound } from './still.ts';
import { verifyReasons } from './verify.ts';

/** What the gate needs of a policy. */
export interface GatePolicy {
  readonly blockAt: FindingFact['severity'];
  /** How long the machine has from the arrival of a head, in ms. */
  readonly deadlineMs: number;
  readonly allowUnreviewed: readonly string[];
  readonly people: PeopleRules;
  /** How long the machine has, in ms, before a person may answer for files that nobody read (POOL-3). */
  readonly patienceMs: number;
  readonly onUnavailable: 'human' | 'block';
  /** Rounds before the one at L3 and a person (RND-2). */
  readonly rounds: number;
  /** Lenses under which it takes two reviewers to block at L3 (RND-3). */
  readonly consensus: readonly string[];
  /** The verify commands by name, with the digest of what the policy says of each (VER-1). */
  readonly verify: ReadonlyMap<string, string>;
}

/** The deadline where no policy is known yet: POL-1's default of six hours. */
export const DEFAULT_DEADLINE_MS = LIMITS.gateDeadlineMs.default;

/** An operational reason: true by the word of a step, not by a row. */
export interface OperationalReason {
  readonly code: string;
  readonly sinceMs: number;
  /** When its time is up; null: the gate's own deadline, counted from `sinceMs`. */
  readonly untilMs: number | null;
  readonly detail: string | null;
}

/** What no row proves, recorded with the verdict (GAT-1). */
export interface GateFacts {
  /** The head that was last told of; the rows may still be of an earlier one (GAT-4). */
  readonly head: string;
  /** The base branch that was last told of: a retarget judges nothing by the old one (case 11). */
  readonly baseRef: string;
  readonly headAtMs: number;
  readonly draft: boolean;
  /** The mode known before a policy row says it. */
  readonly mode: 'enforce' | 'advisory';
  /** Tickets of keys that this head wants, which wait or are being worked. */
  readonly openTickets: number;
  readonly reasons: readonly OperationalReason[];
  /** What is wrong with the ledger; the rows then count for nothing (LED-8). */
  readonly ledger: {
    readonly code: 'ledger_invalid' | 'ledger_unverifiable';
    readonly detail: string;
  } | null;
}

/** What a verdict can be: a status while it is undecided, else a conclusion; never `neutral` or `skipped`. */
export type GateConclusion = 'queued' | 'in_progress' | 'success' | 'failure' | 'action_required';

/** A verdict on one head. */
export interface GateDecision {
  readonly head: string;
  readonly mode: 'enforce' | 'advisory';
  readonly conclusion: GateConclusion;
  readonly reasons: readonly GateReason[];
  readonly next: readonly NextStep[];
  /** Numbers of findings that block, worst first. */
  readonly blocking: readonly number[];
  readonly counts: { readonly files: number; readonly counted: number; readonly unreviewed: number };
  /** What acts of people cleared on this head (GAT-6); absent: nothing. */
  readonly cleared?: readonly Clearance[];
  /** The act that took the other reasons away (GAT-7); absent or null: none. */
  readonly overridden?: Overridden | null;
  /** What would stand without that act: blocks have their verdicts by it (GAT-7); absent: nobody overrode. */
  readonly without?: { readonly reasons: readonly GateReason[]; readonly next: readonly NextStep[] };
  /** The nearest time at which the verdict changes by itself, product time in ms; null: never. */
  readonly dueAtMs: number | null;
}

/** Decides. `policy` is null where none is valid or known; `now` is product time in ms. */
export function decideGate(
  state: RunState,
  policy: GatePolicy | null,
  facts: GateFacts,
  now: number,
): GateDecision {
  const head = presentHead(state);
  const synced = head !== null && head.head === facts.head && head.base_ref === facts.baseRef;
  const blockAt = policy?.blockAt ?? 'high';
  let blocking = facts.ledger === null ? blockingFindings(state, blockAt, policy?.consensus) : [];
  let handed: ReadonlySet<number> = new Set();
  const deadlineMs = policy?.deadlineMs ?? DEFAULT_DEADLINE_MS;
  const found: Draft[] = facts.reasons.flatMap((reason) => operational(reason, deadlineMs));
  // a head that waited for a person's consent has had no machine time yet, and a rerun gets its own
  const woken = state.wokenAt === null ? 0 : Date.parse(state.wokenAt);
  const startMs = Math.max(facts.headAtMs, woken);
  const machineUntil = startMs + deadlineMs;
  let cleared: readonly Clearance[] = [];
  let relieved = false;
  let repair = false;
  if (facts.ledger !== null) {
    found.push({ code: facts.ledger.code, detail: facts.ledger.detail });
  } else {
    found.push(...policyReasons(state, policy, synced));
    repair = synced && isRepair(state);
    if (!synced) {
      // the reading itself failed, and the reason says so
      if (!found.some((reason) => reason.code === 'git_unavailable' || reason.code === 'no_merge_base'))
        found.push({ code: 'reviews_pending', detail: 'reading the pull request', untilMs: machineUntil });
    } else {
      const allowed = isAllowed(state);
      if (!allowed) found.push({ code: 'needs_allow' });
      // before consent nothing is under way, and nothing ends by itself
      const time = { startMs, untilMs: machineUntil };
      const covered = coverageReasons(state, policy, facts.openTickets, time, blocking);
      ({ handed } = covered);
      blocking = blocking.filter(({ number }) => !covered.settled.has(number));
      const verified = verifyReasons(state, policy?.verify ?? new Map(), machineUntil);
      found.push(...[...covered.found, ...verified].filter(({ code }) => allowed || !PENDING.has(code)));
      ({ cleared, relieved } = covered);
      const missing = gaps(state);
      if (missing.length > 0)
        found.push({ code: 'coverage_gap', count: missing.length, detail: missing[0] ?? null });
    }
    const open = blocking.filter(({ number }) => !handed.has(number));
    if (open.length > 0)
      found.push({ code: 'open_findings', findings: open.map((finding) => finding.number) });
  }
  // POOL-3: who reads nothing any more holds nothing any more
  const asked = relieved ? found.filter((draft) => !OUTAGES.has(draft.code)) : found;
  const own = merge(repair ? ofRepair(asked) : stillFound(asked, facts, now), now);
  const whole = facts.ledger === null && synced;
  const stand = sortReasons(whole ? withDependencies(state, own, facts.openTickets) : own);
  const override = whole && policy !== null ? applyOverride(state, policy.people, stand, blocking) : null;
  const reasons = override?.reasons ?? stand;
  const conclusion = facts.draft ? 'queued' : conclude(reasons);
  const steps = (of: readonly GateReason[]) => of.map((reason) => nextStep(reason, policy, startMs, now));
  return {
    head: facts.head,
    mode: state.policy?.mode ?? facts.mode,
    conclusion,
    reasons,
    next: steps(reasons),
    blocking: blocking.map((finding) => finding.number),
    cleared,
    overridden: override?.overridden ?? null,
    ...(override === null ? {} : { without: { reasons: stand, next: steps(stand) } }),
    counts: facts.ledger === null ? counts(state, synced) : { files: 0, counted: 0, unreviewed: 0 },
    dueAtMs: earliest(reasons.flatMap((reason) => (reason.past ? [] : (reason.untilMs ?? [])))),
  };
}

/** First present wins (GAT-3); a machine reason past its deadline is a failure, not a wait. */
export function conclude(reasons: readonly Pick<GateReason, 'class' | 'past'>[]): GateConclusion {
  const verdicts = {
    broken: 'failure',
    held: 'action_required',
    machine: 'in_progress',
    wrong: 'failure',
    person: 'action_required',
  } as const satisfies Record<ReasonClass, GateConclusion>;
  const present = new Set(
    reasons.map((reason) => (reason.class === 'machine' && reason.past ? 'wrong' : reason.class)),
  );
  const first = CLASSES.find((name) => present.has(name));
  return first === undefined ? 'success' : verdicts[first];
}

/** A reason before its class, count and time are worked out. */
export interface Draft {
  readonly code: ReasonCode;
  readonly class?: ReasonClass;
  readonly blocks?: readonly string[];
  readonly paths?: GateReason['paths'];
  readonly findings?: readonly number[];
  readonly count?: number;
  readonly detail?: string | null;
  readonly untilMs?: number | null;
}

/** An operational reason as a draft; one of another version is a gap, never nothing. */
export function operational(reason: OperationalReason, deadlineMs: number): Draft[] {
  // another version's: what it means nobody here knows, so it is no reason to pass
  if (!isReasonCode(reason.code))
    return [{ code: 'coverage_gap', detail: `a reason of another version: ${reason.code}` }];
  const machine = REASONS[reason.code].class === 'machine';
  return [
    {
      code: reason.code,
      detail: reason.detail,
      untilMs: machine ? (reason.untilMs ?? reason.sinceMs + deadlineMs) : null,
    },
  ];
}

/** What is wrong with the policy; `synced`: whether the head that is judged was read. */
export function policyReasons(state: RunState, policy: GatePolicy | null, synced: boolean): Draft[] {
  // before the first reading there is none; a head that was read is judged by one
  if (state.policy === null)
    return synced ? [{ code: 'config_invalid', detail: 'no policy was recorded' }] : [];
  if (state.policy.state === 'absent') return [{ code: 'not_enrolled' }];
  if (state.policy.state === 'invalid') {
    const { code, line } = state.policy.error ?? { code: 'config_invalid', line: null };
    return [{ code: 'config_invalid', detail: line === null ? code : `${code} at line ${line}` }];
  }
  // RUN-8: a snapshot that is missing is never replaced by another policy
  return policy === null ? [{ code: 'config_invalid', detail: 'the recorded policy is not here' }] : [];
}

/** One reason a code: what several sources say of it is joined. */
export function merge(drafts: readonly Draft[], now: number): GateReason[] {
  const merged = new Map<string, GateReason>();
  for (const draft of drafts) {
    const kind = draft.class ?? REASONS[draft.code].class ?? 'machine';
    const untilMs = kind === 'machine' ? (draft.untilMs ?? null) : null;
    const blocks = [...new Set(draft.blocks ?? [])].sort();
    const paths = draft.paths ?? [];
    const findings = draft.findings ?? [];
    const reason: GateReason = {
      code: draft.code,
      class: kind,
      blocks,
      paths,
      findings,
      count: draft.count ?? (paths.length || findings.length || blocks.length || 1),
      detail: draft.detail?.slice(0, 200) || null,
      untilMs,
      past: untilMs !== null && untilMs <= now,
    };
    const known = merged.get(draft.code);
    merged.set(draft.code, known === undefined ? reason : join(known, reason));
  }
  return [...merged.values()];
}

function join(a: GateReason, b: GateReason): GateReason {
  return {
    ...a,
    blocks: [...new Set([...a.blocks, ...b.blocks])].sort(),
    paths: [...a.paths, ...b.paths],
    findings: [...new Set([...a.findings, ...b.findings])],
    count: a.paths.length + b.paths.length > 0 ? a.paths.length + b.paths.length : Math.max(a.count, b.count),
    detail: a.detail ?? b.detail,
    untilMs: earliest([a.untilMs, b.untilMs].flatMap((ms) => ms ?? [])),
    past: a.past || b.past,
  };
}

function counts(state: RunState, synced: boolean): GateDecision['counts'] {
  if (!synced) return { files: 0, counted: 0, unreviewed: 0 };
  const paths = standings(state);
  return {
    files: paths.length,
    counted: paths.filter((path) => path.standing === 'counted').length,
    unreviewed: paths.filter((path) => path.standing === 'unreviewed').length,
  };
}

function earliest(times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.min(...times);
}
