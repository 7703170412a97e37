/** Reviews of ours on pull requests of one installation (PUB-5). */
import * as z from 'zod';
import { idSchema } from '../../lossless.ts';
import type { GitHub } from '../../port.ts';
import type { Addresses } from '../address.ts';
import { type Client, parse } from '../client.ts';

type Reviews = Pick<GitHub, 'createReview' | 'findReview' | 'listPatches'>;

const created = z.object({ id: idSchema });
const reviewShape = z
  .object({ id: idSchema, user: z.object({ login: z.string() }).nullish(), body: z.string().nullish() })
  .transform((one) => ({ id: one.id, login: one.user?.login ?? null, body: one.body ?? '' }));
const patchShape = z
  .object({ filename: z.string(), patch: z.string().nullish() })
  .transform((one) => ({ path: one.filename, patch: one.patch ?? null }));

/** The review calls. */
export function reviews(client: Client, addresses: Addresses): Reviews {
  return {
    createReview: (repo, pull, { commit, body, comments }) =>
      addresses.write(repo, async (at) => {
        const { data } = await client.write(
          'POST /repos/{owner}/{repo}/pulls/{number}/reviews',
          {
            ...at,
            number: pull,
            commit_id: commit,
            body,
            // a comment and nothing else: it never approves, and never asks for changes
            event: 'COMMENT',
            comments: comments.map(({ path, startLine, endLine, body: text }) => ({
              path,
              body: text,
              line: endLine,
              side: 'RIGHT',
              ...(startLine < endLine ? { start_line: startLine, start_side: 'RIGHT' } : {}),
            })),
          },
          'comment',
        );
        return parse(created, data, 'pulls/create-review');
      }),

    findReview: (repo, pull, login, marker) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/pulls/{number}/reviews';
        const items = await client.list(route, { ...at, number: pull });
        const found = items
          .map((item) => parse(reviewShape, item, 'pulls/list-reviews'))
          .findLast((one) => one.login === login && one.body.startsWith(marker));
        return found === undefined ? null : { id: found.id };
      }),

    listPatches: (repo, pull) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/pulls/{number}/files';
        const items = await client.list(route, { ...at, number: pull });
        return items.map((item) => parse(patchShape, item, 'pulls/list-files'));
      }),
  };
}
