/** What an act of a person would clear, tried on the verified state before it is recorded (GAT-6, GAT-7). */
import { decideGate, type GateDecision } from '../../domain/gate/decide.ts';
import { gatePolicyOf } from '../../domain/gate/policy.ts';
import type { ReasonCode } from '../../domain/gate/reason.ts';
import type { WirePath } from '../../domain/path.ts';
import { authorsOf } from '../../domain/people/authors.ts';
import { wasReadAnew } from '../../domain/people/review.ts';
import { type ActFact, presentHead } from '../../domain/run-state/state.ts';
import { Refusal } from '../../errors.ts';
import type { Given } from './given.ts';

/** What was tried. */
export type Tried = Pick<ActFact, 'act' | 'clause'>;

/** The verdict as it would be with this act of the asker on the present head. */
export function tryAct(given: Given, head: string, tried: Tried): GateDecision {
  const { judged, unit, asker, actor } = given;
  const act: ActFact = {
    ...tried,
    head,
    permission: asker.permission,
    paths: [],
    self: asker.author,
    text: null,
    ...(given.alone ? { solo: true } : {}),
    seq: judged.state.seq + 1,
    at: unit.now.toISOString(),
    actor: actor.id,
    actorKind: actor.kind,
    content: presentHead(judged.state)?.content ?? null,
    revoked: false,
  };
  const policy = judged.policy === null ? null : gatePolicyOf(judged.policy);
  const state = { ...judged.state, acts: [...judged.state.acts, act] };
  return decideGate(state, policy, judged.facts, unit.now.getTime());
}

/** Codes of which an act leaves less: gone, or with fewer paths, blocks or findings. */
export function clearedBy(before: GateDecision, after: GateDecision): ReasonCode[] {
  return before.reasons
    .filter((reason) => {
      const left = after.reasons.find((one) => one.code === reason.code);
      return left === undefined || left.count < reason.count || left.detail !== reason.detail;
    })
    .map((reason) => reason.code);
}

/** Whether the asker had a part in what these paths change; refused while the rows do not say who had. */
export function hadPart({ judged, actor }: Given, paths: readonly WirePath[]): boolean {
  const { accounts, known } = authorsOf(judged.state, paths);
  if (known) return accounts.has(actor.id);
  throw new Refusal(
    'conflict',
    'it is not recorded yet who made this head, so nobody is known to stand outside; repeat it in a minute',
  );
}

/** Refuses bots, which answer for nothing. */
export function refuseBots({ actor }: Given): void {
  if (actor.kind !== 'person') throw new Refusal('denied', 'a bot approves nothing');
}

/** Refuses a head whose file set is not recorded yet, or was another when they asked: nobody can have seen what it changes. */
export function refuseUnread({ judged, unit, commentMs }: Given): void {
  const head = presentHead(judged.state);
  if (head === null || head.head !== unit.run.toldHead || head.base_ref !== unit.run.baseRef)
    throw new Refusal(
      'conflict',
      'this head is still being read; repeat it when the gate says what needs you',
    );
  // the same commit on another base is another change than the one they saw (case 11)
  if (wasReadAnew(judged.state, head.head, new Date(commentMs).toISOString()))
    throw new Refusal(
      'conflict',
      'this head changes something else since you asked, as its base is another; look again, and repeat it',
    );
}
