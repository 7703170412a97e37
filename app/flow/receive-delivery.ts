import { describeDelivery, endDelivery, findDelivery, isRepeated } from '../../db/store/delivery.ts';
import type { InboxEvent } from '../domain/inbox-event.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import { Fault, type FaultCode, Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { receiveCheckRequest } from './receive-delivery/check-request.ts';
import { receiveComment } from './receive-delivery/comment.ts';
import { receiveGroup } from './receive-delivery/group.ts';
import {
  receiveInstallation,
  receiveInstallationRepositories,
  receiveRepository,
} from './receive-delivery/installation.ts';
import { receivePull } from './receive-delivery/pull.ts';
import { receivePush } from './receive-delivery/push.ts';
import { notePusher } from './receive-delivery/pusher.ts';
import { receiveReview } from './receive-delivery/review.ts';
import { receiveWorkflow } from './receive-delivery/workflow.ts';

/** What this arrow needs besides the others' effects. */
export interface ReceiveDeps extends Deps {
  /** Reads a stored delivery (github/events). Throws `Refusal` `bad_request`. */
  readonly readEvent: (name: string, body: Buffer) => InboxEvent;
}

/** What GitHub says of the installation or the repository, and saying it again would not change: recorded, until a redelivery. */
const SAID: ReadonlySet<FaultCode> = new Set([
  'installation_gone',
  'permissions_missing',
  'github_not_found',
  'github_refused',
]);

/** Which delivery to work. */
export interface ReceiveInput {
  readonly delivery: string;
}

/** What a delivery led to, as a code: kept on the delivery and logged. */
export interface ReceiveOutcome {
  readonly event: string;
  readonly state: 'done' | 'ignored';
  readonly note: string;
}

/** What the handlers of single events are told of the delivery. */
export interface Received {
  readonly cause: Cause;
  /** These very bytes were worked before under another id: nothing of them is news. */
  readonly repeated: boolean;
  /** Who set it off, as far as the delivery says. */
  actor(sender: { readonly id: string; readonly bot: boolean } | null): Actor;
}

/**
 * Works one delivery (OPS-1). Every step of it can be done again, "done" is written last: what a crash
 * cut off is finished by the queue or by a redelivery, and a finished one does nothing.
 *
 * Reads: delivery, and what the handler of its event reads. Writes: the delivery's state, and that.
 * Calls: GitHub, where a base branch or a head is not known. May fail with: `github_*`,
 * `installation_gone` (recorded on the delivery), what Postgres does, faults of ours (retryable).
 */
export async function receiveDelivery(deps: ReceiveDeps, input: ReceiveInput): Promise<ReceiveOutcome> {
  const { db } = deps.database;
  const stored = await findDelivery(db, input.delivery);
  if (stored === null) throw new Fault('bug', `delivery ${input.delivery} is not in the inbox`);
  if (stored.state === 'done' || stored.state === 'ignored')
    return { event: stored.event, state: stored.state, note: stored.error ?? 'done' };

  const end = async (state: 'done' | 'ignored' | 'failed', note: string) => {
    await deps.database.transaction((tx) => endDelivery(tx, stored.id, state, note));
    deps.log.info({ delivery: stored.id, name: stored.event, state, note }, 'receive-delivery');
    return { event: stored.event, state: state === 'failed' ? 'ignored' : state, note } as const;
  };
  let event: InboxEvent;
  try {
    event = deps.readEvent(stored.event, stored.body);
  } catch (error) {
    if (error instanceof Refusal) return end('ignored', error.code);
    throw error;
  }
  if (event.kind === 'ignored') return end('ignored', event.reason);
  if (event.kind === 'ping') return end('ignored', 'ping');
  await deps.database.transaction((tx) =>
    describeDelivery(tx, stored.id, {
      action: 'action' in event ? event.action : null,
      installationId: event.installationId,
      repositoryId: 'repository' in event ? event.repository.id : null,
    }),
  );
  const received: Received = {
    cause: { kind: 'delivery', id: stored.id, sha256: stored.sha256.toString('hex') },
    repeated: await isRepeated(db, stored.id, stored.sha256),
    actor: (sender) =>
      sender === null
        ? { kind: 'app', id: deps.github.appId, via: 'delivery' }
        : { kind: sender.bot ? 'bot' : 'person', id: sender.id, via: 'delivery' },
  };
  try {
    const note = await work(deps, event, received);
    return await end(note.startsWith('ignored:') ? 'ignored' : 'done', note.replace(/^ignored:/, ''));
  } catch (error) {
    if (!(error instanceof Fault) || error.retryable || error.code === 'bug') throw error;
    // it may be finished later by a redelivery: after an un-suspension, say
    if (SAID.has(error.code)) return end('failed', error.code);
    // ours: what another process was in the middle of when it ended is there the next time
    throw new Fault(error.code, error.message, { cause: error, retryable: true });
  }
}

/** Hands an event to its handler; answers a code, `ignored:` before it when nothing was to be done. */
function work(
  deps: Deps,
  event: Exclude<InboxEvent, { kind: 'ignored' | 'ping' }>,
  received: Received,
): Promise<string> {
  switch (event.kind) {
    case 'pull_request':
      return receivePull(deps, event, received).then(async (note) => {
        await notePusher(deps, event, received);
        return note;
      });
    case 'review':
      return receiveReview(deps, event, received);
    case 'comment':
      return receiveComment(deps, event, received);
    case 'push':
      return receivePush(deps, event);
    case 'merge_group':
      return receiveGroup(deps, event, received);
    case 'installation':
      return receiveInstallation(deps, event);
    case 'installation_repositories':
      return receiveInstallationRepositories(deps, event);
    case 'repository':
      return receiveRepository(deps, event);
    case 'check_requested':
      return receiveCheckRequest(deps, event, received);
    case 'workflow_run':
    case 'workflow_job':
      return receiveWorkflow(deps, event);
  }
}
