import {
  type Answer,
  type Call,
  type Handler,
  notFound,
  paged,
  Refused,
  repositoryOf,
} from '../http/call.ts';
import type { MergeQueue } from '../merge-queue.ts';
import type { Json, Role } from '../model.ts';
import type { OperationId } from '../operations.ts';
import { userJson } from '../render/accounts.ts';
import { commitsJson } from '../render/commits.ts';
import { diffJson, diffTotals } from '../render/diffs.ts';
import { repositoryJson } from '../render/repositories.ts';
import type { Repository } from '../repository.ts';
import { nodeId } from '../world.ts';
import { contents } from './contents.ts';

// facts/github.md §13: maintain reads as write, triage as read.
const LEGACY: Readonly<Record<Role, string>> = {
  admin: 'admin',
  maintain: 'write',
  write: 'write',
  triage: 'read',
  read: 'read',
  none: 'none',
};

function queueRule(repository: Repository, { rule, rulesetId }: MergeQueue): Json {
  return {
    type: 'merge_queue',
    ruleset_source_type: 'Repository',
    ruleset_source: repository.fullName,
    ruleset_id: rulesetId,
    parameters: {
      check_response_timeout_minutes: rule.timeoutMinutes,
      grouping_strategy: rule.grouping,
      max_entries_to_build: 5,
      max_entries_to_merge: 5,
      merge_method: rule.method,
      min_entries_to_merge: 1,
      min_entries_to_merge_wait_minutes: 5,
    },
  };
}

/** Repositories, commits, branches, rules, people. */
export const repoHandlers = {
  'repos/get': (call) => ({ status: 200, body: repositoryJson(call.world, repositoryOf(call)) }),

  'repos/get-content': contents,

  'repos/get-commit': getCommit,

  'repos/compare-commits-with-basehead': compare,

  'git/get-ref': async (call) => {
    const repository = repositoryOf(call);
    const name = String(call.path['ref']);
    const sha = /^(heads|tags|pull)\//.test(name) ? await repository.git.objectId(`refs/${name}`) : null;
    if (sha === null) throw notFound();
    const api = `${call.world.apiUrl}/repos/${repository.fullName}`;
    const type = await repository.git.text(['cat-file', '-t', sha]);
    return {
      status: 200,
      body: {
        ref: `refs/${name}`,
        node_id: nodeId('REF', `${repository.id}:${name}`),
        url: `${api}/git/refs/${name}`,
        object: { type, sha, url: `${api}/git/${type}s/${sha}` },
      },
    };
  },

  'repos/get-branch': async (call) => {
    const repository = repositoryOf(call);
    const name = String(call.path['branch']);
    const sha = await repository.git.commitId(`refs/heads/${name}`);
    if (sha === null) throw new Refused(404, 'Branch not found');
    const [commit] = await commitsJson(repository, [sha]);
    const api = `${call.world.apiUrl}/repos/${repository.fullName}/branches/${name}`;
    const checks = repository.requiredChecks.filter((rule) => rule.branch === name);
    return {
      status: 200,
      body: {
        name,
        commit,
        _links: { self: api, html: `${call.world.url}/${repository.fullName}/tree/${name}` },
        protected: checks.length > 0,
        protection: {
          enabled: false,
          required_status_checks: { enforcement_level: 'off', contexts: [], checks: [] },
        },
        protection_url: `${api}/protection`,
      },
    };
  },

  // facts/github.md §3: every active rule of the branch, whatever level it comes from, with metadata:read.
  'repos/get-branch-rules': (call) => {
    const repository = repositoryOf(call);
    const rules = repository.requiredChecks.filter((rule) => rule.branch === String(call.path['branch']));
    const queue = repository.queues.get(String(call.path['branch']));
    const { items, headers } = paged(call, rules);
    const queueRules = queue === undefined ? [] : [queueRule(repository, queue)];
    return {
      status: 200,
      headers,
      body: [
        ...queueRules,
        ...items.map((rule) => ({
          type: 'required_status_checks',
          ruleset_source_type: 'Repository',
          ruleset_source: repository.fullName,
          ruleset_id: rule.rulesetId,
          parameters: {
            required_status_checks: [
              {
                context: rule.context,
                ...(rule.integrationId === null ? {} : { integration_id: rule.integrationId }),
              },
            ],
            strict_required_status_checks_policy: false,
          },
        })),
      ],
    };
  },

  'repos/get-collaborator-permission-level': (call) => {
    const repository = repositoryOf(call);
    const login = String(call.path['username']);
    const user = call.world.userByLogin(login);
    if (user === undefined) throw new Refused(404, `${login} is not a user`);
    const role = repository.roleOf(user);
    return {
      status: 200,
      body: {
        permission: LEGACY[role],
        user: { ...userJson(call.world, user), permissions: flags(role), role_name: role },
        role_name: role,
      },
    };
  },

  // Everybody who has more than the public: the owner and the collaborators (facts/github.md §13).
  'repos/list-collaborators': (call) => {
    const repository = repositoryOf(call);
    const wanted = call.query['permission'];
    const people = call.world.users.filter(
      (user) => user === repository.owner || repository.collaborators.has(user.id),
    );
    const all = people
      .map((user) => ({ user, role: repository.roleOf(user) }))
      .filter(({ role }) => role !== 'none')
      .filter(({ role }) => wanted === undefined || flags(role)[String(wanted)] === true);
    const { items, headers } = paged(call, all);
    const body = items.map(({ user, role }) => ({
      ...userJson(call.world, user),
      permissions: flags(role),
      role_name: role,
    }));
    return { status: 200, headers, body };
  },
} satisfies Partial<Record<OperationId, Handler>>;

