import type { Json, User } from '../model.ts';
import type { Repository } from '../repository.ts';
import { nodeId, type World } from '../world.ts';
import { userJson } from './accounts.ts';

const API_PATHS = {
  archive_url: '/{archive_format}{/ref}',
  assignees_url: '/assignees{/user}',
  blobs_url: '/git/blobs{/sha}',
  branches_url: '/branches{/branch}',
  collaborators_url: '/collaborators{/collaborator}',
  comments_url: '/comments{/number}',
  commits_url: '/commits{/sha}',
  compare_url: '/compare/{base}...{head}',
  contents_url: '/contents/{+path}',
  contributors_url: '/contributors',
  deployments_url: '/deployments',
  downloads_url: '/downloads',
  events_url: '/events',
  forks_url: '/forks',
  git_commits_url: '/git/commits{/sha}',
  git_refs_url: '/git/refs{/sha}',
  git_tags_url: '/git/tags{/sha}',
  hooks_url: '/hooks',
  issue_comment_url: '/issues/comments{/number}',
  issue_events_url: '/issues/events{/number}',
  issues_url: '/issues{/number}',
  keys_url: '/keys{/key_id}',
  labels_url: '/labels{/name}',
  languages_url: '/languages',
  merges_url: '/merges',
  milestones_url: '/milestones{/number}',
  notifications_url: '/notifications{?since,all,participating}',
  pulls_url: '/pulls{/number}',
  releases_url: '/releases{/id}',
  stargazers_url: '/stargazers',
  statuses_url: '/statuses/{sha}',
  subscribers_url: '/subscribers',
  subscription_url: '/subscription',
  tags_url: '/tags',
  teams_url: '/teams',
  trees_url: '/git/trees{/sha}',
} as const;

/** A repository in the fullest form, which satisfies every schema of it that GitHub has. */
export function repositoryJson(world: World, repository: Repository, nested = false): Json {
  const api = `${world.apiUrl}/repos/${repository.fullName}`;
  const html = `${world.url}/${repository.fullName}`;
  const open = repository.pulls.filter((pull) => pull.state === 'open').length;
  const parent = repository.forkOf;
  const upstream = nested || parent === null || parent.deleted ? null : repositoryJson(world, parent, true);
  return {
    id: repository.id,
    node_id: nodeId('R', repository.id),
    name: repository.name,
    full_name: repository.fullName,
    private: repository.private,
    owner: userJson(world, repository.owner),
    html_url: html,
    description: null,
    fork: parent !== null,
    url: api,
    ...Object.fromEntries(Object.entries(API_PATHS).map(([name, path]) => [name, `${api}${path}`])),
    created_at: repository.createdAt,
    updated_at: repository.pushedAt,
    pushed_at: repository.pushedAt,
    git_url: `${html}.git`,
    ssh_url: `git@127.0.0.1:${repository.fullName}.git`,
    clone_url: `${html}.git`,
    svn_url: html,
    homepage: null,
    size: 1,
    stargazers_count: 0,
    watchers_count: 0,
    language: null,
    has_issues: true,
    has_projects: false,
    has_downloads: true,
    has_wiki: false,
    has_pages: false,
    has_discussions: false,
    forks_count: 0,
    mirror_url: null,
    archived: false,
    disabled: false,
    open_issues_count: open,
    license: null,
    allow_forking: true,
    is_template: false,
    web_commit_signoff_required: false,
    topics: [],
    visibility: repository.private ? 'private' : 'public',
    forks: 0,
    open_issues: open,
    watchers: 0,
    default_branch: repository.defaultBranch,
    allow_squash_merge: true,
    allow_merge_commit: true,
    allow_rebase_merge: true,
    allow_auto_merge: false,
    delete_branch_on_merge: false,
    network_count: 0,
    subscribers_count: 0,
    ...(upstream === null ? {} : { parent: upstream, source: upstream }),
  };
}

/** A repository in the four fields that installation events carry. */
export function repositoryStub(repository: Repository): Json {
  return {
    id: repository.id,
    node_id: nodeId('R', repository.id),
    name: repository.name,
    full_name: repository.fullName,
    private: repository.private,
  };
}

/** author_association (facts/github.md §13): not a permission, only a hint. */
export function association(repository: Repository, user: User): string {
  if (repository.owner === user) return 'OWNER';
  return repository.collaborators.has(user.id) ? 'COLLABORATOR' : 'NONE';
}
