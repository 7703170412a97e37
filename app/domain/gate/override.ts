/** `/override` (GAT-7): what it takes away, and what it never does. */
import { overriding } from '../people/clear.ts';
import type { PeopleRules } from '../people/rules.ts';
import type { FindingFact, RunState } from '../run-state/state.ts';
import type { GateReason, ReasonCode } from './reason.ts';

/** A gate that a person overrode: the act's row, and the reasons that it took away. */
export interface Overridden {
  readonly seq: number;
  readonly codes: readonly ReasonCode[];
}

/** What an override leaves of the reasons; null where none stands or nothing was there to take away. */
export function applyOverride(
  state: RunState,
  rules: PeopleRules,
  reasons: readonly GateReason[],
  blocking: readonly FindingFact[],
): { readonly reasons: GateReason[]; readonly overridden: Overridden } | null {
  const act = overriding(state, rules);
  if (act === null) return null;
  const critical = blocking.filter((finding) => finding.severity === 'critical');
  const left: GateReason[] = [];
  const codes = new Set<ReasonCode>();
  for (const reason of reasons) {
    if (!isOverridable(reason)) {
      left.push(reason);
      continue;
    }
    codes.add(reason.code);
    if (reason.code === 'open_findings' && critical.length > 0) {
      const findings = critical.map((finding) => finding.number);
      left.push({ ...reason, findings, count: findings.length });
    }
  }
  return codes.size === 0 ? null : { reasons: left, overridden: { seq: act.seq, codes: [...codes] } };
}

/** Whether a person may override it at all: not what is broken or held, nor a record that does not add up. */
export function isOverridable(reason: Pick<GateReason, 'code' | 'class'>): boolean {
  return reason.class !== 'broken' && reason.class !== 'held' && reason.code !== 'coverage_gap';
}
