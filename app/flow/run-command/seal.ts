/**
 * `/seal REASON` (LED-8): the way out of a chain that does not verify. The run is over for good and stays
 * as evidence: its chain gets no row on top, which would only hide where it broke. Who sealed it and why
 * is a row of the installation's own chain; the next run's first row names the sealed one.
 *
 * Reads: the run as judged. Writes: the run, its tickets and leases, `run.sealed` in the installation's
 * chain. Queues: seal-run. May fail with: `conflict` where the ledger verifies.
 */
import { findInstallation } from '../../../db/store/installation.ts';
import { updateRun } from '../../../db/store/run.ts';
import { putText } from '../../../db/store/text.ts';
import { cancelTicketsOfRun, clearDue } from '../../../db/store/ticket.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Fault, Refusal } from '../../errors.ts';
import { appendToInstallation } from '../append-rows.ts';
import type { Given } from './given.ts';

/** Seals the run. */
export async function seal(given: Given, command: Extract<Command, { text: string }>): Promise<Markdown> {
  const { deps, unit, judged, actor, cause, prefix } = given;
  const { run, tx } = unit;
  const fault = judged.facts.ledger;
  if (fault === null)
    throw new Refusal('conflict', 'the ledger of this run verifies, so there is nothing to seal');
  const installation = await findInstallation(tx, run.installationId);
  if (installation === null) throw new Fault('bug', 'a run of an installation that is not known');
  const next = deps.ids.next();
  // raised as at any close, so that what was planned before starts nothing any more (CTL-2)
  await updateRun(tx, run.id, { status: 'closed', next, generation: run.generation + 1 });
  await cancelTicketsOfRun(tx, run.id, 'closed');
  await clearDue(tx, run.id);
  const text = await putText(tx, command.text);
  unit.enqueue('seal-run', { run: run.id }, { key: `seal-run:${run.id}`, priority: -10 });
  // last: whoever holds the chain of an installation waits for nobody
  await appendToInstallation(deps, tx, installation, 'run.sealed', {
    block: null,
    actor,
    cause,
    data: { run: run.id, next, text },
  });
  return doneReply(
    prefix,
    'seal',
    md`run ${Markdown.code(run.id)} is sealed and stays as evidence (${fault.detail}); ${Markdown.code(next)} begins at the same head, and nothing is taken over.`,
  );
}
