/** The part of a policy that the gate weighs. */
import type { PeopleRules } from '../people/rules.ts';
import type { Policy } from '../policy.ts';
import { definitionDigest } from '../receipt.ts';
import type { GatePolicy } from './decide.ts';

/** What a policy says of who may clear what. */
export function peopleOf(policy: Policy): PeopleRules {
  const { people } = policy;
  return {
    approve: people.approve,
    override: people.override,
    solo: people.solo,
    carry: people.carry,
  };
}

/** What the gate needs of a whole policy. */
export function gatePolicyOf(policy: Policy): GatePolicy {
  return {
    blockAt: policy.gate.block_at,
    deadlineMs: policy.gate.deadline,
    allowUnreviewed: policy.gate.allow_unreviewed,
    people: peopleOf(policy),
    patienceMs: policy.gate.patience,
    onUnavailable: policy.review.on_unavailable,
    rounds: policy.review.rounds,
    consensus: Object.entries(policy.review.consensus).flatMap(([lens, who]) =>
      who === 'both' ? [lens] : [],
    ),
    verify: new Map([...policy.verify].map(([name, command]) => [name, definitionDigest(command)])),
  };
}
