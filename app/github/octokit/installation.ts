/** The REST side for one installation: what port.ts promises, call by call. */
import * as z from 'zod';
import { Fault } from '../../errors.ts';
import { idSchema } from '../lossless.ts';
import type { GitHub, RepositoryAddress, RepositoryInfo } from '../port.ts';
import type { Addresses } from './address.ts';
import { type Client, parse } from './client.ts';
import { checks } from './installation/checks.ts';
import { jobs } from './installation/jobs.ts';
import { people } from './installation/people.ts';
import { queue } from './installation/queue.ts';
import { reviews } from './installation/reviews.ts';
import { workflows } from './installation/workflows.ts';
import { commentShape, permissionShape, pullShape, repositoryShape } from './shapes.ts';

const shaShape = z.object({ sha: z.string() });
const pullFileShape = z.object({ filename: z.string(), previous_filename: z.string().nullish() });
const created = z.object({ id: idSchema });
const contentShape = z.union([
  z.object({ type: z.literal('file'), encoding: z.string(), content: z.string() }),
  z.object({ type: z.string() }),
  z.array(z.unknown()),
]);
const rulesShape = z.array(
  z.object({
    type: z.string(),
    parameters: z
      .object({
        required_status_checks: z
          .array(z.object({ context: z.string(), integration_id: idSchema.nullish() }))
          .optional(),
      })
      .optional(),
  }),
);
const branchShape = z.object({
  commit: shaShape,
  protection: z
    .object({
      required_status_checks: z
        .object({
          contexts: z.array(z.string()).default([]),
          checks: z
            .array(z.object({ context: z.string(), app_id: z.union([idSchema, z.literal(-1)]).nullish() }))
            .default([]),
        })
        .nullish(),
    })
    .nullish(),
});

/** Null instead of `github_not_found`. */
async function orNull<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof Fault && error.code === 'github_not_found') return null;
    throw error;
  }
}

/** Lists the repositories that the installation covers today. */
export async function listRepositories(client: Client): Promise<RepositoryInfo[]> {
  const items = await client.list('GET /installation/repositories', {}, { key: 'repositories' });
  return items.map((item) => parse(repositoryShape, item, 'apps/list-repos-accessible-to-installation'));
}

