/**
 * Names of work (TKT-1). A review key says what a review depends on, so that a result counts again
 * wherever nothing of that changed; a ticket id says one asking of it. Both are digests over canonical
 * JSON with a prefix of their own: no two different inputs share an encoding.
 */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { WirePath } from './path.ts';

/**
 * Where a ticket is (TKT-2). Only these moves exist:
 *
 * | from | to | when |
 * |---|---|---|
 * | (new) | `pending` | it is cut and nothing stands in its way |
 * | (new) | `held` | the path is leased for other content (TKT-3), or its block waits for another (BLK-5) |
 * | `pending` | `held` | its block waits for another now |
 * | `pending` | `leased` | a runner leases it |
 * | `pending` | `superseded` | a new head wants other content |
 * | `pending` `held` | `cancelled` | the run closes, or the path leaves the change |
 * | `pending` `held` | `skipped` | its key was reviewed before and is reused (TKT-4) |
 * | `held` | `pending` | the lease before it ended or expired, or what its block comes after has passed |
 * | `held` | `superseded` | a newer head wants other content again |
 * | `leased` | `ended` | reviewed, or a final unavailable end |
 * | `leased` | `pending` | a transient end, given back, expired, recalled |
 * | `leased` | `cancelled` | the run closes or stops |
 * | `superseded` `cancelled` `skipped` | `pending` | a head wants it again |
 */
export type TicketState = 'pending' | 'leased' | 'ended' | 'held' | 'superseded' | 'cancelled' | 'skipped';

/** What a review depends on (TKT-1), exactly. */
export interface ReviewKeyInput {
  readonly path: WirePath;
  /** Blob ids; head null for a deletion, base null for an addition, the old path's blob for a pair. */
  readonly blob: { readonly head: string | null; readonly base: string | null };
  readonly mode: { readonly head: string | null; readonly base: string | null };
  readonly level: 'L1' | 'L2' | 'L3';
  /** The policy's lenses, in order. */
  readonly lenses: readonly string[];
  /** Reviewers of the ticket in order, then those they may fall back to, each with its policy entry as parsed. */
  readonly reviewers: readonly { readonly name: string; readonly entry: unknown }[];
  readonly fallbacks: readonly { readonly name: string; readonly entry: unknown }[];
  /** `PROMPT_VERSION` of the protocol. */
  readonly promptVersion: string;
  /** The acceptance clauses shown to the reviewers, in order. */
  readonly clauses: readonly string[];
  /** At L3 the block's files, this one may be among them; ignored at other levels. */
  readonly others: readonly {
    readonly path: WirePath;
    readonly base: string | null;
    readonly head: string | null;
  }[];
}

/** The review key: SHA-256, lower-case hex. The order of `others` does not matter; every other order does. */
export function reviewKey(input: ReviewKeyInput): string {
  return digest('countersign review key 1\n', {
    path: input.path,
    blob: { head: input.blob.head, base: input.blob.base },
    mode: { head: input.mode.head, base: input.mode.base },
    level: input.level,
    lenses: listDigest('lenses', input.lenses),
    reviewers: listDigest('reviewers', input.reviewers),
    fallbacks: listDigest('reviewers', input.fallbacks),
    prompt: input.promptVersion,
    clauses: listDigest('clauses', input.clauses),
    others: input.level === 'L3' ? listDigest('others', input.others) : null,
  });
}

/** The digest of acceptance clauses as they are shown, in order: SHA-256, lower-case hex. */
export function clausesDigest(clauses: readonly string[]): string {
  return listDigest('clauses', clauses);
}

/** The id of one asking (run, block, review key, round): SHA-256, lower-case hex; rounds start at 0. */
export function ticketId(input: {
  readonly run: string;
  readonly block: string;
  readonly key: string;
  readonly round: number;
}): string {
  return digest('countersign ticket 1\n', {
    run: input.run,
    block: input.block,
    key: input.key,
    round: input.round,
  });
}

type List = keyof typeof ENCODINGS;

/** How each list goes into a key; what a caller's object holds besides is left out. */
const ENCODINGS = {
  lenses: (lenses: ReviewKeyInput['lenses']): unknown => lenses,
  clauses: (clauses: ReviewKeyInput['clauses']): unknown => clauses,
  reviewers: (reviewers: ReviewKeyInput['reviewers']): unknown =>
    reviewers.map(({ name, entry }) => ({ name, entry })),
  others: (others: ReviewKeyInput['others']): unknown =>
    others.map(({ path, base, head }) => canonicalize({ path, base, head }) ?? '').sort(),
};

// 4,000 files of a block share their lists: each is encoded once, by identity, as they are read-only
const digests: Record<List, WeakMap<object, string>> = {
  lenses: new WeakMap(),
  clauses: new WeakMap(),
  reviewers: new WeakMap(),
  others: new WeakMap(),
};

function listDigest<L extends List>(list: L, items: Parameters<(typeof ENCODINGS)[L]>[0]): string {
  const known = digests[list].get(items);
  if (known !== undefined) return known;
  const encode = ENCODINGS[list] as (items: Parameters<(typeof ENCODINGS)[L]>[0]) => unknown;
  const made = digest(`countersign ${list} 1\n`, encode(items));
  digests[list].set(items, made);
  return made;
}

function digest(prefix: string, value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('a key is made of JSON');
  return createHash('sha256').update(prefix).update(text).digest('hex');
}
