import { randomBytes } from 'node:crypto';
import { keyPair } from './keys.ts';
import type { App, Installation, Permissions, User } from './model.ts';
import { installationJson } from './render/accounts.ts';
import { repositoryStub } from './render/repositories.ts';
import type { Repository } from './repository.ts';
import type { World } from './world.ts';

/** What an app like ours asks for (facts/github.md §10). */
export const DEFAULT_PERMISSIONS: Permissions = {
  actions: 'write',
  checks: 'write',
  contents: 'read',
  issues: 'write',
  merge_queues: 'read',
  metadata: 'read',
  pull_requests: 'write',
};

/** What it subscribes to; check_run, check_suite and installation events come by themselves. */
export const DEFAULT_EVENTS: readonly string[] = [
  'issue_comment',
  'merge_group',
  'pull_request',
  'pull_request_review',
  'push',
  'repository',
  'workflow_job',
  'workflow_run',
];

/** How an app differs from the default one. */
export interface AppOptions {
  readonly slug?: string;
  readonly id?: number;
  readonly botId?: number;
  readonly owner?: User;
  /** False for an app that never signs anything here: it gets no key, which saves its making. */
  readonly key?: false;
  readonly permissions?: Permissions;
  readonly events?: readonly string[];
}

/** Registers an app with its bot account, a key that no other app here has, and a webhook secret. */
export function registerApp(world: World, options: AppOptions): App {
  const { privateKey, publicKey } =
    options.key === false ? { privateKey: '', publicKey: '' } : newKeys(world.apps.length);
  const slug = options.slug ?? 'countersign';
  const app: App = {
    id: options.id ?? world.id('app'),
    slug,
    name: slug,
    clientId: `Iv23li${randomBytes(7).toString('hex')}`,
    clientSecret: randomBytes(20).toString('hex'),
    callbackUrls: [],
    owner: options.owner ?? world.userByLogin('app-owner') ?? world.addUser('app-owner', 'User'),
    bot: world.addUser(`${slug}[bot]`, 'Bot', options.botId),
    privateKey,
    publicKey,
    hookId: world.id('hook'),
    webhookUrl: null,
    webhookSecret: randomBytes(20).toString('hex'),
    permissions: options.permissions ?? DEFAULT_PERMISSIONS,
    events: options.events ?? DEFAULT_EVENTS,
    createdAt: world.stamp(),
  };
  world.apps.push(app);
  return app;
}

function newKeys(nth: number): { privateKey: string; publicKey: string } {
  const { privateKey, publicKey } = keyPair(`app ${nth}`);
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/** Installs an app on repositories of an account, or with none on all of them; sends `installation.created`. */
export async function install(
  world: World,
  app: App,
  account: User,
  repositories: readonly Repository[],
): Promise<Installation> {
  const installation: Installation = {
    id: world.id('installation'),
    app,
    account,
    permissions: { metadata: 'read', ...app.permissions },
    events: app.events,
    repositoryIds: repositories.length === 0 ? null : new Set(repositories.map((one) => one.id)),
    suspendedAt: null,
    suspendedBy: null,
    deleted: false,
    createdAt: world.stamp(),
    updatedAt: world.stamp(),
  };
  world.installations.push(installation);
  await announceInstallation(world, installation, 'created', repositories);
  return installation;
}

/** Sends an `installation` event to the app that it is about. */
export async function announceInstallation(
  world: World,
  installation: Installation,
  action: 'created' | 'deleted' | 'suspend' | 'unsuspend' | 'new_permissions_accepted',
  repositories: readonly Repository[] = [],
): Promise<void> {
  installation.updatedAt = world.stamp();
  await world.emit({
    event: 'installation',
    action,
    repository: null,
    sender: installation.account,
    onlyInstallation: installation,
    payload: () => ({
      installation: installationJson(world, installation),
      repositories: repositories.map(repositoryStub),
      ...(action === 'created' ? { requester: null } : {}),
    }),
  });
}

/** Adds repositories to an installation, or takes them away; sends `installation_repositories`. */
export async function changeRepositories(
  world: World,
  installation: Installation,
  action: 'added' | 'removed',
  repositories: readonly Repository[],
): Promise<void> {
  const ids = installation.repositoryIds ?? new Set<number>();
  installation.repositoryIds = ids;
  for (const { id } of repositories) {
    if (action === 'added') ids.add(id);
    else ids.delete(id);
  }
  installation.updatedAt = world.stamp();
  const stubs = repositories.map(repositoryStub);
  await world.emit({
    event: 'installation_repositories',
    action,
    repository: null,
    sender: installation.account,
    onlyInstallation: installation,
    payload: () => ({
      installation: installationJson(world, installation),
      repository_selection: 'selected',
      repositories_added: action === 'added' ? stubs : [],
      repositories_removed: action === 'removed' ? stubs : [],
      requester: null,
    }),
  });
}
