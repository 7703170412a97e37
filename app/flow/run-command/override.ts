/**
 * `/override REASON` (GAT-7): lets one head through though something holds it, as a state of its own that
 * everybody sees. Never what is broken, held, or at critical; never by those who made it.
 *
 * Reads: verified rows, policy, check runs. Writes: row `human.acted`, the reason's text. Queues: decide-gate.
 * May fail with: `bad_command`, `denied`, `conflict`.
 */
import { putText } from '../../../db/store/text.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import { isAtLeast } from '../../domain/people/rules.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { hadPart, refuseBots, refuseUnread, tryAct } from './act.ts';
import type { Given } from './given.ts';
import { presentHeadMeant, shortSha } from './head-meant.ts';
import { keptText } from './kept-text.ts';

/** Records the override of a person. */
export async function override(
  given: Given,
  command: Extract<Command, { name: 'approve' | 'override' | 'seal' | 'pause' | 'stop' }>,
): Promise<Markdown> {
  const { unit, judged, asker, actor, cause, prefix } = given;
  const { state, decision } = judged;
  const least = judged.policy?.people.override ?? 'none';
  if (least === 'none') throw new Refusal('denied', 'the policy lets nobody override (`people.override`)');
  if (!isAtLeast(asker.permission, least))
    throw new Refusal('denied', `it takes ${least} on this repository`);
  refuseBots(given);
  const [, sha = null, rest = ''] = /^([0-9a-f]{7,64})\s+(.*)$/is.exec(command.text) ?? [];
  const reason = sha === null ? command.text : rest;
  const head = await presentHeadMeant(given, 'override', sha?.toLowerCase() ?? null, 'overridden');
  refuseUnread(given);
  const critical = decision.blocking.filter((number) => state.findings.get(number)?.severity === 'critical');
  if (critical.length > 0) {
    const shown = critical.slice(0, 5).map((number) => `F${number}`);
    throw new Refusal('conflict', `${shown.join(', ')} is critical, which no override clears`);
  }
  const self = hadPart(given, []);
  if (self && !(given.alone && judged.policy?.people.solo === true))
    throw new Refusal(
      'denied',
      'you opened this pull request or made a part of it: somebody else has to override',
    );
  const after = tryAct(given, head, { act: 'override', clause: null });
  if (after.overridden == null)
    throw new Refusal('conflict', 'nothing that an override clears holds this head');
  const { text, redacted } = keptText(given, reason);
  unit.append('human.acted', {
    block: null,
    actor,
    cause,
    data: {
      act: 'override',
      head,
      permission: asker.permission,
      clause: null,
      paths: [],
      self,
      text: await putText(unit.tx, text),
      ...(given.alone ? { solo: true } : {}),
      ...redacted,
    },
  });
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
  const left = after.reasons.map((one) => Markdown.code(one.code));
  const still = left.length === 0 ? md`` : md` Still holds: ${Markdown.join(left, ', ')}.`;
  const codes = Markdown.join(
    after.overridden.codes.map((code) => Markdown.code(code)),
    ', ',
  );
  return doneReply(
    prefix,
    'override',
    md`${codes} on ${Markdown.code(shortSha(head))}, for this head only. The record and the check say so.${still}`,
  );
}
