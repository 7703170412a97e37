/** What the verified rows of a run say of its blocks (BLK-2…BLK-4, OWN-2, OWN-6): no table is asked. */
import { createHash } from 'node:crypto';
import type { PriorBlock } from '../block.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import type { EntryKind } from '../ownership/entry.ts';

/** A block as its rows left it. */
export interface KnownBlock extends PriorBlock {
  readonly past: readonly string[];
  readonly commitCount: number;
  /** Of all its commits, where the rows hold only the first of them. */
  readonly commitsDigest: string | null;
  /** What each exact `Owns` entry was when it was first claimed; the first record wins (OWN-2). */
  readonly entries: ReadonlyMap<string, EntryKind>;
  /** What was last said of it. */
  readonly said: RowData<'block.opened'>;
}

type Seen = { -readonly [K in keyof KnownBlock]: KnownBlock[K] } & {
  past: string[];
  entries: Map<string, EntryKind>;
};

/**
 * All blocks the run ever had, in the order in which they were opened. `whole` gives the commits of a
 * block whose rows hold only the first of them; a list that its row's digest does not prove is not taken.
 */
export function knownBlocks(
  rows: Iterable<{ readonly kind: string; readonly data: unknown }>,
  whole: ReadonlyMap<string, readonly string[]>,
): KnownBlock[] {
  const blocks = new Map<string, Seen>();
  for (const row of rows) {
    if (row.kind === 'block.opened') open(blocks, row.data as RowData<'block.opened'>);
    else if (row.kind === 'block.attempt') {
      const data = row.data as RowData<'block.attempt'>;
      const block = blocks.get(data.block);
      if (block !== undefined) advance(block, data);
    } else if (row.kind === 'block.ended') {
      const data = row.data as RowData<'block.ended'>;
      const block = blocks.get(data.block);
      if (block !== undefined && data.status === 'dropped') block.open = false;
    }
  }
  for (const block of blocks.values()) {
    const list = whole.get(block.id);
    if (block.commits.length === block.commitCount || list === undefined) continue;
    if (commitsDigest(list) === block.commitsDigest) block.commits = list;
  }
  return [...blocks.values()];
}

/** SHA-256 over commit ids, each followed by a line feed: lower-case hex. */
export function commitsDigest(commits: readonly string[]): string {
  const hash = createHash('sha256');
  for (const oid of commits) hash.update(`${oid}\n`);
  return hash.digest('hex');
}

function open(blocks: Map<string, Seen>, data: RowData<'block.opened'>): void {
  const known = blocks.get(data.block);
  const block: Seen = known ?? {
    id: data.block,
    identity: data.identity,
    named: data.named,
    open: true,
    attempt: data.attempt,
    commits: [],
    commitCount: 0,
    commitsDigest: null,
    seed: null,
    past: [],
    entries: new Map(),
    said: data,
  };
  if (known === undefined) blocks.set(data.block, block);
  advance(block, data);
  block.open = true;
  block.said = data;
  for (const [i, text] of data.owns.entries()) {
    const kind = data.was?.[i] ?? null;
    // one that was a directory is written with the slash that its commit left out
    const entry = kind === 'directory' ? text.slice(0, -1) : text;
    if (kind !== null && !block.entries.has(entry)) block.entries.set(entry, kind);
  }
}

function advance(block: Seen, data: RowData<'block.opened'> | RowData<'block.attempt'>): void {
  const seen = new Set(block.past);
  for (const oid of data.commits) if (!seen.has(oid)) block.past.push(oid);
  block.attempt = data.attempt;
  block.commits = data.commits;
  block.commitCount = data.commit_count;
  block.commitsDigest = data.commits_digest ?? null;
  // a row of before seeds were written still names its first commit
  const [first] = data.commits;
  block.seed = data.seed ?? (first === undefined ? null : { oid: first, diff: null, author: null });
}
