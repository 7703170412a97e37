/**
 * `/answer F TEXT` (FND-2, TKT-1): what the author has to say of a finding goes into the next round of
 * its file, no more. The finding is `answered` and blocks as before.
 *
 * Reads: verified rows. Writes: rows `human.acted finding.answered`, the finding, the answer's text.
 * Queues: cut-tickets with the path to review again, decide-gate. May fail with: `unknown_finding`, `conflict`.
 */
import { answerFinding as keepAnswer } from '../../../db/store/finding.ts';
import { putText } from '../../../db/store/text.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import { pathKey } from '../../domain/path.ts';
import { isAllowed, isStanding } from '../../domain/run-state/coverage.ts';
import { type Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { findingNamed } from './finding-named.ts';
import type { Given } from './given.ts';
import { keptText } from './kept-text.ts';

/** Records the answer and opens the round. */
export async function answerFinding(
  given: Given,
  command: Extract<Command, { name: 'dismiss' | 'answer' | 'explain' }>,
): Promise<Markdown> {
  const { unit, judged, asker, actor, cause, prefix } = given;
  const finding = findingNamed(given, command.finding);
  const { number, path, state } = finding;
  if (!isStanding(finding)) throw new Refusal('conflict', `F${number} needs no answer: it is ${state}`);
  const { text, redacted } = keptText(given, command.text);
  const ref = await putText(unit.tx, text);
  unit.append('human.acted', {
    block: null,
    actor,
    cause,
    data: {
      act: 'answer',
      head: unit.run.toldHead,
      permission: asker.permission,
      clause: `F${number}`,
      paths: [path],
      self: asker.author,
      text: ref,
      ...redacted,
    },
  });
  const seq = unit.append('finding.answered', {
    block: null,
    actor,
    cause,
    data: { finding: number, text: ref },
  });
  await keepAnswer(unit.tx, unit.run.id, number, ref, seq);
  // a key of its own: a plain cut of the same run must not take its place before it began
  unit.enqueue(
    'cut-tickets',
    { run: unit.run.id, rerun: { scope: 'answer', value: pathKey(path) } },
    { key: `cut-tickets:${unit.run.id}:${given.name}` },
  );
  unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
  const waits = isAllowed(judged.state) ? md`` : md` It begins once this pull request may be reviewed.`;
  return doneReply(
    prefix,
    'answer',
    md`F${number} is answered; its file is reviewed again with the answer at hand, and until then it counts as before.${waits}`,
  );
}
