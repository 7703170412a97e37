/**
 * `/approve [CLAUSE|BLOCK|CODE] [SHA] REASON` (GAT-6, OWN-8, POOL-3): a person who had no part in it clears what
 * waits for one on the head that they saw or named. What it covers is written down: nothing that turns up later.
 *
 * Reads: verified rows, policy, check runs. Writes: row `human.acted`, the reason's text. Queues: decide-gate.
 * May fail with: `bad_command`, `denied`, `conflict`.
 */
import { putText } from '../../../db/store/text.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import { OUTAGES } from '../../domain/gate/next.ts';
import { peopleOf } from '../../domain/gate/policy.ts';
import type { ReasonCode } from '../../domain/gate/reason.ts';
import { APPROVABLE, leastFor, objections, UNREVIEWED } from '../../domain/people/clear.ts';
import { type Approved, readApproval } from '../../domain/people/grammar.ts';
import { DEFAULT_PEOPLE, isAtLeast } from '../../domain/people/rules.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { clearedBy, hadPart, refuseBots, refuseUnread, tryAct } from './act.ts';
import type { Given } from './given.ts';
import { presentHeadMeant, shortSha } from './head-meant.ts';
import { keptText } from './kept-text.ts';

/** Records the approval of a person. */
export async function approve(
  given: Given,
  command: Extract<Command, { name: 'approve' | 'override' | 'seal' | 'pause' | 'stop' }>,
): Promise<Markdown> {
  const { unit, judged, asker, actor, cause, prefix } = given;
  refuseBots(given);
  const { what, sha, reason } = readApproval(judged.state, command.text);
  if (reason === '')
    throw new Refusal('bad_command', 'a reason is missing', 'approve [CLAUSE|BLOCK|CODE] [SHA] REASON');
  const head = await presentHeadMeant(given, 'approve', sha, 'approved');
  refuseUnread(given);
  const clauses = clausesOf(given, what).filter(
    (clause) => clearedBy(judged.decision, tryAct(given, head, { act: 'approve', clause })).length > 0,
  );
  const clause = clauses.join(',');
  const after = tryAct(given, head, { act: 'approve', clause });
  const codes = clause === '' ? [] : clearedBy(judged.decision, after);
  if (codes.length === 0) throw whyNot(given, what);
  const paths = judged.decision.reasons.filter((one) => codes.includes(one.code)).flatMap((one) => one.paths);
  const self = given.alone && hadPart(given, paths);
  const { text, redacted } = keptText(given, reason);
  unit.append('human.acted', {
    block: what.kind === 'block' ? what.name : null,
    actor,
    cause,
    data: {
      act: 'approve',
      head,
      permission: asker.permission,
      clause,
      paths: paths.slice(0, 20),
      self,
      text: await putText(unit.tx, text),
      ...(given.alone ? { solo: true } : {}),
      ...redacted,
    },
  });
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
  const left = after.reasons.filter((one) => APPROVABLE.has(one.code)).map((one) => one.code);
  const still = left.length === 0 ? md`` : md` Still open: ${names(left)}.`;
  const own = self ? md` It is your own work: you are the only one with write, and it is marked so.` : md``;
  return doneReply(prefix, 'approve', md`${names(codes)} on ${Markdown.code(shortSha(head))}.${own}${still}`);
}

/** The words of a row that this approval may be: for all, each code that waits for a person now. */
function clausesOf({ judged }: Given, what: Approved): string[] {
  const open = new Set(judged.decision.reasons.map((one) => one.code));
  switch (what.kind) {
    case 'all':
      return [...open].filter((code) => APPROVABLE.has(code) && !UNREVIEWED.has(code));
    case 'codes':
      return [...what.codes];
    case 'block':
    case 'clause':
      return [what.clause];
  }
}

function names(codes: readonly ReasonCode[]): Markdown {
  return Markdown.join(
    codes.map((code) => Markdown.code(code)),
    ', ',
  );
}

/** Why an approval would clear nothing: by whom, or what. */
function whyNot(given: Given, what: Approved): Refusal {
  const { judged, asker, unit } = given;
  const { state, decision, policy } = judged;
  const rules = policy === null ? DEFAULT_PEOPLE : peopleOf(policy);
  const wanted: readonly ReasonCode[] =
    what.kind === 'codes'
      ? what.codes
      : what.kind === 'all'
        ? [...APPROVABLE]
        : ['human_check', 'rule_break'];
  const open = decision.reasons.filter((one) => wanted.includes(one.code));
  const lacking = open.find((one) => !isAtLeast(asker.permission, leastFor(one.code, rules)));
  if (lacking !== undefined)
    return new Refusal('denied', `${lacking.code} takes ${leastFor(lacking.code, rules)} on this repository`);
  if (open.some((one) => one.code === 'human_check') && objections(state).length > 0)
    return new Refusal(
      'conflict',
      'a review asks for changes: it has to be dismissed, or followed by an approval of its author',
    );
  const own = open.find((one) => hadPart(given, one.paths));
  if (own !== undefined)
    return new Refusal(
      'denied',
      `you opened this pull request or made a part of what ${own.code} is about: somebody else has to approve it`,
    );
  if (what.kind === 'codes' && what.codes.some((code) => UNREVIEWED.has(code))) {
    const waits = decision.reasons.some((one) => one.code === 'reviews_pending' || OUTAGES.has(one.code));
    if (policy?.review.on_unavailable === 'block')
      return new Refusal('conflict', 'the policy says that only a review clears files that nobody read');
    if (waits) {
      const woken = state.wokenAt === null ? 0 : Date.parse(state.wokenAt);
      const from = Math.max(judged.facts.headAtMs, woken) + (policy?.gate.patience ?? 0);
      if (unit.now.getTime() < from)
        return new Refusal(
          'conflict',
          `the machine has until ${new Date(from).toISOString().slice(0, 16).replace('T', ' ')} UTC to read what is missing`,
        );
    }
  }
  return new Refusal('conflict', 'nothing of that waits for a person on this head');
}
