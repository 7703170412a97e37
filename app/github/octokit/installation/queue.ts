/** Merge queues of one installation: GraphQL alone tells who waits in one (facts/github.md §4). */
import * as z from 'zod';
import type { GitHub, QueueEntry } from '../../port.ts';
import type { Addresses } from '../address.ts';
import { type Client, parse } from '../client.ts';

/** What we ask of a queue; a test holds it against GitHub's published schema. */
export const QUEUE_QUERY = `query ($owner: String!, $name: String!, $branch: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    mergeQueue(branch: $branch) {
      configuration { checkResponseTimeout }
      entries(first: 100, after: $after) {
        nodes {
          position
          headCommit { oid }
          baseCommit { oid }
          pullRequest { number headRefOid }
        }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}`;

const commit = z.object({ oid: z.string() }).nullish();
const queueShape = z.object({
  repository: z
    .object({
      mergeQueue: z
        .object({
          configuration: z.object({ checkResponseTimeout: z.int().nullish() }).nullish(),
          entries: z
            .object({
              nodes: z
                .array(
                  z
                    .object({
                      position: z.int(),
                      headCommit: commit,
                      baseCommit: commit,
                      pullRequest: z.object({ number: z.int(), headRefOid: z.string() }).nullish(),
                    })
                    .nullable(),
                )
                .nullish(),
              pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullish() }),
            })
            .nullish(),
        })
        .nullish(),
    })
    .nullish(),
});
const ruleShape = z.array(
  z.object({
    type: z.string(),
    parameters: z.object({ check_response_timeout_minutes: z.int().optional() }).optional(),
  }),
);

const CALL = 'graphql/mergeQueue';
/** Most pages of a queue: 1,000 entries. */
const MOST_PAGES = 10;

/** The calls about merge queues; `orNull` turns `github_not_found` into null. */
export function queue(
  client: Client,
  addresses: Addresses,
  orNull: <T>(promise: Promise<T>) => Promise<T | null>,
): Pick<GitHub, 'getQueue' | 'getQueueTimeout'> {
  return {
    getQueue: (repo, branch) =>
      orNull(
        // by an address that was seen to be this repository's: nothing in the answer says so
        addresses.write(repo, async (at) => {
          const entries: QueueEntry[] = [];
          let timeoutMs: number | null = null;
          let after: string | null = null;
          for (let page = 0; page < MOST_PAGES; page++) {
            const variables: Record<string, unknown> = { owner: at.owner, name: at.repo, branch, after };
            const answer = await client.query(QUEUE_QUERY, variables, CALL);
            const data: z.infer<typeof queueShape> = parse(queueShape, answer, CALL);
            const found = data.repository?.mergeQueue;
            if (found == null) return null;
            const minutes = found.configuration?.checkResponseTimeout;
            timeoutMs = minutes == null ? timeoutMs : minutes * 60_000;
            for (const node of found.entries?.nodes ?? []) if (node !== null) entries.push(entryOf(node));
            const next = found.entries?.pageInfo;
            if (next?.hasNextPage !== true || next.endCursor == null) break;
            after = next.endCursor;
          }
          return { entries: entries.sort((a, b) => a.position - b.position), timeoutMs };
        }),
      ),

    getQueueTimeout: (repo, branch) =>
      addresses.read(repo, async (at) => {
        const rules = await client.list('GET /repos/{owner}/{repo}/rules/branches/{branch}', {
          ...at,
          branch,
        });
        const minutes = parse(ruleShape, rules, 'repos/get-branch-rules')
          .filter((rule) => rule.type === 'merge_queue')
          .flatMap((rule) => rule.parameters?.check_response_timeout_minutes ?? []);
        return minutes.length === 0 ? null : Math.min(...minutes) * 60_000;
      }),
  };
}

type Node = {
  readonly position: number;
  readonly headCommit?: { readonly oid: string } | null | undefined;
  readonly baseCommit?: { readonly oid: string } | null | undefined;
  readonly pullRequest?: { readonly number: number; readonly headRefOid: string } | null | undefined;
};

function entryOf(node: Node): QueueEntry {
  return {
    position: node.position,
    pull: node.pullRequest == null ? null : String(node.pullRequest.number),
    head: node.pullRequest?.headRefOid ?? null,
    groupHead: node.headCommit?.oid ?? null,
    base: node.baseCommit?.oid ?? null,
  };
}
