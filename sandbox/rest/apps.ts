import { issueToken } from '../http/authenticate.ts';
import {
  type Answer,
  type Call,
  type Handler,
  notFound,
  paged,
  Refused,
  repositoryOf,
} from '../http/call.ts';
import type { Limits } from '../http/limits.ts';
import { holds, reaches } from '../http/permit.ts';
import type { App, Delivery, Installation, Json, Permissions } from '../model.ts';
import type { OperationId } from '../operations.ts';
import { appJson, installationJson, publicUserJson } from '../render/accounts.ts';
import { repositoryJson } from '../render/repositories.ts';
import type { Webhooks } from '../webhooks.ts';
import { covers } from '../world.ts';

const DAY = 86_400_000;

/** Apps, installations, tokens, deliveries, accounts, limits. */
export function appHandlers(webhooks: Webhooks, limits: Limits) {
  return {
    'meta/root': ({ world }) => ({ status: 200, body: rootJson(world.apiUrl) }),

    'rate-limit/get': ({ world, bearer }) => {
      const core = limits.state(world, bearer);
      const idle = { limit: 30, used: 0, remaining: 30, reset: core.reset };
      return { status: 200, body: { resources: { core, search: idle }, rate: core } };
    },

    'users/get-by-username': ({ world, path }) => {
      const user = world.userByLogin(String(path['username']));
      if (user === undefined) throw notFound();
      return { status: 200, body: publicUserJson(world, user) };
    },

    'apps/get-authenticated': (call) => {
      const app = appOf(call);
      const installations = call.world.installations.filter((one) => one.app === app && !one.deleted);
      return {
        status: 200,
        body: { ...appJson(call.world, app), installations_count: installations.length },
      };
    },

    'apps/list-installations': (call) => {
      const app = appOf(call);
      const all = call.world.installations.filter((one) => one.app === app && !one.deleted);
      const { items, headers } = paged(call, all);
      return { status: 200, headers, body: items.map((one) => installationJson(call.world, one)) };
    },

    'apps/get-installation': (call) => ({
      status: 200,
      body: installationJson(call.world, installationOf(call)),
    }),

    'apps/get-repo-installation': (call) => {
      const app = appOf(call);
      const repository = repositoryOf(call);
      const found = call.world.installationsOn(repository).find((one) => one.app === app);
      if (found === undefined) throw notFound();
      return { status: 200, body: installationJson(call.world, found) };
    },

    'apps/create-installation-access-token': createToken,

    'apps/list-repos-accessible-to-installation': (call) => {
      const { world, bearer } = call;
      const all = world.repositories.filter((one) => !one.deleted && reaches(bearer, one));
      const { items, headers } = paged(call, all);
      const repositories = items.map((one) => repositoryJson(world, one));
      return { status: 200, headers, body: { total_count: all.length, repositories } };
    },

    'apps/list-webhook-deliveries': (call) => {
      const { query, url } = call;
      const size = Math.min(Number(query['per_page'] ?? 30), 100);
      const before = Number(
        /^v1_(\d+)$/.exec(String(query['cursor'] ?? ''))?.[1] ?? Number.POSITIVE_INFINITY,
      );
      const wanted = query['status'];
      const all = keptDeliveries(call)
        .filter((one) => one.id < before)
        .filter((one) => wanted === undefined || succeeded(one) === (wanted === 'success'))
        .reverse();
      const items = all.slice(0, size);
      const headers: Record<string, string> = {};
      if (all.length > size) {
        const next = new URL(url);
        next.searchParams.set('cursor', `v1_${items.at(-1)?.id}`);
        headers['link'] = `<${next.href}>; rel="next"`;
      }
      return { status: 200, headers, body: items.map(deliveryItem) };
    },

    'apps/get-webhook-delivery': (call) => {
      const delivery = deliveryOf(call);
      return {
        status: 200,
        body: {
          ...deliveryItem(delivery),
          url: delivery.app.webhookUrl ?? '',
          request: { headers: delivery.requestHeaders, payload: JSON.parse(delivery.body) as Json },
          response: { headers: delivery.responseHeaders, payload: delivery.responseBody },
        },
      };
    },

    'apps/redeliver-webhook-delivery': (call) => {
      webhooks.redeliver(deliveryOf(call));
      return { status: 202, body: {} };
    },
  } satisfies Partial<Record<OperationId, Handler>>;
}

function appOf(call: Call): App {
  if (call.bearer.kind !== 'app') throw new Refused(401, 'A JSON web token could not be decoded');
  return call.bearer.app;
}

function installationOf(call: Call): Installation {
  const app = appOf(call);
  const id = Number(call.path['installation_id']);
  const found = call.world.installations.find((one) => one.id === id && one.app === app && !one.deleted);
  if (found === undefined) throw notFound();
  return found;
}

