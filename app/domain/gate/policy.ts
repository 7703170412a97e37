/** The part of a policy that the gate weighs. */
import type { Policy } from '../policy.ts';
import type { GatePolicy } from './decide.ts';

/** What the gate needs of a whole policy. */
export function gatePolicyOf(policy: Policy): GatePolicy {
  return {
    blockAt: policy.gate.block_at,
    deadlineMs: policy.gate.deadline,
    allowUnreviewed: policy.gate.allow_unreviewed,
  };
}
