/** Who made commits, who reviewed, who may write (GAT-6). */
import * as z from 'zod';
import { idSchema } from '../../lossless.ts';
import type { CommitAccounts, PeopleCalls, ReviewInfo } from '../../port/people.ts';
import type { RepositoryAddress } from '../../port.ts';
import type { Addresses } from '../address.ts';
import { type Client, parse } from '../client.ts';
import { actorShape } from '../shapes.ts';

// GitHub answers an empty object where a signature maps to nobody
const account = z
  .union([z.object({ id: idSchema, login: z.string() }), z.object({})])
  .nullish()
  .transform((user) => (user != null && 'id' in user && user.login !== 'ghost' ? user.id : null));
const commitShape = z
  .object({ sha: z.string(), author: account, committer: account })
  .transform((c): [string, CommitAccounts] => [c.sha, { author: c.author, committer: c.committer }]);

const STATES = ['approved', 'changes_requested', 'commented', 'dismissed'] as const;
const reviewShape = z
  .object({
    id: idSchema,
    user: actorShape,
    state: z.string(),
    commit_id: z.string().nullish(),
    submitted_at: z.string().nullish(),
  })
  .transform(
    (r): ReviewInfo => ({
      id: r.id,
      author: r.user === null ? null : { id: r.user.id, login: r.user.login, bot: r.user.type === 'Bot' },
      state: STATES.find((one) => one === r.state.toLowerCase()) ?? 'pending',
      commit: r.commit_id ?? null,
      submittedAt: r.submitted_at ?? null,
    }),
  );
const memberShape = z.object({ id: idSchema });

/** facts/github.md §5: what a list of a pull request's commits holds at most. */
const MOST_LISTED = 250;

/** The calls of one installation. */
export function people(
  client: Client,
  addresses: Addresses,
  orNull: <T>(promise: Promise<T>) => Promise<T | null>,
): PeopleCalls {
  const commits = async (repo: RepositoryAddress, route: string, more: object, key?: string) => {
    const items = await addresses.read(repo, (at) =>
      client.list(route, { ...at, ...more }, key === undefined ? {} : { key }),
    );
    return items.map((item) => parse(commitShape, item, route));
  };
  return {
    async listCommitAccounts(repo, { pull, base, head, commits: wanted }) {
      const found = new Map(
        wanted.length > MOST_LISTED
          ? []
          : await commits(repo, 'GET /repos/{owner}/{repo}/pulls/{number}/commits', { number: pull }),
      );
      if (wanted.every((oid) => found.has(oid))) return found;
      // longer, or of a head that the list does not show yet (case 7)
      const route = 'GET /repos/{owner}/{repo}/compare/{basehead}';
      const compared = await orNull(commits(repo, route, { basehead: `${base}...${head}` }, 'commits'));
      return new Map([...found, ...(compared ?? [])]);
    },

    listReviews: (repo, pull) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/pulls/{number}/reviews';
        const items = await client.list(route, { ...at, number: pull });
        return items.map((item) => parse(reviewShape, item, 'pulls/list-reviews'));
      }),

    getReview: (repo, pull, id) =>
      orNull(
        addresses.read(repo, async (at) => {
          const route = 'GET /repos/{owner}/{repo}/pulls/{number}/reviews/{id}';
          const { data } = await client.read(route, { ...at, number: pull, id });
          return parse(reviewShape, data, 'pulls/get-review');
        }),
      ),

    listWriters: (repo) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/collaborators';
        const items = await client.list(route, { ...at, permission: 'push' }, { most: 2 });
        return items.map((item) => parse(memberShape, item, 'repos/list-collaborators').id);
      }),
  };
}
