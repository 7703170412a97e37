/** What the App needs of an installation, and what a repository's workflow file must be (RUN-9, OPS-5). */
import { parseDocument } from 'yaml';

/** Permissions without which a run cannot come to a verdict, and why. */
export const NEEDED_PERMISSIONS = {
  checks: { least: 'write', why: 'to show the gate' },
  contents: { least: 'read', why: 'to read what changed' },
  pull_requests: { least: 'read', why: 'to hear of pull requests' },
  actions: { least: 'write', why: 'to start runners' },
} as const;

/** The needed permissions that an installation has not accepted, as `name: level`, sorted; none when nothing is known of it. */
export function missingPermissions(granted: Readonly<Record<string, string>>): string[] {
  if (Object.keys(granted).length === 0) return [];
  return Object.entries(NEEDED_PERMISSIONS)
    .filter(([name, { least }]) => {
      const has = granted[name];
      return has === undefined || (least === 'write' && has !== 'write' && has !== 'admin');
    })
    .map(([name, { least }]) => `${name}: ${least}`)
    .sort();
}

/**
 * Why no model of a policy can be asked, as a sentence; null when one can. `wanted` has the variable each one's
 * key is in, null where it needs none that is known of; `held` the variables that hold a key in the runner's job.
 */
export function missingKeys(wanted: readonly (string | null)[], held: readonly string[]): string | null {
  if (wanted.length === 0 || wanted.some((name) => name === null || held.includes(name))) return null;
  const names = [...new Set(wanted)].sort().join(', ');
  return `the workflow's job has no key of a model: it needs ${names}, from a repository secret under env; then /reload`;
}

/** Why no ticket of a policy could ever run: none of its resident pools is registered, and it has no workflow pool. */
export function noPool(names: readonly string[], installationId: string): string {
  const [first = ''] = names;
  return `no pool of the policy (${names.join(', ')}) is registered: countersign pool add ${first} --installation ${installationId}`;
}

/** Why a workflow file cannot be dispatched, as a sentence; null when it can. The bytes are whoever's can push to the default branch. */
export function workflowFault(bytes: Uint8Array | null, path: string): string | null {
  if (bytes === null) return `${path} is missing on the default branch`;
  if (bytes.length > 512 * 1024) return `${path} is over 512 KiB`;
  let root: unknown;
  try {
    const document = parseDocument(Buffer.from(bytes).toString('utf8'), { version: '1.2', strict: true });
    if (document.errors.length > 0) return `${path} is not YAML`;
    root = document.toJS({ maxAliasCount: 20 });
  } catch {
    return `${path} is not YAML`;
  }
  if (typeof root !== 'object' || root === null || Array.isArray(root)) return `${path} is not a workflow`;
  const on = (root as Record<string, unknown>)['on'];
  const dispatched =
    on === 'workflow_dispatch' ||
    (Array.isArray(on) && on.includes('workflow_dispatch')) ||
    (typeof on === 'object' && on !== null && Object.hasOwn(on, 'workflow_dispatch'));
  return dispatched ? null : `${path} has no workflow_dispatch trigger`;
}
