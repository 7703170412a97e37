/**
 * `/dismiss F REASON` (FND-2): a person who had no part in it takes a finding off the scale, for this
 * run and its fingerprint. It stays in the ledger and in sight. A critical one takes two people.
 *
 * Reads: verified rows. Writes: rows `human.acted finding.ended`, the finding, the reason's text.
 * Queues: decide-gate. May fail with: `unknown_finding`, `denied`, `conflict`.
 */
import { addDismissal, endFinding } from '../../../db/store/finding.ts';
import { putText } from '../../../db/store/text.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import { holdsAtTheBar, judgeDismissal } from '../../domain/finding/dismissal.ts';
import { authorsOf } from '../../domain/people/authors.ts';
import { isStanding } from '../../domain/run-state/coverage.ts';
import type { FindingFact } from '../../domain/run-state/state.ts';
import { type Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { findingNamed } from './finding-named.ts';
import type { Given } from './given.ts';
import { keptText } from './kept-text.ts';

/** Records the dismissal, and ends the finding once enough people gave theirs. */
export async function dismiss(
  given: Given,
  command: Extract<Command, { name: 'dismiss' | 'answer' | 'explain' }>,
): Promise<Markdown> {
  const { unit, judged, asker, actor, cause, prefix } = given;
  const finding = findingNamed(given, command.finding);
  const { number, severity } = finding;
  if (actor.kind !== 'person') throw new Refusal('denied', 'a bot dismisses nothing');
  refuseWhatIsOver(finding);
  const people = authorsOf(judged.state, [finding.path]);
  const solo = given.alone && judged.policy?.people.solo === true;
  const answer = judgeDismissal({
    finding,
    actor: actor.id,
    permission: asker.permission,
    author: asker.author,
    outside: people.known && !people.accounts.has(actor.id),
    solo,
    blockAt: judged.policy?.gate.block_at ?? 'high',
    least: judged.policy?.people.dismiss ?? 'write',
  });
  if ('refused' in answer) throw refusal(given, finding, answer.refused, people.known);
  const { text, redacted } = keptText(given, command.text);
  const ref = await putText(unit.tx, text);
  const head = unit.run.toldHead;
  const { self } = answer;
  const seq = unit.append('human.acted', {
    block: null,
    actor,
    cause,
    data: {
      act: 'dismiss',
      head,
      permission: asker.permission,
      clause: `F${number}`,
      paths: [finding.path],
      self,
      text: ref,
      severity,
      ...(solo ? { solo: true } : {}),
      ...redacted,
    },
  });
  await addDismissal(unit.tx, unit.run.id, number, { actor: actor.id, severity, self: self && !solo, seq });
  if (answer.people >= answer.needed) {
    const ended = unit.append('finding.ended', {
      block: null,
      actor,
      cause,
      data: { finding: number, state: 'dismissed', reason: 'by_a_person', head, text: ref },
    });
    await endFinding(unit.tx, unit.run.id, number, 'dismissed', ended);
  }
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
  return doneReply(
    prefix,
    'dismiss',
    answer.people >= answer.needed
      ? md`F${number} (${severity}) is dismissed in this pull request. It stays in the record.`
      : md`${answer.people} of ${answer.needed}: F${number} is ${severity}, so another person must dismiss it too. Until then it blocks.`,
  );
}

function refuseWhatIsOver(finding: FindingFact): void {
  const { number, state, dismissals, severity } = finding;
  if (isStanding(finding)) return;
  // what its author dismissed before the bar came down blocks, and somebody else may answer for it
  if (state === 'dismissed' && !holdsAtTheBar(dismissals, severity)) return;
  const why = state === 'ungrounded' ? 'its quote was not found, so it blocks nothing' : `it is ${state}`;
  throw new Refusal('conflict', `F${number} needs no dismissal: ${why}`);
}

function refusal(
  { judged }: Given,
  { number, severity }: FindingFact,
  why: 'permission' | 'own_work' | 'twice',
  known: boolean,
): Refusal {
  const least = judged.policy?.people.dismiss ?? 'write';
  switch (why) {
    case 'permission':
      return new Refusal(
        'denied',
        `F${number} is ${severity}: to dismiss it takes ${least} on this repository`,
        `answer F${number} TEXT`,
      );
    case 'own_work':
      return new Refusal(
        'denied',
        known
          ? `F${number} is ${severity} and is on your own work: somebody else with ${least} must dismiss it`
          : 'it is not recorded yet who made this head, so nobody is known to stand outside; repeat it in a minute',
        `answer F${number} TEXT`,
      );
    case 'twice':
      return new Refusal(
        'conflict',
        `you dismissed F${number} already: a ${severity} one takes another person`,
      );
  }
}
