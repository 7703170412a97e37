/**
 * Payload → inbox event: the trust boundary of the webhook side. GitHub's MAC covers the body only,
 * so the event's name comes from an unsigned header and must fit what the body is (facts/security.md,
 * finding 9). Fields that we do not use are not read; anything unknown is `ignored`, since new events
 * and actions may appear any day.
 */
import * as z from 'zod';
import type { InboxEvent } from '../domain/inbox-event.ts';
import { Refusal } from '../errors.ts';
import { mergeGroup } from './events/groups.ts';
import { installation, installationRepositories, repositoryEvent } from './events/installations.ts';
import { issueComment, pullRequest, pullRequestReview, push } from './events/pulls.ts';
import { checkRun, checkSuite, workflowJob, workflowRun } from './events/runs.ts';
import { idSchema, parseLossless } from './lossless.ts';

const ping = z.object({ zen: z.string(), hook_id: idSchema }).transform((): InboxEvent => ({ kind: 'ping' }));

const readers: Readonly<Record<string, z.ZodType<InboxEvent>>> = {
  pull_request: pullRequest,
  pull_request_review: pullRequestReview,
  issue_comment: issueComment,
  push,
  merge_group: mergeGroup,
  installation,
  installation_repositories: installationRepositories,
  repository: repositoryEvent,
  check_run: checkRun,
  check_suite: checkSuite,
  workflow_run: workflowRun,
  workflow_job: workflowJob,
  ping,
};

/**
 * Reads a delivery's bytes. Throws `Refusal` `bad_request` when they are not UTF-8 JSON of an object,
 * or not what an event of that name looks like. Prototype keys in the body reach nothing: only the
 * named fields are copied.
 */
export function readEvent(name: string, body: Buffer): InboxEvent {
  let payload: unknown;
  try {
    payload = parseLossless(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new Refusal('bad_request', 'the body is not JSON', 'a JSON object in UTF-8');
  }
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw new Refusal('bad_request', 'the body is not an object', 'a JSON object in UTF-8');
  const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
  if (reader === undefined) return { kind: 'ignored', reason: 'unknown_event' };
  if (name !== 'ping' && !('installation' in payload)) return { kind: 'ignored', reason: 'no_installation' };
  const read = reader.safeParse(payload);
  if (read.success) return read.data;
  const where = read.error.issues[0]?.path.join('.') ?? '';
  throw new Refusal('bad_request', `the body is no ${name} event: ${where}`, `a body of a ${name} event`);
}
