/** Pieces that many payloads share. */
import * as z from 'zod';
import type { EventActor, EventRepository, ListedRepository } from '../../domain/inbox-event.ts';
import { idSchema } from '../lossless.ts';

/** A person or bot; null for nobody and for the user "ghost". */
export const actorSchema = z
  .object({ id: idSchema, login: z.string().min(1).max(200), type: z.string().optional() })
  .nullish()
  .transform((user): EventActor | null =>
    // a deleted account is shown as the user "ghost": nobody
    user == null || user.login === 'ghost'
      ? null
      : { id: user.id, login: user.login, bot: user.type === 'Bot' },
  );

/** The repository object of most payloads. */
export const repositorySchema = z
  .object({
    id: idSchema,
    name: z.string().min(1),
    owner: z.object({ id: idSchema, login: z.string().min(1) }),
    default_branch: z.string().optional(),
    private: z.boolean(),
  })
  .transform(
    (r): EventRepository => ({
      id: r.id,
      owner: r.owner.login,
      ownerId: r.owner.id,
      name: r.name,
      defaultBranch: r.default_branch ?? '',
      private: r.private,
    }),
  );

/** A repository in an installation's list. */
export const listedSchema = z
  .object({
    id: idSchema,
    name: z.string().min(1),
    full_name: z.string().min(3),
    private: z.boolean().optional(),
  })
  .transform(
    (r): ListedRepository => ({
      id: r.id,
      owner: r.full_name.slice(0, r.full_name.indexOf('/')),
      name: r.name,
      private: r.private ?? true,
    }),
  );

/** A git object id (GIT-5). */
export const oid = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
/** A payload's action. */
export const action = z.string().min(1).max(100);
const installed = z.object({ id: idSchema });
/** What every event of a repository carries. */
export const inRepository = { installation: installed, repository: repositorySchema };
