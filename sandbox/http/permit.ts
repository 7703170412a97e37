import type { Level, Permissions, Role } from '../model.ts';
import type { OperationId } from '../operations.ts';
import type { Repository } from '../repository.ts';
import { covers } from '../world.ts';
import { type Bearer, notFound, Refused } from './call.ts';

type Need = 'anyone' | 'app' | 'installation' | 'user' | readonly (readonly [string, Level])[];

const read = (name: string): Need => [[name, 'read']];
const write = (name: string): Need => [[name, 'write']];

/** What each operation needs (facts/github.md §10); several entries are alternatives. */
const NEEDS: Readonly<Record<OperationId, Need>> = {
  'actions/cancel-workflow-run': write('actions'),
  'actions/create-workflow-dispatch': write('actions'),
  'actions/force-cancel-workflow-run': write('actions'),
  'actions/get-workflow': read('actions'),
  'actions/get-workflow-run': read('actions'),
  'actions/list-jobs-for-workflow-run': read('actions'),
  'actions/list-workflow-runs': read('actions'),
  'actions/list-workflow-runs-for-repo': read('actions'),
  'actions/re-run-job-for-workflow-run': write('actions'),
  'actions/re-run-workflow': write('actions'),
  'actions/re-run-workflow-failed-jobs': write('actions'),
  'apps/create-installation-access-token': 'app',
  'apps/get-authenticated': 'app',
  'apps/get-installation': 'app',
  'apps/get-repo-installation': 'app',
  'apps/get-webhook-delivery': 'app',
  'apps/list-installations': 'app',
  'apps/list-installations-for-authenticated-user': 'user',
  'apps/list-repos-accessible-to-installation': 'installation',
  'apps/list-webhook-deliveries': 'app',
  'apps/redeliver-webhook-delivery': 'app',
  'checks/create': write('checks'),
  'checks/get': read('checks'),
  'checks/list-annotations': read('checks'),
  'checks/list-for-ref': read('checks'),
  'checks/list-suites-for-ref': read('checks'),
  'checks/rerequest-run': write('checks'),
  'checks/update': write('checks'),
  'git/get-ref': read('contents'),
  'issues/create-comment': [
    ['issues', 'write'],
    ['pull_requests', 'write'],
  ],
  'issues/get-comment': [
    ['issues', 'read'],
    ['pull_requests', 'read'],
  ],
  'issues/list-comments': [
    ['issues', 'read'],
    ['pull_requests', 'read'],
  ],
  'issues/list-comments-for-repo': [
    ['issues', 'read'],
    ['pull_requests', 'read'],
  ],
  'issues/update-comment': [
    ['issues', 'write'],
    ['pull_requests', 'write'],
  ],
  'meta/root': 'anyone',
  'pulls/create-review': write('pull_requests'),
  'pulls/dismiss-review': write('pull_requests'),
  'pulls/get': read('pull_requests'),
  'pulls/get-review': read('pull_requests'),
  'pulls/list': read('pull_requests'),
  'pulls/list-comments-for-review': read('pull_requests'),
  'pulls/list-commits': read('pull_requests'),
  'pulls/list-files': read('pull_requests'),
  'pulls/list-review-comments': read('pull_requests'),
  'pulls/list-reviews': read('pull_requests'),
  'pulls/submit-review': write('pull_requests'),
  'pulls/update-review': write('pull_requests'),
  'rate-limit/get': 'anyone',
  // Not under pull_requests since 2026-03-10: issues alone.
  'reactions/create-for-issue-comment': write('issues'),
  'reactions/list-for-issue-comment': read('issues'),
  'repos/compare-commits-with-basehead': read('contents'),
  'repos/get': read('metadata'),
  'repos/get-branch': read('contents'),
  'repos/get-branch-rules': read('metadata'),
  'repos/get-collaborator-permission-level': read('metadata'),
  'repos/get-commit': read('contents'),
  'repos/get-content': read('contents'),
  'repos/list-collaborators': read('metadata'),
  'users/get-authenticated': 'user',
  'users/get-by-username': 'anyone',
};

const RANK: Readonly<Record<Level, number>> = { read: 1, write: 2, admin: 3 };
const ROLES: readonly Role[] = ['none', 'read', 'triage', 'write', 'maintain', 'admin'];

/** Whether a set of permissions holds one at a level. */
export function holds(permissions: Permissions, name: string, level: Level): boolean {
  const held = permissions[name];
  return held !== undefined && RANK[held] >= RANK[level];
}

/** Lets a caller through, or refuses as GitHub does: 401, 403 `Resource not accessible by integration`, 404. */
export function permit(operation: OperationId, bearer: Bearer, repository: Repository | null): void {
  const need = NEEDS[operation];
  if (need === 'anyone') {
    refuseSuspended(bearer);
    return;
  }
  if (bearer.kind === 'nobody') throw new Refused(401, 'Requires authentication');
  if (need === 'app') {
    if (bearer.kind !== 'app') throw new Refused(401, 'A JSON web token could not be decoded');
    return;
  }
  // An endpoint for tokens, called with the app's JWT.
  if (bearer.kind === 'app') throw new Refused(403, 'Resource not accessible by integration');
  refuseSuspended(bearer);
  if (need === 'user') {
    if (bearer.token.kind === 'user' || bearer.token.kind === 'user-to-server') return;
    throw new Refused(403, 'Resource not accessible by integration');
  }
  // What the user and the app may both do: more than asking who it is, nothing here has needed yet.
  if (bearer.token.kind === 'user-to-server')
    throw new Refused(403, 'Resource not accessible by integration');
  if (need === 'installation') {
    if (bearer.token.kind === 'user')
      throw new Refused(403, 'You must authenticate with an installation access token');
    return;
  }
  if (repository === null) return;
  if (bearer.token.kind === 'user') {
    permitUser(operation, repository.roleOf(bearer.token.user));
    return;
  }
  if (!reaches(bearer, repository)) throw notFound();
  if (!need.some(([name, level]) => holds(bearer.token.permissions, name, level)))
    throw new Refused(403, 'Resource not accessible by integration', {
      headers: {
        'x-accepted-github-permissions': need.map(([name, level]) => `${name}=${level}`).join('; '),
      },
    });
}

/** Whether a token covers a repository at all. */
export function reaches(bearer: Bearer, repository: Repository): boolean {
  if (bearer.kind !== 'token') return false;
  const { installation, repositoryIds } = bearer.token;
  if (installation !== null && !covers(installation, repository)) return false;
  return repositoryIds === null || repositoryIds.has(repository.id);
}

// Suspension: the App can no longer reach the account's resources (docs; the wording is GitHub's).
function refuseSuspended(bearer: Bearer): void {
  if (bearer.kind !== 'token' || bearer.token.installation === null) return;
  if (bearer.token.installation.suspendedAt !== null)
    throw new Refused(403, 'This installation has been suspended');
}

function permitUser(operation: OperationId, role: Role): void {
  const rank = ROLES.indexOf(role);
  if (rank === 0) throw notFound();
  // facts/github.md §1: writing checks is for GitHub Apps only.
  if (operation === 'checks/create' || operation === 'checks/update')
    throw new Refused(403, 'You must authenticate via a GitHub App.');
  const needsWrite =
    /^actions\/(create|cancel|force)/.test(operation) ||
    operation === 'repos/get-collaborator-permission-level' ||
    operation === 'repos/list-collaborators' ||
    operation === 'pulls/dismiss-review' ||
    operation === 'checks/rerequest-run';
  if (needsWrite && rank < ROLES.indexOf('write'))
    throw new Refused(403, 'Must have push access to repository');
}
