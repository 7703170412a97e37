import { findRunOfPull } from '../../../db/store/run.ts';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { foldRows } from '../../domain/run-state/fold.ts';
import { withRun } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import type { Received } from '../receive-delivery.ts';
import { wholeRows } from '../verify-run.ts';

/** What tells of a push: the sender pushed the head. Who opens a pull request answers for its first head. */
const PUSHES = new Set(['opened', 'synchronize']);

/**
 * Records who pushed a head (GAT-6): also one that came late or is over, since its commits may be in the present
 * one. Once for each head and account.
 */
export async function notePusher(
  deps: Deps,
  event: Extract<InboxEvent, { kind: 'pull_request' }>,
  received: Received,
): Promise<void> {
  const { sender, pull, before } = event;
  if (!PUSHES.has(event.action) || sender === null) return;
  const run = await findRunOfPull(deps.database.db, {
    installationId: event.installationId,
    repositoryId: event.repository.id,
    pull: pull.number,
  });
  if (run === null) return;
  await withRun(deps, run.id, async (unit) => {
    const { status } = unit.run;
    if (status === 'closed' || status === 'merged') return;
    const rows = await wholeRows(deps, unit.run, { reader: unit.tx });
    if (rows === null) return;
    const state = foldRows(rows);
    if (state.pushers.get(pull.head)?.has(sender.id) === true) return;
    unit.append('run.pushed', {
      block: null,
      actor: received.actor(sender),
      cause: received.cause,
      data: { head: pull.head, before, pusher: sender.id },
    });
    // what somebody approved may turn out to be their own
    if (state.acts.length > 0) unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
  });
}
