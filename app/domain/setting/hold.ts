/**
 * A policy as the settings of its installation hold it (POL-2): what it leaves out it has from them, and where
 * it is laxer than they are they count. What comes out is a policy file again, so that its hash names all of
 * what a run was decided by (RUN-8) and a stranger needs nothing else to decide it again.
 */
import { createHash } from 'node:crypto';
import { readYaml } from '../policy/read-yaml.ts';
import { policySchema } from '../policy/schema.ts';
import { nested } from './key.ts';

/** How two values of a key compare; the later of an order is stricter. */
export type Strictness =
  | { readonly by: 'order'; readonly values: readonly unknown[] }
  | { readonly by: 'lower' | 'higher' | 'subset' | 'superset' };

const order = (...values: unknown[]): Strictness => ({ by: 'order', values });
const lower: Strictness = { by: 'lower' };

/** The keys of which one value can be stricter than another; of all others a setting is the default and no more. */
export const STRICTER: Readonly<Record<string, Strictness>> = {
  mode: order('advisory', 'enforce'),
  'allow.authors': { by: 'subset' },
  'gate.block_at': order('critical', 'high', 'medium', 'low', 'info'),
  'gate.patience': { by: 'higher' },
  'gate.allow_unreviewed': { by: 'subset' },
  ownership: order('auto', 'declared'),
  guard: { by: 'superset' },
  'people.approve': order('write', 'maintain', 'admin'),
  'people.dismiss': order('write', 'maintain', 'admin'),
  'people.override': order('maintain', 'admin', 'none'),
  'people.solo': order(true, false),
  'people.carry': order('identical', 'none'),
  'review.parallel': lower,
  'review.rounds': lower,
  'review.max_lines': lower,
  'review.drafts': order('on', 'off'),
  'review.reuse': order('on', 'off'),
  'review.on_unavailable': order('human', 'block'),
  'review.adaptive': order('off', 'on'),
  'budget.block.sessions': lower,
  'budget.run.sessions': lower,
  'budget.run.tokens': lower,
  'budget.month.tokens': lower,
  'budget.outsiders.tokens': lower,
  'commands.bots': { by: 'subset' },
};

/** A key of the policy that the settings hold. */
export interface HeldKey {
  readonly key: string;
  /** Whether the policy left it out, or was laxer. */
  readonly why: 'left_out' | 'laxer';
}

/** The policy's bytes as they count; the file's own where the settings change nothing. */
export interface HeldPolicy {
  readonly bytes: Buffer;
  readonly held: readonly HeldKey[];
}

type Json = { [key: string]: unknown };

const MOST_INDENTED = 32_768;

/** Holds a policy; one that is no policy by itself stays as it is, and is refused as such. */
export function holdPolicy(file: Uint8Array, settings: ReadonlyMap<string, unknown>): HeldPolicy {
  const bytes = Buffer.from(file);
  const given = [...settings].filter(([key]) => key.startsWith('policy.'));
  const yaml = given.length === 0 ? null : readYaml(file);
  const before = yaml?.ok === true ? policySchema.safeParse(yaml.data) : null;
  if (yaml?.ok !== true || before?.success !== true) return { bytes, held: [] };
  const data = structuredClone(yaml.data) as Json;
  const held: HeldKey[] = [];
  for (const [name, value] of given.sort(([a], [b]) => (a < b ? -1 : 1))) {
    const key = name.slice('policy.'.length);
    const path = key.split('.');
    const set = policySchema.safeParse(nested(path, value));
    // of a later version, or of one that knew more: it says nothing here
    if (!set.success) continue;
    const own = at(data, path);
    if (own === undefined) {
      if (same(at(before.data, path), at(set.data, path))) continue;
      put(data, path, value);
      held.push({ key, why: 'left_out' });
      continue;
    }
    const rule = STRICTER[key];
    const counts =
      rule === undefined ? own : stricter(rule, [own, at(before.data, path)], [value, at(set.data, path)]);
    if (counts === own) continue;
    put(data, path, counts);
    held.push({ key, why: 'laxer' });
  }
  if (held.length === 0) return { bytes, held };
  const source = createHash('sha256').update(bytes).digest('hex');
  const says = held.map(({ key }) => key).join(', ');
  const head = `# ${source} with the settings of the installation: ${says}\n`;
  const whole = `${head}${JSON.stringify(data, null, 2)}\n`;
  // a policy that is almost as long as one may be gets no indents
  return {
    bytes: Buffer.from(whole.length > MOST_INDENTED ? `${head}${JSON.stringify(data)}\n` : whole),
    held,
  };
}

/** As written and as read, of the policy and of the setting; answers what counts, as it would be written. */
function stricter(
  rule: Strictness,
  [own, ownRead]: readonly [unknown, unknown],
  [set, setRead]: readonly [unknown, unknown],
): unknown {
  switch (rule.by) {
    case 'order':
      return rule.values.indexOf(ownRead) >= rule.values.indexOf(setRead) ? own : set;
    case 'lower':
      return Number(ownRead) <= Number(setRead) ? own : set;
    case 'higher':
      return Number(ownRead) >= Number(setRead) ? own : set;
    case 'subset': {
      const most = new Set((setRead as unknown[]).map(String));
      const list = own as unknown[];
      return list.every((one) => most.has(String(one))) ? own : list.filter((one) => most.has(String(one)));
    }
    case 'superset': {
      const list = own as unknown[];
      const missing = (set as unknown[]).filter((one) => !list.includes(one));
      return missing.length === 0 ? own : [...list, ...missing];
    }
  }
}

function at(data: unknown, path: readonly string[]): unknown {
  let value = data;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Json)[part];
  }
  return value;
}

function put(data: Json, path: readonly string[], value: unknown): void {
  let into = data;
  for (const part of path.slice(0, -1)) {
    const next = into[part];
    const map = typeof next === 'object' && next !== null ? (next as Json) : {};
    into[part] = map;
    into = map;
  }
  into[path.at(-1) ?? ''] = value;
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** What is said of a held key to the people of a repository. */
export function heldWords({ key, why }: HeldKey): string {
  return why === 'laxer'
    ? `${key}: the settings of this installation are stricter, and count`
    : `${key}: not in the file, from the settings of this installation`;
}
