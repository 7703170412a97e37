/** Pools as the policy writes them (POOL-1): where the tickets of a repository run. */
import * as z from 'zod';
import { count, residentName } from './values.ts';
import { workflowFile } from './verify.ts';

/** What the pool that a policy does not name is. */
export const DEFAULT_POOL = {
  kind: 'workflow' as const,
  workflow: 'countersign.yml',
  capacity: 4,
  serves: ['review' as const],
};

/** One pool of a policy. */
export const pool = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('workflow').describe('A workflow file started by `workflow_dispatch`.'),
    workflow: workflowFile.prefault(DEFAULT_POOL.workflow).describe('The file in `.github/workflows`.'),
    capacity: count(1, 256, 'Runners at once.').default(DEFAULT_POOL.capacity),
    serves: z
      .array(z.literal('review', 'review: a workflow of the default branch runs no code of a pull request'))
      .min(1)
      .max(1)
      .default([...DEFAULT_POOL.serves])
      .describe('Kinds of tickets.'),
  }),
  z.strictObject({
    kind: z
      .literal('resident')
      .describe(
        'Long-lived `countersign runner` processes of whoever runs the server: used before workflow files, while any is alive.',
      ),
    name: residentName.describe('The pool’s name, as `countersign pool add` registered it.'),
    capacity: count(1, 256, 'Runners of it that this repository counts on.').default(DEFAULT_POOL.capacity),
    serves: z
      .array(z.enum(['review', 'verify']))
      .min(1)
      .max(2)
      .refine((kinds) => new Set(kinds).size === kinds.length, 'each kind once')
      .default([...DEFAULT_POOL.serves])
      .describe('Kinds of work: files to review, and verify commands of `from: pool`.'),
  }),
]);

/** A pool of a policy as read. */
export type PoolEntry = z.infer<typeof pool>;

/** Whether tickets of files run there. */
export function servesReviews(entry: PoolEntry): boolean {
  return entry.serves.some((kind) => kind === 'review');
}

/** What a pool is known by: the name of a resident one, the file of a workflow one. */
export function poolName(entry: PoolEntry): string {
  return entry.kind === 'resident' ? entry.name : entry.workflow;
}
