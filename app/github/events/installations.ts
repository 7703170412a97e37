/** Events of installations and of repositories as such. */
import * as z from 'zod';
import type { InboxEvent } from '../../domain/inbox-event.ts';
import { idSchema } from '../lossless.ts';
import { action, inRepository, listedSchema } from './parts.ts';

const account = z.object({ id: idSchema, login: z.string().min(1) });
const permissions = z.record(z.string(), z.string()).default({});

/** `installation`. */
export const installation = z
  .object({
    action,
    installation: z.object({ id: idSchema, account, permissions }),
    repositories: z.array(listedSchema).nullish(),
    repository: z.undefined().optional(),
    repositories_added: z.undefined().optional(),
  })
  .transform(
    (p): InboxEvent => ({
      kind: 'installation',
      action: p.action,
      installationId: p.installation.id,
      account: p.installation.account,
      permissions: p.installation.permissions,
      repositories: p.repositories ?? [],
    }),
  );

/** `installation_repositories`. */
export const installationRepositories = z
  .object({
    action,
    installation: z.object({ id: idSchema, account }),
    repositories_added: z.array(listedSchema),
    repositories_removed: z.array(z.object({ id: idSchema.nullish() }).loose()),
  })
  .transform(
    (p): InboxEvent => ({
      kind: 'installation_repositories',
      installationId: p.installation.id,
      account: p.installation.account,
      added: p.repositories_added,
      removed: p.repositories_removed.flatMap((r) => {
        const read = listedSchema.safeParse(r);
        return read.success ? [read.data] : [];
      }),
    }),
  );

/** Nouns of other events: a body with one of them is no `repository` event. */
const otherNouns = [
  'pull_request',
  'issue',
  'comment',
  'check_run',
  'check_suite',
  'workflow_run',
  'workflow_job',
  'ref',
];
/** `repository`: renamed, transferred, deleted, edited … */
export const repositoryEvent = z
  .object({ ...inRepository, action })
  .loose()
  .refine((p) => otherNouns.every((noun) => !(noun in p)))
  .transform(
    (p): InboxEvent => ({
      kind: 'repository',
      action: p.action,
      installationId: p.installation.id,
      repository: p.repository,
    }),
  );