// facts/github.md §11: deliveries are kept for 3 days.
function keptDeliveries(call: Call): Delivery[] {
  const app = appOf(call);
  const oldest = call.world.now().getTime() - 3 * DAY;
  return call.world.deliveries.filter(
    (one) => one.app === app && one.status !== 'pending' && Date.parse(one.deliveredAt) >= oldest,
  );
}

function deliveryOf(call: Call): Delivery {
  const found = keptDeliveries(call).find((one) => one.id === Number(call.path['delivery_id']));
  if (found === undefined) throw notFound();
  return found;
}

function succeeded(delivery: Delivery): boolean {
  return delivery.statusCode >= 200 && delivery.statusCode < 300;
}

function deliveryItem(delivery: Delivery): Json {
  return {
    id: delivery.id,
    guid: delivery.guid,
    delivered_at: delivery.deliveredAt,
    redelivery: delivery.redelivery,
    duration: delivery.duration,
    status: delivery.status,
    status_code: delivery.statusCode,
    event: delivery.event,
    action: delivery.action,
    installation_id: delivery.installationId,
    repository_id: delivery.repositoryId,
    throttled_at: null,
  };
}

/** facts/github.md §0: 1 hour, at most 500 repositories, narrowed by repositories, repository_ids, permissions. */
function createToken(call: Call): Answer {
  const { world, body } = call;
  const installation = installationOf(call);
  if (installation.suspendedAt !== null) throw new Refused(403, 'This installation has been suspended');
  const covered = world.repositories.filter((one) => !one.deleted && covers(installation, one));
  const ids = body['repository_ids'] as number[] | undefined;
  const names = body['repositories'] as string[] | undefined;
  const narrowed = ids !== undefined || names !== undefined;
  const chosen = narrowed
    ? covered.filter((one) => ids?.includes(one.id) === true || names?.includes(one.name) === true)
    : covered;
  const asked = new Set([...(ids ?? []), ...(names ?? [])]).size;
  if (narrowed && (chosen.length !== asked || asked > 500))
    throw new Refused(
      422,
      'There is at least one repository that does not exist or is not accessible to the parent installation.',
    );
  const wanted = body['permissions'] as Permissions | undefined;
  for (const [name, level] of Object.entries(wanted ?? {}))
    if (name !== 'metadata' && !holds(installation.permissions, name, level))
      throw new Refused(422, 'The permissions requested are not granted to this installation.');
  const token = issueToken(world, {
    kind: 'installation',
    appId: installation.app.id,
    installation,
    user: installation.app.bot,
    permissions: wanted ?? installation.permissions,
    repositoryIds: narrowed ? new Set(chosen.map((one) => one.id)) : null,
  });
  return {
    status: 201,
    body: {
      token: token.token,
      expires_at: new Date(token.expiresAt).toISOString().replace(/\.\d+Z$/, 'Z'),
      permissions: token.permissions,
      repository_selection: narrowed || installation.repositoryIds !== null ? 'selected' : 'all',
      ...(narrowed ? { repositories: chosen.map((one) => repositoryJson(world, one)) } : {}),
    },
  };
}

function rootJson(api: string): Json {
  const paths: Record<string, string> = {
    current_user_url: '/user',
    current_user_authorizations_html_url: '/settings/connections/applications{/client_id}',
    authorizations_url: '/authorizations',
    code_search_url: '/search/code?q={query}{&page,per_page,sort,order}',
    commit_search_url: '/search/commits?q={query}{&page,per_page,sort,order}',
    emails_url: '/user/emails',
    emojis_url: '/emojis',
    events_url: '/events',
    feeds_url: '/feeds',
    followers_url: '/user/followers',
    following_url: '/user/following{/target}',
    gists_url: '/gists{/gist_id}',
    hub_url: '/hub',
    issue_search_url: '/search/issues?q={query}{&page,per_page,sort,order}',
    issues_url: '/issues',
    keys_url: '/user/keys',
    label_search_url: '/search/labels?q={query}&repository_id={repository_id}{&page,per_page}',
    notifications_url: '/notifications',
    organization_url: '/orgs/{org}',
    organization_repositories_url: '/orgs/{org}/repos{?type,page,per_page,sort}',
    organization_teams_url: '/orgs/{org}/teams',
    public_gists_url: '/gists/public',
    rate_limit_url: '/rate_limit',
    repository_url: '/repos/{owner}/{repo}',
    repository_search_url: '/search/repositories?q={query}{&page,per_page,sort,order}',
    current_user_repositories_url: '/user/repos{?type,page,per_page,sort}',
    starred_url: '/user/starred{/owner}{/repo}',
    starred_gists_url: '/gists/starred',
    topic_search_url: '/search/topics?q={query}{&page,per_page}',
    user_url: '/users/{user}',
    user_organizations_url: '/user/orgs',
    user_repositories_url: '/users/{user}/repos{?type,page,per_page,sort}',
    user_search_url: '/search/users?q={query}{&page,per_page,sort,order}',
  };
  return Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, `${api}${path}`]));
}