/** The GitHub of one installation. */
export function createInstallation(
  client: Client,
  addresses: Addresses,
  appId: string,
  readToken: (repository: RepositoryAddress) => Promise<string>,
): GitHub {
  const readBranch = (repo: RepositoryAddress, branch: string) =>
    orNull(
      addresses.read(repo, async (at) => {
        const { data } = await client.read('GET /repos/{owner}/{repo}/branches/{branch}', { ...at, branch });
        return parse(branchShape, data, 'repos/get-branch');
      }),
    );

  return {
    ...checks(client, addresses, appId, orNull),
    ...jobs(client, addresses),
    ...queue(client, addresses, orNull),
    ...reviews(client, addresses),
    ...workflows(client, addresses, orNull),
    ...people(client, addresses, orNull),

    getRepository: (repo) =>
      addresses.read(repo, async (at) => {
        const { data } = await client.read('GET /repos/{owner}/{repo}', { ...at });
        const info = parse(repositoryShape, data, 'repos/get');
        if (info.id === repo.id) return info;
        // somebody else took the old name (case 75)
        const now = (await listRepositories(client)).find((one) => one.id === repo.id);
        if (now === undefined) throw new Fault('github_not_found', `repository ${repo.id} is gone`);
        return now;
      }),

    getPull: (repo, number) =>
      addresses.read(repo, async (at) => {
        const { data } = await client.read('GET /repos/{owner}/{repo}/pulls/{number}', { ...at, number });
        return parse(pullShape, data, 'pulls/get');
      }),

    listOpenPulls: (repo) =>
      addresses.read(repo, async (at) => {
        const pulls = await client.list('GET /repos/{owner}/{repo}/pulls', { ...at, state: 'open' });
        return pulls.map((pull) => parse(pullShape, pull, 'pulls/list'));
      }),

    listPullPaths: (repo, number) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/pulls/{number}/files';
        const files = await client.list(route, { ...at, number });
        return files.flatMap((file) => {
          const { filename, previous_filename: previous } = parse(pullFileShape, file, 'pulls/list-files');
          return previous == null ? [filename] : [filename, previous];
        });
      }),

    getMergeBase: (repo, base, head) =>
      orNull(
        addresses.read(repo, async (at) => {
          const route = 'GET /repos/{owner}/{repo}/compare/{basehead}';
          const { data } = await client.read(route, { ...at, basehead: `${base}...${head}`, per_page: 1 });
          const compared = parse(z.object({ merge_base_commit: shaShape }), data, 'repos/compare-commits');
          return compared.merge_base_commit.sha;
        }),
      ),

    getBranchHead: async (repo, branch) => (await readBranch(repo, branch))?.commit.sha ?? null,

    getContent: (repo, path, ref) =>
      orNull(
        addresses.read(repo, async (at) => {
          const route = 'GET /repos/{owner}/{repo}/contents/{path}';
          const { data } = await client.read(route, { ...at, path, ref });
          const content = parse(contentShape, data, 'repos/get-content');
          if (Array.isArray(content) || !('content' in content))
            throw new Fault('github_not_found', 'repos/get-content: that path is no file');
          // above 1 MB the text is left out and the encoding says so
          if (content.encoding !== 'base64')
            throw new Fault('github_refused', 'repos/get-content: the file is over 1 MB');
          return Buffer.from(content.content, 'base64');
        }),
      ),

    async getRequiredCheck(repo, branch, name) {
      const rules = await orNull(
        addresses.read(repo, async (at) => {
          const route = 'GET /repos/{owner}/{repo}/rules/branches/{branch}';
          const items = await client.list(route, { ...at, branch });
          return parse(rulesShape, items, 'repos/get-branch-rules');
        }),
      );
      for (const rule of rules ?? []) {
        if (rule.type !== 'required_status_checks') continue;
        const found = rule.parameters?.required_status_checks?.find((check) => check.context === name);
        if (found !== undefined) return { appId: found.integration_id ?? null };
      }
      // classic protection: a branch shows as much of it as a reader may see
      const required = (await readBranch(repo, branch))?.protection?.required_status_checks;
      const check = required?.checks.find((one) => one.context === name);
      if (check !== undefined) return { appId: typeof check.app_id === 'string' ? check.app_id : null };
      return required?.contexts.includes(name) === true ? { appId: null } : null;
    },

    async getPermission(repo, login) {
      const route = 'GET /repos/{owner}/{repo}/collaborators/{username}/permission';
      const found = await orNull(
        addresses.read(repo, async (at) => {
          const { data } = await client.read(route, { ...at, username: login });
          return parse(permissionShape, data, 'repos/get-collaborator-permission-level');
        }),
      );
      return found ?? { permission: 'none', userId: null };
    },

    createComment: (repo, pull, body) =>
      addresses.write(repo, async (at) => {
        const route = 'POST /repos/{owner}/{repo}/issues/{number}/comments';
        const { data } = await client.write(route, { ...at, number: pull, body }, 'comment');
        return parse(created, data, 'issues/create-comment');
      }),

    updateComment: (repo, id, body) =>
      addresses.write(repo, async (at) => {
        const route = 'PATCH /repos/{owner}/{repo}/issues/comments/{id}';
        await client.write(route, { ...at, id, body }, 'comment');
      }),

    listComments: (repo, pull, since) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/issues/{number}/comments';
        const items = await client.list(route, {
          ...at,
          number: pull,
          ...(since === undefined ? {} : { since }),
        });
        // GitHub's `since` asks for changes, ours for what is new; seconds are its finest, so the same one stays in
        return items
          .map((item) => parse(commentShape, item, 'issues/list-comments'))
          .filter(
            (comment) =>
              since === undefined ||
              Date.parse(comment.createdAt) >= Math.floor(Date.parse(since) / 1000) * 1000,
          );
      }),

    listRecentComments: (repo, since) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/issues/comments';
        const items = await client.list(route, { ...at, since, sort: 'updated', direction: 'asc' });
        return items.map((item) => parse(commentShape, item, 'issues/list-comments-for-repo'));
      }),

    addReaction: (repo, commentId, content) =>
      addresses.write(repo, async (at) => {
        const route = 'POST /repos/{owner}/{repo}/issues/comments/{id}/reactions';
        // seen at once, or the command waits behind talk
        await client.write(route, { ...at, id: commentId, content }, 'work');
      }),

    readToken,
  };
}
