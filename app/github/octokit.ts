/** `GitHubApp` and `GitHub` of port.ts over Probot's authentication and its Octokit, one client an installation. */
import { Probot, ProbotOctokit } from 'probot';
import * as z from 'zod';
import { Fault } from '../errors.ts';
import { idSchema } from './lossless.ts';
import { createAddresses } from './octokit/address.ts';
import { type Client, createClient, parse } from './octokit/client.ts';
import { createInstallation, listRepositories } from './octokit/installation.ts';
import { createPace } from './octokit/pace.ts';
import { deliveryShape, installationShape } from './octokit/shapes.ts';
import { transport } from './octokit/transport.ts';
import type { GitHub, GitHubApp, RepositoryAddress } from './port.ts';

type ProbotLog = NonNullable<NonNullable<ConstructorParameters<typeof Probot>[0]>['log']>;

/** How long a token is used: it lives an hour, and a fetch that begins late may take minutes. */
const TOKEN_MS = 45 * 60_000;

/** How to reach GitHub as the App. */
export interface GitHubAppOptions {
  readonly appId: string;
  /** PEM. */
  readonly privateKey: string;
  /** Probot signs nothing with it here, and falls back to a public word without one. */
  readonly webhookSecret: string;
  readonly apiUrl: string;
  /** Probot's and Octokit's own log; keep it silent: it would print request bodies. */
  readonly log: ProbotLog;
  /** Ends what is under way. */
  readonly stop?: AbortSignal;
}

/**
 * The App. Octokit's throttling is off, since it spaces every write by a second and queues without
 * a bound; `pace.ts` keeps the same budget per installation and lets the first writes go at once.
 * Its retries are off, since they repeat creates. Both by a function of the options: what is passed
 * to `defaults` as an object is overridden by Probot (facts/stack.md §3).
 */
export function createGitHubApp(options: GitHubAppOptions): GitHubApp {
  const fetchThrough = transport(options.stop ?? new AbortController().signal);
  const Octokit = ProbotOctokit.defaults((given: object) => ({
    ...given,
    throttle: { enabled: false },
    retry: { enabled: false },
  }));
  const probot = new Probot({
    appId: Number(options.appId),
    privateKey: options.privateKey,
    secret: options.webhookSecret,
    baseUrl: options.apiUrl,
    request: { fetch: fetchThrough },
    log: options.log,
    Octokit,
  });
  const installations = new Map<string, Promise<{ github: GitHub; client: Client }>>();
  let own: Promise<Client> | null = null;

  const asApp = () => {
    own ??= probot
      .auth()
      .then((octokit) => createClient(octokit, createPace({ mostAnHour: Number.POSITIVE_INFINITY })));
    return own;
  };

  const connect = (id: string) => {
    let made = installations.get(id);
    if (made === undefined) {
      made = open(id);
      installations.set(id, made);
      // a failure is not kept: the next call tries again
      made.catch(() => installations.delete(id));
    }
    return made;
  };

  const open = async (id: string) => {
    const number = Number(id);
    if (!Number.isSafeInteger(number))
      throw new Fault('installation_gone', `installation ${id} is above what its token can be asked for`);
    const octokit = await probot.auth(number);
    const client = createClient(octokit, createPace());
    const addresses = createAddresses(client, () => listRepositories(client));
    const tokens = new Map<string, { readonly token: string; readonly until: number }>();
    const readToken = async (repository: RepositoryAddress) => {
      const known = tokens.get(repository.id);
      if (known !== undefined && performance.now() < known.until) return known.token;
      // of this one repository and for reading alone: git gets no more than it needs
      const { data } = await (await asApp()).write(
        'POST /app/installations/{installation_id}/access_tokens',
        {
          installation_id: number,
          repository_ids: [Number(repository.id)],
          permissions: { contents: 'read' },
        },
      );
      const { token } = parse(
        z.object({ token: z.string().min(1) }),
        data,
        'create-installation-access-token',
      );
      tokens.set(repository.id, { token, until: performance.now() + TOKEN_MS });
      return token;
    };
    return { github: createInstallation(client, addresses, options.appId, readToken), client };
  };

  return {
    appId: options.appId,

    async slug() {
      const { data } = await (await asApp()).read('GET /app');
      return parse(z.object({ slug: z.string() }), data, 'apps/get-authenticated').slug;
    },

    async listInstallations() {
      const items = await (await asApp()).list('GET /app/installations');
      return items.map((item) => parse(installationShape, item, 'apps/list-installations'));
    },

    async listRepositories(installationId) {
      return listRepositories((await connect(installationId)).client);
    },

    async listDeliveries(cursor) {
      const parameters = { per_page: 100, ...(cursor === null ? {} : { cursor }) };
      const answer = await (await asApp()).read('GET /app/hook/deliveries', parameters);
      const deliveries = parse(z.array(deliveryShape), answer.data, 'apps/list-webhook-deliveries');
      const next = /[?&]cursor=([^&>]+)[^>]*>;\s*rel="next"/.exec(answer.link ?? '')?.[1];
      return { deliveries, cursor: next === undefined ? null : decodeURIComponent(next) };
    },

    async redeliver(id) {
      const client = await asApp();
      await client.write('POST /app/hook/deliveries/{delivery_id}/attempts', {
        delivery_id: parse(idSchema, id, 'redeliver'),
      });
    },

    installation: async (id) => (await connect(id)).github,
  };
}
