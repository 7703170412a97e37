/** What we read of GitHub's answers, into port.ts's types. Anyone who controls a pull request controls its texts. */
import * as z from 'zod';
import { idSchema } from '../lossless.ts';
import type { CheckRunInfo } from '../port/check.ts';
import type { Permission, PullInfo, RepositoryInfo } from '../port.ts';

/** Who did something; null for nobody and for a deleted account. */
export const actorShape = z
  .object({ id: idSchema, login: z.string(), type: z.string().optional() })
  .nullish()
  .transform((user) => (user == null || user.login === 'ghost' ? null : user));

/** A repository. */
export const repositoryShape = z
  .object({
    id: idSchema,
    name: z.string(),
    owner: z.object({ id: idSchema, login: z.string() }),
    default_branch: z.string().default(''),
    private: z.boolean(),
  })
  .transform(
    (r): RepositoryInfo => ({
      id: r.id,
      owner: r.owner.login,
      ownerId: r.owner.id,
      name: r.name,
      defaultBranch: r.default_branch,
      private: r.private,
    }),
  );

/** A pull request; `commits` and `changedFiles` are 0 in lists, which do not tell them. */
export const pullShape = z
  .object({
    number: idSchema,
    state: z.enum(['open', 'closed']),
    merged: z.boolean().nullish(),
    merged_at: z.string().nullish(),
    draft: z.boolean().nullish(),
    title: z.string(),
    body: z.string().nullish(),
    user: actorShape,
    head: z.object({
      sha: z.string(),
      ref: z.string(),
      repo: z.object({ id: idSchema, pushed_at: z.string().nullish() }).nullish(),
    }),
    base: z.object({ sha: z.string(), ref: z.string() }),
    commits: z.int().default(0),
    changed_files: z.int().default(0),
    updated_at: z.string(),
    created_at: z.string(),
    mergeable: z.boolean().nullish(),
  })
  .transform(
    (p): PullInfo => ({
      number: p.number,
      state: p.state,
      merged: p.merged === true || p.merged_at != null,
      draft: p.draft === true,
      title: p.title,
      body: p.body ?? '',
      author: p.user === null ? null : { id: p.user.id, login: p.user.login },
      head: p.head.sha,
      headRef: p.head.ref,
      headRepositoryId: p.head.repo?.id ?? null,
      baseRef: p.base.ref,
      base: p.base.sha,
      commits: p.commits,
      changedFiles: p.changed_files,
      updatedAt: p.updated_at,
      createdAt: p.created_at,
      mergeable: p.mergeable ?? null,
      // the head repository's last push and the pull request's last change: both at or after the head's own push,
      // so "old" is certain and "new" is not
      pushedAt: [p.head.repo?.pushed_at ?? p.updated_at, p.updated_at].sort()[0] ?? null,
    }),
  );

/** A check run. */
export const checkRunShape = z
  .object({
    id: idSchema,
    name: z.string(),
    head_sha: z.string(),
    external_id: z.string().nullish(),
    status: z.string(),
    conclusion: z.string().nullish(),
    output: z.object({ summary: z.string().nullish(), annotations_count: z.int().default(0) }),
    app: z.object({ id: idSchema }).nullish(),
  })
  .transform(
    (c): CheckRunInfo => ({
      id: c.id,
      name: c.name,
      headSha: c.head_sha,
      externalId: c.external_id ?? '',
      status: c.status,
      conclusion: c.conclusion ?? null,
      annotations: c.output.annotations_count,
      appId: c.app?.id ?? '0',
      summary: c.output.summary ?? null,
    }),
  );

/** A comment of a pull request. */
export const commentShape = z
  .object({
    id: idSchema,
    user: actorShape,
    body: z.string().nullish(),
    created_at: z.string(),
    updated_at: z.string(),
    issue_url: z.string(),
    performed_via_github_app: z.object({ id: idSchema }).nullish(),
  })
  .transform((c) => ({
    id: c.id,
    userId: c.user?.id ?? null,
    login: c.user?.login ?? null,
    bot: c.user?.type === 'Bot',
    body: c.body ?? '',
    createdAt: c.created_at,
    updatedAt: c.updated_at,
    number: /\/([0-9]+)$/.exec(c.issue_url)?.[1] ?? '0',
    appId: c.performed_via_github_app?.id ?? null,
  }));

const PERMISSIONS: readonly Permission[] = ['admin', 'maintain', 'write', 'triage', 'read', 'none'];

/** A collaborator's permission. A custom role counts as the built-in one it is based on, which `permission` says. */
export const permissionShape = z
  .object({ permission: z.string(), role_name: z.string().nullish(), user: actorShape })
  .transform((p) => ({
    permission:
      PERMISSIONS.find((one) => one === p.role_name) ??
      PERMISSIONS.find((one) => one === p.permission) ??
      'none',
    userId: p.user?.id ?? null,
  }));

const workflowRun = z.object({
  id: idSchema,
  status: z.string().nullish(),
  conclusion: z.string().nullish(),
  run_attempt: z.int().default(1),
  display_title: z.string().default(''),
});
const runFields = (r: z.infer<typeof workflowRun>) => ({
  id: r.id,
  status: r.status ?? '',
  conclusion: r.conclusion ?? null,
  attempt: r.run_attempt,
  title: r.display_title,
});

/** A workflow run. */
export const workflowRunShape = workflowRun.transform(runFields);

/** A workflow run with what it was started on and by whom. */
export const startedRunShape = workflowRun
  .extend({
    event: z.string(),
    head_sha: z.string(),
    head_branch: z.string().nullish(),
    path: z.string(),
    actor: z.object({ login: z.string() }).nullish(),
  })
  .transform((r) => ({
    ...runFields(r),
    event: r.event,
    headSha: r.head_sha,
    headBranch: r.head_branch ?? null,
    path: r.path,
    actor: r.actor?.login ?? null,
  }));

/** An installation of the App. */
export const installationShape = z
  .object({
    id: idSchema,
    account: z.object({ id: idSchema, login: z.string().optional(), slug: z.string().optional() }).nullable(),
    suspended_at: z.string().nullish(),
    permissions: z.record(z.string(), z.string()).default({}),
  })
  .transform((i) => ({
    id: i.id,
    accountId: i.account?.id ?? '0',
    accountLogin: i.account?.login ?? i.account?.slug ?? '',
    suspended: i.suspended_at != null,
    permissions: i.permissions,
  }));

/** A delivery in GitHub's list. */
export const deliveryShape = z
  .object({
    id: idSchema,
    guid: z.string(),
    delivered_at: z.string(),
    status_code: z.int(),
    event: z.string(),
  })
  .transform((d) => ({
    id: d.id,
    guid: d.guid,
    deliveredAt: d.delivered_at,
    ok: d.status_code >= 200 && d.status_code < 300,
    event: d.event,
  }));
