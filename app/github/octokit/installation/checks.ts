/** Check runs of one installation. */
import * as z from 'zod';
import { idSchema } from '../../lossless.ts';
import type { CheckRunContent } from '../../port/check.ts';
import type { GitHub } from '../../port.ts';
import type { Addresses } from '../address.ts';
import { type Client, parse } from '../client.ts';
import { checkRunShape } from '../shapes.ts';

type Checks = Pick<
  GitHub,
  'createCheckRun' | 'updateCheckRun' | 'getCheckRun' | 'listCheckRuns' | 'listChecksNamed'
>;

/** The check run calls; `orNull` turns `github_not_found` into null. */
export function checks(
  client: Client,
  addresses: Addresses,
  appId: string,
  orNull: <T>(promise: Promise<T>) => Promise<T | null>,
): Checks {
  return {
    createCheckRun: (repo, input, turn) =>
      addresses.write(repo, async (at) => {
        const route = 'POST /repos/{owner}/{repo}/check-runs';
        const { name, headSha: head_sha, externalId: external_id } = input;
        const given = { ...at, name, head_sha, external_id, ...body(input) };
        const { data } = await client.write(route, given, turn);
        return parse(z.object({ id: idSchema }), data, 'checks/create');
      }),

    updateCheckRun: (repo, id, content, turn) =>
      addresses.write(repo, async (at) => {
        const route = 'PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}';
        await client.write(route, { ...at, check_run_id: id, ...body(content) }, turn);
      }),

    getCheckRun: (repo, id) =>
      orNull(
        addresses.read(repo, async (at) => {
          const route = 'GET /repos/{owner}/{repo}/check-runs/{check_run_id}';
          const { data } = await client.read(route, { ...at, check_run_id: id });
          return parse(checkRunShape, data, 'checks/get');
        }),
      ),

    listCheckRuns: (repo, sha, name) =>
      addresses.read(repo, async (at) => {
        const items = await client.list(
          'GET /repos/{owner}/{repo}/commits/{ref}/check-runs',
          {
            ...at,
            ref: sha,
            filter: 'all',
            app_id: appId,
            ...(name === undefined ? {} : { check_name: name }),
          },
          { key: 'check_runs' },
        );
        return (
          items
            .map((item) => parse(checkRunShape, item, 'checks/list-for-ref'))
            // the filter is GitHub's, the answer is what we rely on (facts/security.md, finding 13)
            .filter((run) => run.appId === appId && run.headSha === sha)
            .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? 1 : -1))
        );
      }),

    listChecksNamed: (repo, sha, name) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/commits/{ref}/check-runs';
        const given = { ...at, ref: sha, filter: 'latest', check_name: name };
        const items = await client.list(route, given, { key: 'check_runs' });
        return items
          .map((item) => parse(checkRunShape, item, 'checks/list-for-ref'))
          .filter((run) => run.name === name && run.headSha === sha);
      }),
  };
}

function body(content: CheckRunContent): Record<string, unknown> {
  return {
    status: content.status,
    ...(content.conclusion === undefined ? {} : { conclusion: content.conclusion }),
    ...(content.detailsUrl === undefined ? {} : { details_url: content.detailsUrl }),
    ...(content.actions === undefined ? {} : { actions: content.actions }),
    output: {
      title: content.title,
      summary: content.summary,
      ...(content.text === undefined ? {} : { text: content.text }),
      ...(content.annotations === undefined ? {} : { annotations: content.annotations }),
    },
  };
}
