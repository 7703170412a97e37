import type { GraphQLSchema } from 'graphql';
import type { MergeQueue, QueueEntry } from '../merge-queue.ts';
import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';
import { authenticate } from './authenticate.ts';
import { type Answer, type Bearer, Refused } from './call.ts';
import type { Faults } from './faults.ts';
import { holds, reaches } from './permit.ts';

/** GraphQL lives here, as on an own GitHub Enterprise host (facts/github.md §18). */
export const GRAPHQL_PATH = '/api/graphql';

let schema: GraphQLSchema | null = null;

/** Authenticates, strikes faults and answers a query; never throws. */
export async function serveQuery(
  { world, faults }: { readonly world: World; readonly faults: Faults },
  authorization: string | undefined,
  bytes: Buffer,
): Promise<{ answer: Answer; bearer: Bearer; body: unknown }> {
  let bearer: Bearer = { kind: 'nobody' };
  let body: unknown;
  try {
    bearer = authenticate(world, authorization);
    body = JSON.parse(bytes.toString());
    const { fault, delay } = faults.strike({
      operation: 'graphql',
      method: 'POST',
      path: GRAPHQL_PATH,
      body,
    });
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    const status = fault?.options.status;
    if (status !== undefined) throw new Refused(status, fault?.options.message ?? 'Server Error');
    return { answer: await answerQuery(world, bearer, body), bearer, body };
  } catch (error) {
    if (!(error instanceof Refused)) world.violations.push(`graphql: ${String(error)}`);
    const { status, message } = error instanceof Refused ? error : { status: 500, message: 'Server Error' };
    return { answer: { status, body: { message } }, bearer, body };
  }
}

/** Answers by GitHub's published schema; the sandbox knows merge queues, everything else is null or an error. */
async function answerQuery(world: World, bearer: Bearer, body: unknown): Promise<Answer> {
  if (bearer.kind !== 'token') throw new Refused(401, 'This endpoint requires you to be authenticated.');
  // facts/github.md §10: a permission that is missing is a 401 here
  if (bearer.token.kind !== 'user' && !holds(bearer.token.permissions, 'merge_queues', 'read'))
    throw new Refused(401, 'Resource not accessible by integration');
  const { query, variables } = (body ?? {}) as { query?: unknown; variables?: unknown };
  if (typeof query !== 'string') throw new Refused(400, 'A query attribute must be specified.');
  // 6 MB of schema: read when the first query comes, so that other tests do not pay for it
  const { buildSchema, graphql } = await import('graphql');
  schema ??= buildSchema((await import('@octokit/graphql-schema')).schema.idl, {
    assumeValid: true,
    assumeValidSDL: true,
  });
  const result = await graphql({
    schema,
    source: query,
    rootValue: { repository: (given: { owner: string; name: string }) => find(world, bearer, given) },
    variableValues: (variables ?? {}) as Record<string, unknown>,
  });
  const errors = result.errors?.map((error) => ({
    type: error.extensions['type'] ?? 'INTERNAL',
    path: error.path,
    message: error.message,
  }));
  return { status: 200, body: { data: result.data ?? null, ...(errors === undefined ? {} : { errors }) } };
}

function find(world: World, bearer: Bearer, { owner, name }: { owner: string; name: string }): unknown {
  const found = world.repositoryByName(owner, name) ?? world.repositoryByFormerName(owner, name);
  if (found === undefined || (bearer.kind === 'token' && !reaches(bearer, found))) {
    const message = `Could not resolve to a Repository with the name '${owner}/${name}'.`;
    throw Object.assign(new Error(message), { extensions: { type: 'NOT_FOUND' } });
  }
  return {
    mergeQueue: ({ branch }: { branch?: string | null }) =>
      queueNode(found, found.queues.get(branch ?? found.defaultBranch)),
  };
}

function queueNode(repository: Repository, queue: MergeQueue | undefined): unknown {
  if (queue === undefined) return null;
  return {
    repository: { name: repository.name },
    configuration: {
      checkResponseTimeout: queue.rule.timeoutMinutes,
      mergeMethod: queue.rule.method,
      mergingStrategy: queue.rule.grouping,
    },
    entries: ({ first, after }: { first?: number | null; after?: string | null }) => {
      const from = after == null ? 0 : Number(after);
      const until = from + (first ?? 100);
      return {
        totalCount: queue.entries.length,
        nodes: queue.entries.slice(from, until).map((entry, i) => entryNode(entry, from + i + 1)),
        pageInfo: { hasNextPage: until < queue.entries.length, endCursor: String(until) },
      };
    },
  };
}

function entryNode(entry: QueueEntry, position: number): unknown {
  const commit = (oid: string | undefined) => (oid === undefined ? null : { oid });
  return {
    position,
    enqueuedAt: entry.enqueuedAt,
    headCommit: commit(entry.group?.head),
    baseCommit: commit(entry.group?.base),
    pullRequest: { number: entry.pull.number, headRefOid: entry.pull.head.sha },
  };
}
