/** Whether a body can be what the unsigned event header claims, told by its top-level keys (facts/security.md, finding 9). */

/** Per event: keys that its body has, and keys of other events that it never has. */
const shapes: Readonly<
  Record<string, { readonly has: readonly string[]; readonly not?: readonly string[] }>
> = {
  pull_request: { has: ['action', 'number', 'pull_request', 'repository'], not: ['review', 'comment'] },
  pull_request_review: {
    has: ['action', 'pull_request', 'repository', 'review'],
    not: ['comment', 'number'],
  },
  issue_comment: { has: ['action', 'comment', 'issue', 'repository'] },
  push: { has: ['ref', 'before', 'after', 'repository'], not: ['action'] },
  installation: { has: ['action', 'installation'], not: ['repository', 'repositories_added'] },
  installation_repositories: {
    has: ['action', 'installation', 'repositories_added', 'repositories_removed'],
  },
  repository: {
    has: ['action', 'repository'],
    not: [
      'pull_request',
      'issue',
      'comment',
      'check_run',
      'check_suite',
      'workflow_run',
      'workflow_job',
      'ref',
    ],
  },
  merge_group: { has: ['action', 'merge_group', 'repository'] },
  check_run: { has: ['action', 'check_run', 'repository'] },
  check_suite: { has: ['action', 'check_suite', 'repository'] },
  workflow_run: { has: ['action', 'workflow_run', 'repository'] },
  workflow_job: { has: ['action', 'workflow_job', 'repository'] },
  ping: { has: ['zen', 'hook_id'] },
};

/** True when the keys fit the event, and for every event that we do not read. */
export function fitsEvent(event: string, keys: ReadonlySet<string>): boolean {
  const shape = Object.hasOwn(shapes, event) ? shapes[event] : undefined;
  if (shape === undefined) return true;
  return shape.has.every((key) => keys.has(key)) && !(shape.not ?? []).some((key) => keys.has(key));
}
