/** Events of check runs and of workflow runs. */
import * as z from 'zod';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { idSchema } from '../lossless.ts';
import { action, actorSchema, inRepository, oid } from './parts.ts';

const app = z.object({ id: idSchema });
/** `check_run`: a person asked for it again, or pressed a button. */
export const checkRun = z
  .object({
    ...inRepository,
    action,
    sender: actorSchema,
    requested_action: z.object({ identifier: z.string().max(40) }).nullish(),
    check_run: z.object({ name: z.string(), head_sha: oid, app: app.nullish() }),
  })
  .transform((p): InboxEvent => {
    if (p.action !== 'rerequested' && p.action !== 'requested_action')
      return { kind: 'ignored', reason: 'unused_action' };
    return {
      kind: 'check_requested',
      action: p.action === 'rerequested' ? 'rerequested' : (p.requested_action?.identifier ?? ''),
      installationId: p.installation.id,
      repository: p.repository,
      head: p.check_run.head_sha,
      name: p.check_run.name,
      appId: p.check_run.app?.id ?? '0',
      sender: p.sender,
    };
  });

/** `check_suite`, only when asked for again. */
export const checkSuite = z
  .object({
    ...inRepository,
    action,
    sender: actorSchema,
    check_suite: z.object({ head_sha: oid, app: app.nullish() }),
  })
  .transform((p): InboxEvent => {
    // `requested` comes with every push: pull_request says the same, with the pull request
    if (p.action !== 'rerequested') return { kind: 'ignored', reason: 'unused_action' };
    return {
      kind: 'check_requested',
      action: p.action,
      installationId: p.installation.id,
      repository: p.repository,
      head: p.check_suite.head_sha,
      name: null,
      appId: p.check_suite.app?.id ?? '0',
      sender: p.sender,
    };
  });

const runFields = {
  status: z.string(),
  conclusion: z.string().nullish(),
  run_attempt: z.int().min(1).default(1),
};
/** `workflow_run`. */
export const workflowRun = z
  .object({
    ...inRepository,
    action,
    workflow_run: z.object({
      ...runFields,
      id: idSchema,
      display_title: z.string().nullish(),
      path: z.string().nullish(),
      head_sha: oid.nullish(),
    }),
  })
  .transform(
    (p): InboxEvent => ({
      kind: 'workflow_run',
      action: p.action,
      installationId: p.installation.id,
      repository: p.repository,
      workflowRunId: p.workflow_run.id,
      attempt: p.workflow_run.run_attempt,
      jobId: null,
      status: p.workflow_run.status,
      conclusion: p.workflow_run.conclusion ?? null,
      title: p.workflow_run.display_title ?? '',
      path: p.workflow_run.path ?? null,
      head: p.workflow_run.head_sha ?? null,
    }),
  );

/** `workflow_job`. */
export const workflowJob = z
  .object({
    ...inRepository,
    action,
    workflow_job: z.object({ ...runFields, id: idSchema, run_id: idSchema, head_sha: oid.nullish() }),
  })
  .transform(
    (p): InboxEvent => ({
      kind: 'workflow_job',
      action: p.action,
      installationId: p.installation.id,
      repository: p.repository,
      workflowRunId: p.workflow_job.run_id,
      attempt: p.workflow_job.run_attempt,
      jobId: p.workflow_job.id,
      status: p.workflow_job.status,
      conclusion: p.workflow_job.conclusion ?? null,
      title: '',
      path: null,
      head: p.workflow_job.head_sha ?? null,
    }),
  );
