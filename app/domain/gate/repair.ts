/**
 * The repair of a policy (RUN-9): where the policy of the base is not valid every pull request is held,
 * except one that changes guarded paths only and whose own policy is valid. People alone decide that
 * one (GAT-6), so that it can merge; the machine has no part in it, and nothing is spent.
 */
import { presentHead, type RunState } from '../run-state/state.ts';
import type { Draft } from './decide.ts';
import type { ReasonCode } from './reason.ts';

/** Whether the present head repairs the base's policy, by rows alone. */
export function isRepair(state: RunState): boolean {
  if (state.policy?.state !== 'invalid' || presentHead(state)?.repair === undefined) return false;
  const files = [...state.files.values()];
  return files.length > 0 && files.every((file) => file.ownership === 'guarded');
}

/** What the machine would do, wait for or spend, and what a policy would have to let through. */
const OF_THE_MACHINE: ReadonlySet<ReasonCode> = new Set([
  'config_invalid',
  'needs_allow',
  'setup_incomplete',
  'permissions_missing',
  'provider_down',
  'dispatch_stalled',
  'reviews_pending',
  'verify_pending',
  'ticket_unavailable',
  'budget',
  'unreviewed_files',
  'nothing_to_review',
]);

/** The reasons that hold a repair: a person for its guarded paths, and whatever else is a person's. */
export function ofRepair(found: readonly Draft[]): Draft[] {
  return found.filter((draft) => !OF_THE_MACHINE.has(draft.code));
}
