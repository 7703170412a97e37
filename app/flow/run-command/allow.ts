/**
 * `/allow [SHA|author]` (RUN-10): consent to spend, bound to a head the person saw or named.
 *
 * Reads: verified rows, check runs. Writes: rows `human.acted run.allowed`, the run. Queues: sync-run, cut-tickets, decide-gate.
 * May fail with: `conflict` (another head than the present one, or none that was shown).
 */
import { listPublished } from '../../../db/store/command.ts';
import { updateRun } from '../../../db/store/run.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply, spelled } from '../../domain/command/reply.ts';
import { shownHead } from '../../domain/command/rights.ts';
import { isAllowed } from '../../domain/run-state/coverage.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { Declined, type Given, readAgain } from './given.ts';

/** The names our gate is published under. */
const GATES = ['countersign', 'countersign (advisory)'];

/** Records the consent of a person with write. */
export async function allow(given: Given, command: Extract<Command, { name: 'allow' }>): Promise<Markdown> {
  const { unit, judged, asker, actor, cause, prefix } = given;
  const head = await headMeant(given, command.sha);
  const present = unit.run.toldHead;
  if (head !== present) {
    throw new Declined(
      'conflict',
      md`${Markdown.code(short(head))} is not the present head, so nothing was allowed`,
      `allow ${short(present)}`,
    );
  }
  const scope = command.scope === 'author' ? 'author' : 'head';
  const enough = judged.state.allowances.filter((one) => scope === 'head' || one.scope === 'author');
  const synced = judged.state.heads.at(-1)?.head === head;
  const shown = Markdown.code(short(head));
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

async function headMeant({ unit, judged, commentMs }: Given, sha: string | null): Promise<string> {
  const { run, tx } = unit;
  const heads = [
    ...new Set([run.toldHead, ...judged.state.heads.map((one) => one.head), ...judged.state.gates.keys()]),
  ];
  if (sha !== null) {
    const named = heads.filter((head) => head.startsWith(sha));
    const [only] = named;
    if (only !== undefined && named.length === 1) return only;
    throw new Declined(
      'conflict',
      md`${Markdown.code(sha.slice(0, 40))} is no head of this pull request`,
      `allow ${short(run.toldHead)}`,
    );
  }
  const shown = shownHead(await listPublished(tx, run.repositoryId, heads, GATES), commentMs);
  if ('head' in shown) return shown.head;
  const why =
    shown.unclear === 'nothing_shown'
      ? 'no verdict was shown before your comment, so it is not clear which head you saw'
      : 'another head was shown in the second of your comment, so it is not clear which one you saw';
  throw new Refusal('conflict', why, `allow ${short(run.toldHead)}`);
}

const short = (sha: string) => sha.slice(0, 12);
