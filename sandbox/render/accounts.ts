import type { App, Installation, Json, User } from '../model.ts';
import { nodeId, type World } from '../world.ts';

/** An account as GitHub's `simple-user`. */
export function userJson(world: World, user: User): Json {
  const api = `${world.apiUrl}/users/${encodeURIComponent(user.login)}`;
  const bot = user.type === 'Bot';
  return {
    login: user.login,
    id: user.id,
    node_id: nodeId('U', user.id),
    avatar_url: `${world.url}/avatars/u/${user.id}`,
    gravatar_id: '',
    url: api,
    html_url: bot ? `${world.url}/apps/${user.login.replace('[bot]', '')}` : `${world.url}/${user.login}`,
    followers_url: `${api}/followers`,
    following_url: `${api}/following{/other_user}`,
    gists_url: `${api}/gists{/gist_id}`,
    starred_url: `${api}/starred{/owner}{/repo}`,
    subscriptions_url: `${api}/subscriptions`,
    organizations_url: `${api}/orgs`,
    repos_url: `${api}/repos`,
    events_url: `${api}/events{/privacy}`,
    received_events_url: `${api}/received_events`,
    type: user.type,
    user_view_type: 'public',
    site_admin: false,
  };
}

/** An account as GitHub's `public-user`. */
export function publicUserJson(world: World, user: User): Json {
  return {
    ...userJson(world, user),
    name: user.name,
    company: null,
    blog: '',
    location: null,
    email: null,
    hireable: null,
    bio: null,
    public_repos: world.repositories.filter((repository) => repository.owner === user).length,
    public_gists: 0,
    followers: 0,
    following: 0,
    created_at: user.createdAt,
    updated_at: user.createdAt,
  };
}

/** An app as GitHub's `integration`. */
export function appJson(world: World, app: App): Json {
  return {
    id: app.id,
    slug: app.slug,
    client_id: app.clientId,
    node_id: nodeId('A', app.id),
    owner: userJson(world, app.owner),
    name: app.name,
    description: '',
    external_url: 'https://example.test',
    html_url: `${world.url}/apps/${app.slug}`,
    created_at: app.createdAt,
    updated_at: app.createdAt,
    permissions: app.permissions,
    events: app.events,
  };
}

/** An installation as GitHub's `installation`. */
export function installationJson(world: World, installation: Installation): Json {
  const { app, account } = installation;
  return {
    id: installation.id,
    client_id: app.clientId,
    account: userJson(world, account),
    repository_selection: installation.repositoryIds === null ? 'all' : 'selected',
    access_tokens_url: `${world.apiUrl}/app/installations/${installation.id}/access_tokens`,
    repositories_url: `${world.apiUrl}/installation/repositories`,
    html_url: `${world.url}/settings/installations/${installation.id}`,
    app_id: app.id,
    app_slug: app.slug,
    target_id: account.id,
    target_type: account.type,
    permissions: installation.permissions,
    events: installation.events,
    created_at: installation.createdAt,
    updated_at: installation.updatedAt,
    single_file_name: null,
    has_multiple_single_files: false,
    single_file_paths: [],
    suspended_by: installation.suspendedBy === null ? null : userJson(world, installation.suspendedBy),
    suspended_at: installation.suspendedAt,
  };
}
