/** Which known block of the run each group of commits is, over rewrites (BLK-2). */
import { createHash } from 'node:crypto';
import type { PriorBlock, Seed } from '../block.ts';
import { type Group, PrefixMap } from './group.ts';

/** Groups with the block each is, where it is a known one. */
export interface Matched {
  readonly groups: readonly Group[];
  readonly matches: ReadonlyMap<Group, PriorBlock>;
}

/**
 * Named groups are found by name; others by their first commit, then by its diff, then by its author.
 * What reverts or fixes up a commit that only an earlier head had joins the block that had it.
 */
export function matchGroups(groups: readonly Group[], prior: readonly PriorBlock[]): Matched {
  const late = new Map<Group, PriorBlock>();
  if (groups.some((group) => group.past !== null)) {
    const owners = new PrefixMap<PriorBlock>();
    for (const block of prior) for (const oid of block.past ?? block.commits) owners.add(oid, block);
    for (const group of groups) {
      const owner = group.past === null ? undefined : owners.find(group.past);
      if (owner !== undefined) late.set(group, owner);
    }
  }
  if (late.size === 0) return { groups, matches: matchPrior(groups, prior) };
  const firm = groups.filter((group) => !late.has(group));
  const matches = matchPrior(firm, prior);
  const hosts = new Map([...matches].map(([group, block]) => [block, group]));
  const kept = new Map<Group, Group>(firm.map((group) => [group, group]));
  const alone: Group[] = [];
  for (const [group, owner] of late) {
    const host = hosts.get(owner);
    if (host === undefined) alone.push(group);
    else kept.set(group, host);
  }
  const taken = new Set(matches.values());
  const rest = matchPrior(
    alone,
    prior.filter((block) => !taken.has(block)),
  );
  return join(groups, kept, new Map([...matches, ...rest]));
}

/** The identity of a block that commits name. */
export function namedIdentity(slug: string): string {
  return createHash('sha256').update(`named\0${slug}`).digest('hex');
}

/** Joins groups to their hosts; a block's commits stay in the order of the head. */
function join(
  groups: readonly Group[],
  hostOf: ReadonlyMap<Group, Group>,
  matches: ReadonlyMap<Group, PriorBlock>,
): Matched {
  const joined: Group[] = [];
  const made = new Map<Group, Group>();
  const found = new Map<Group, PriorBlock>();
  for (const group of groups) {
    const host = hostOf.get(group) ?? group;
    const known = made.get(host);
    if (known === undefined) {
      const copy: Group = {
        ...host,
        commits: [...group.commits],
        notes: [...group.notes],
      };
      made.set(host, copy);
      joined.push(copy);
      const block = matches.get(host);
      if (block !== undefined) found.set(copy, block);
    } else {
      known.commits.push(...group.commits);
      known.notes.push(...group.notes.slice(0, 20 - known.notes.length));
    }
  }
  return { groups: joined, matches: found };
}

function matchPrior(groups: readonly Group[], prior: readonly PriorBlock[]): Map<Group, PriorBlock> {
  const matches = new Map<Group, PriorBlock>();
  const byIdentity = new Map(prior.filter((b) => b.named).map((b) => [b.identity, b]));
  const left = new Set(groups.filter((group) => group.slug === null));
  for (const group of groups) {
    const known = group.slug === null ? undefined : byIdentity.get(namedIdentity(group.slug));
    if (known !== undefined) matches.set(group, known);
  }
  const free = new Set(prior.filter((block) => !block.named && block.seed !== null));
  const keys: ((seed: Seed) => string | null)[] = [(s) => s.oid, (s) => s.diff, (s) => s.author];
  for (const key of keys) {
    const index = new Map<string, PriorBlock[]>();
    for (const block of free) {
      const value = block.seed === null ? null : key(block.seed);
      if (value === null) continue;
      const known = index.get(value);
      if (known === undefined) index.set(value, [block]);
      else known.push(block);
    }
    for (const group of left) {
      const value = key(group.seed);
      const block = value === null ? undefined : index.get(value)?.shift();
      if (block === undefined) continue;
      matches.set(group, block);
      free.delete(block);
      left.delete(group);
    }
  }
  return matches;
}
