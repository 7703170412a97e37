/** What blocks come `After` (BLK-3, BLK-5): names to blocks, what is wrong with them, who waits. Pure. */
import type { BlockNote } from './trailers.ts';

/** A block of the present head as far as its dependencies need it. */
export interface Dependent {
  readonly id: string;
  /** What its `Block:` says; another block means it by that name first. */
  readonly slug: string | null;
  /** Names as written. */
  readonly after: readonly string[];
}

/** The blocks that one comes after, and why others of its names are none. */
export interface Dependencies {
  readonly after: readonly string[];
  readonly notes: readonly BlockNote[];
}

const MOST_CHARACTERS = 190;

/** Reads the names of each block's `After`: unknown ones and itself are `bad_after`, a circle is `dependency_cycle` and named. */
export function readDependencies(blocks: readonly Dependent[]): Map<string, Dependencies> {
  const names = new Map(blocks.map((block) => [block.id, block.id]));
  for (const block of blocks) if (block.slug !== null) names.set(block.slug, block.id);
  const found = new Map<string, { after: string[]; notes: BlockNote[] }>();
  for (const block of blocks) {
    const after: string[] = [];
    const notes: BlockNote[] = [];
    for (const name of block.after) {
      const id = names.get(name);
      if (id === undefined)
        notes.push({ code: 'bad_after', detail: `After: ${name} is no block of this head` });
      else if (id === block.id)
        notes.push({ code: 'bad_after', detail: `After: ${name} is the block itself` });
      else if (!after.includes(id)) after.push(id);
    }
    found.set(block.id, { after, notes: notes.slice(0, 5) });
  }
  for (const circle of circles(new Map([...found].map(([id, one]) => [id, one.after])))) {
    for (const [at, id] of circle.entries()) {
      const turned = [...circle.slice(at), ...circle.slice(0, at), id].join(' → ');
      const detail = turned.length > MOST_CHARACTERS ? `${turned.slice(0, MOST_CHARACTERS)}…` : turned;
      found.get(id)?.notes.unshift({ code: 'dependency_cycle', detail });
    }
  }
  return found;
}

/** Blocks that wait: something they come after, or that comes before it, has not passed. */
export function waitingBlocks(
  blocks: readonly { readonly id: string; readonly after: readonly string[] }[],
  passed: (id: string) => boolean,
): ReadonlySet<string> {
  const behind = dependentsOf(blocks);
  const waiting = new Set<string>();
  const queue = blocks.map((block) => block.id).filter((id) => !passed(id));
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    for (const next of behind.get(id) ?? []) {
      if (waiting.has(next)) continue;
      waiting.add(next);
      queue.push(next);
    }
  }
  return waiting;
}

/** By block: those that come directly after it. */
export function dependentsOf(
  blocks: Iterable<{ readonly id: string; readonly after: readonly string[] }>,
): Map<string, string[]> {
  const behind = new Map<string, string[]>();
  for (const { id, after } of blocks) {
    for (const dependency of after) {
      const list = behind.get(dependency);
      if (list === undefined) behind.set(dependency, [id]);
      else list.push(id);
    }
  }
  return behind;
}

/** Circles, at least one of each knot, each block in at most one; linear, so that no list of trailers makes it slow. */
function circles(after: ReadonlyMap<string, readonly string[]>): string[][] {
  const left = new Set(after.keys());
  // who waits for nobody that is left is in no circle
  const open = new Map([...after].map(([id, list]) => [id, list.length]));
  const behind = dependentsOf([...after].map(([id, list]) => ({ id, after: list })));
  const done = [...left].filter((id) => open.get(id) === 0);
  for (let id = done.pop(); id !== undefined; id = done.pop()) {
    left.delete(id);
    for (const next of behind.get(id) ?? []) {
      const n = (open.get(next) ?? 0) - 1;
      open.set(next, n);
      if (n === 0) done.push(next);
    }
  }
  const found: string[][] = [];
  const seen = new Set<string>();
  for (const start of left) {
    const trail = new Map<string, number>();
    const walk: string[] = [];
    let id: string | undefined = start;
    while (id !== undefined && !seen.has(id)) {
      seen.add(id);
      trail.set(id, walk.length);
      walk.push(id);
      id = after.get(id)?.find((next) => left.has(next));
    }
    const at = id === undefined ? undefined : trail.get(id);
    if (at !== undefined) found.push(walk.slice(at));
  }
  return found;
}