function flags(role: Role): Json {
  const order: readonly Role[] = ['none', 'read', 'triage', 'write', 'maintain', 'admin'];
  const rank = order.indexOf(role);
  return { pull: rank >= 1, triage: rank >= 2, push: rank >= 3, maintain: rank >= 4, admin: rank >= 5 };
}

/** A commit by branch, tag or id; a well-formed id that is not here is 422 (case 7), another name 404. */
export async function commitOf(repository: Repository, ref: string): Promise<string> {
  const known = await repository.git.commitId(ref);
  if (known !== null) return known;
  for (const prefix of ['refs/heads/', 'refs/tags/', 'refs/']) {
    const id = await repository.git.commitId(`${prefix}${ref}`);
    if (id !== null) return id;
  }
  throw new Refused(422, `No commit found for SHA: ${ref}`);
}

async function getCommit(call: Call): Promise<Answer> {
  const repository = repositoryOf(call);
  const sha = await commitOf(repository, String(call.path['ref']));
  if (/application\/vnd\.github(\.v3)?\.sha/.test(call.accept))
    return {
      status: 200,
      raw: Buffer.from(sha),
      headers: { 'content-type': 'application/vnd.github.v3.sha' },
    };
  const [commit] = await commitsJson(repository, [sha]);
  if (commit === undefined) throw notFound();
  const parent = (await repository.git.commitId(`${sha}^1`)) ?? (await emptyTree(repository));
  const totals = await diffTotals(repository, parent, sha);
  // facts/github.md §5: 300 files a page, up to 3,000.
  const { items, headers } = paged(call, await diffJson(repository, parent, sha), 300);
  return {
    status: 200,
    headers,
    body: {
      ...commit,
      stats: {
        total: totals.additions + totals.deletions,
        additions: totals.additions,
        deletions: totals.deletions,
      },
      files: items,
    },
  };
}

async function emptyTree(repository: Repository): Promise<string> {
  return (await repository.git.run(['hash-object', '-t', 'tree', '-w', '--stdin'], '')).toString().trim();
}

/** `base...head`, either as `owner:ref` across the fork network (facts/github.md §5). */
async function compare(call: Call): Promise<Answer> {
  const repository = repositoryOf(call);
  const { git, world } = repository;
  const [left, right] = String(call.path['basehead']).split('...');
  if (left === undefined || right === undefined || left === '' || right === '') throw notFound();
  const base = await side(repository, left);
  const head = await side(repository, right);
  const merge = await git.mergeBase(base, head);
  // "No common ancestor between …": 404, as GitHub answers.
  if (merge === null) throw new Refused(404, `No common ancestor between ${left} and ${right}.`);
  const ahead = await git.commitsBetween([base], head);
  const behind = await git.commitsBetween([head], base);
  const status =
    ahead.length > 0 && behind.length > 0
      ? 'diverged'
      : ahead.length > 0
        ? 'ahead'
        : behind.length > 0
          ? 'behind'
          : 'identical';
  const asked = call.query['page'] !== undefined && call.url.searchParams.has('page');
  const page = Number(call.query['page'] ?? 1);
  // Without paging: 250 commits, the newest last. With: all, in order; files only on page 1, at most 300.
  const { items, headers } = asked
    ? paged(call, ahead)
    : { items: ahead.slice(-250), headers: {} as Record<string, string> };
  const [baseCommit, mergeCommit] = await commitsJson(repository, [base, merge]);
  const html = `${world.url}/${repository.fullName}/compare/${left}...${right}`;
  return {
    status: 200,
    headers,
    body: {
      url: `${world.apiUrl}/repos/${repository.fullName}/compare/${left}...${right}`,
      html_url: html,
      permalink_url: html,
      diff_url: `${html}.diff`,
      patch_url: `${html}.patch`,
      base_commit: baseCommit,
      merge_base_commit: mergeCommit ?? baseCommit,
      status,
      ahead_by: ahead.length,
      behind_by: behind.length,
      total_commits: ahead.length,
      commits: await commitsJson(repository, items),
      files: page === 1 ? (await diffJson(repository, merge, head)).slice(0, 300) : [],
    },
  };
}

async function side(repository: Repository, name: string): Promise<string> {
  const [owner, ref] = name.includes(':') ? name.split(/:(.*)/s) : [repository.owner.login, name];
  const other = repository.world.repositories.find(
    (one) => !one.deleted && one.owner.login === owner && (one === repository || one.forkOf === repository),
  );
  if (other === undefined) throw notFound();
  const id = (await other.git.commitId(`refs/heads/${ref}`)) ?? (await other.git.commitId(ref ?? ''));
  if (id === null) throw notFound();
  if (other !== repository) await repository.git.fetchFrom(other.git, id, `refs/network/${other.id}`);
  return id;
}
