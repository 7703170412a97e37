/**
 * `/allow [SHA|author]` (RUN-10): consent to spend, bound to a head the person saw or named.
 *
 * Reads: verified rows, check runs. Writes: rows `human.acted run.allowed`, the run. Queues: sync-run, cut-tickets, decide-gate.
 * May fail with: `conflict` (another head than the present one, or none that was shown).
 */
import { updateRun } from '../../../db/store/run.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply, spelled } from '../../domain/command/reply.ts';
import { isAllowed } from '../../domain/run-state/coverage.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { type Given, readAgain } from './given.ts';
import { presentHeadMeant, shortSha } from './head-meant.ts';

/** Records the consent of a person with write. */
export async function allow(given: Given, command: Extract<Command, { name: 'allow' }>): Promise<Markdown> {
  const { unit, judged, asker, actor, cause, prefix } = given;
  const head = await presentHeadMeant(given, 'allow', command.sha, 'allowed');
  const scope = command.scope === 'author' ? 'author' : 'head';
  const enough = judged.state.allowances.filter((one) => scope === 'head' || one.scope === 'author');
  const synced = judged.state.heads.at(-1)?.head === head;
  const shown = Markdown.code(shortSha(head));
  if (enough.some((one) => one.head === head) || (enough.length > 0 && synced && isAllowed(judged.state))) {
    return doneReply(prefix, 'allow', md`${shown} is allowed already.`);
  }
  unit.append('human.acted', {
    block: null,
    actor,
    cause,
    data: {
      act: 'allow',
      head,
      permission: asker.permission,
      clause: scope,
      paths: [],
      self: asker.author,
      text: null,
    },
  });
  unit.append('run.allowed', { block: null, actor, cause, data: { rule: 'person', scope, head } });
  await updateRun(unit.tx, unit.run.id, { allowedRule: 'person', allowedScope: scope, allowedHead: head });
  readAgain(given);
  // the paths of a head that was read before have waited for nothing but this
  unit.enqueue('cut-tickets', { run: unit.run.id }, { key: `cut-tickets:${unit.run.id}` });
  return doneReply(
    prefix,
    'allow',
    scope === 'author'
      ? md`${shown} and the later heads of this pull request may be reviewed, until one touches a guarded path.`
      : md`${shown} may be reviewed. A later head needs ${spelled(prefix, 'allow')} again.`,
  );
}
