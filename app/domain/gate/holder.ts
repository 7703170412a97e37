/** Pull requests on one commit (RUN-5): GitHub shows one check for all of them, so the worst that counts holds them all. */
import { isAllowed } from '../run-state/coverage.ts';
import { presentHead, type RunState } from '../run-state/state.ts';
import { conclude, type GateConclusion, type GateDecision } from './decide.ts';
import { type GateReason, REASONS, sortReasons } from './reason.ts';

/** A run of the commit as far as its check needs it. */
export interface Sharer {
  /** What its verified rows say; empty where they do not verify. */
  readonly state: RunState;
  /** Whether they verify: a run of which nothing can be told is never overlooked. */
  readonly verified: boolean;
  readonly draft: boolean;
  /** Whether its head branch is in this repository, as GitHub told. */
  readonly own: boolean;
  readonly decision: GateDecision;
}

const WORST: readonly GateConclusion[] = ['failure', 'action_required', 'in_progress', 'queued', 'success'];

/**
 * The run whose verdict the check shows: the worst of the allowed ones that are no draft, of equals the
 * first. Where none counts, a draft before a stranger's, whose run says nothing of other people's heads.
 */
export function holderOf<T extends Sharer>(sharers: readonly T[]): T | undefined {
  const allowed = sharers.filter(mayHold);
  const counting = allowed.filter((one) => !one.draft);
  return worstOf(counting) ?? allowed[0] ?? sharers[0];
}

function worstOf<T extends Sharer>(sharers: readonly T[]): T | undefined {
  return sharers.reduce<T | undefined>(
    (worst, one) => (worst === undefined || rank(one) < rank(worst) ? one : worst),
    undefined,
  );
}

const rank = (one: Sharer) => WORST.indexOf(one.decision.conclusion);

/**
 * RUN-10: until a run is allowed it holds no shared head. One that was opened just now from a branch of
 * this repository is allowed as soon as it is read: its base may be another, and until then nobody has
 * looked at what it would merge there.
 */
function mayHold({ state, verified, own }: Sharer): boolean {
  if (!verified || isAllowed(state)) return true;
  const waits = state.opened?.reason === 'enrolled' || state.opened?.reason === 'reconciled';
  return own && presentHead(state) === null && !waits;
}

/** A run's own verdict with the reason that another one's, `holder` (`#7`), is what its check shows. */
export function heldBy(own: GateDecision, holder: string, theirs: GateConclusion): GateDecision {
  const held: GateReason = {
    code: 'shared_head',
    class: 'person',
    blocks: [],
    paths: [],
    findings: [],
    count: 1,
    detail: `pull request ${holder} (${theirs.replace('_', ' ')})`,
    untilMs: null,
    past: false,
  };
  const { clears, who } = REASONS.shared_head;
  const steps = new Map(own.reasons.map((reason, at) => [reason, own.next[at]]));
  const reasons = sortReasons([...own.reasons, held]);
  const next = reasons.map(
    (reason) => steps.get(reason) ?? { code: reason.code, what: clears, who, untilMs: null },
  );
  // a draft stays one: nothing that others do makes it more or less
  const conclusion = own.conclusion === 'queued' ? own.conclusion : conclude(reasons);
  return { ...own, reasons, next, conclusion };
}
