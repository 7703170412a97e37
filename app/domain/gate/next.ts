/** What can be done about each reason, and by whom (GAT-2). */
import type { GatePolicy } from './decide.ts';
import { BY_A_PERSON, type GateReason, REASONS, type ReasonCode } from './reason.ts';

/** What a person can do next about one reason. */
export interface NextStep {
  readonly code: ReasonCode;
  readonly what: string;
  readonly who: string;
  /** When it changes by itself, product time in ms. */
  readonly untilMs: number | null;
}

/** What a runner or provider that is away says; nothing of it is left once a person answers for the files. */
export const OUTAGES: ReadonlySet<ReasonCode> = new Set(['provider_down', 'dispatch_stalled']);

/** The step of a reason; where files could not be read, also a person's once the policy lets one (POOL-3). */
export function nextStep(
  reason: GateReason,
  policy: Pick<GatePolicy, 'patienceMs' | 'onUnavailable'> | null,
  startMs: number,
  now: number,
): NextStep {
  const { clears, who } = REASONS[reason.code];
  const waited = OUTAGES.has(reason.code) && now >= startMs + (policy?.patienceMs ?? 0);
  const isOpen = waited || reason.code === 'ticket_unavailable' || reason.code === 'budget';
  const byPerson = isOpen && policy?.onUnavailable === 'human';
  return {
    code: reason.code,
    what: byPerson ? `${clears}; or ${BY_A_PERSON}` : clears,
    who,
    untilMs: reason.untilMs,
  };
}
