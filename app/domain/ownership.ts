/**
 * Who owns each changed path (OWN-3…OWN-6, OWN-9): exactly one block, or a name for why not. Pure.
 * Declarations come from the commits, claims from verified rows; nothing else has a say.
 */
import type { RowData } from './ledger/row-kinds.ts';
import { type EntryKind, entryKind } from './ownership/entry.ts';
import { foldPath, pathText } from './ownership/guard.ts';
import { compileDeclarations } from './ownership/match.ts';
import { pathKey, type WirePath } from './path.ts';

/** A changed path as far as ownership needs it. */
export interface OwnedFile {
  readonly path: WirePath;
  /** The old path of a pair: its guards apply too (OWN-9). */
  readonly from: WirePath | null;
  readonly modeBase: string | null;
  readonly modeHead: string | null;
}

/** A block as far as ownership needs it. */
export interface OwningBlock {
  readonly id: string;
  /** Entries it declares, normalised (`dir/` for an exact entry that was a directory, OWN-2); empty without `Owns`. */
  readonly entries: readonly string[];
  /** Whether it has `Owns`: then what it changes outside of them is claimed, not simply its own. */
  readonly declares: boolean;
}

/** What the rows say of one path, by block, newest word of each (OWN-6). */
export type ClaimWords = ReadonlyMap<
  string,
  { readonly claimed: boolean; readonly auto: boolean; readonly seq: number }
>;

/** What ownership is decided from. */
export interface OwnershipInput {
  readonly mode: 'auto' | 'declared';
  readonly files: readonly OwnedFile[];
  /** Open blocks, in order. */
  readonly blocks: readonly OwningBlock[];
  /** By path key: blocks whose commits changed the path, in order of first touch, each once. */
  readonly touches: ReadonlyMap<string, readonly string[]>;
  /** By path key. */
  readonly claims: ReadonlyMap<string, ClaimWords>;
  readonly guarded: (path: WirePath) => boolean;
}

/** Who owns a path, and why. */
export interface PathOwner {
  readonly block: string;
  readonly ownership: 'owned' | 'guarded' | 'unowned_change' | 'overlap' | 'orphan';
  /** Why there is no single owner, as words; null when there is. */
  readonly reason: string | null;
  /** A claim to be recorded for it (OWN-5). */
  readonly claim: { readonly block: string; readonly entry: EntryKind; readonly reason: string } | null;
}

/** Ownership of a head. */
export interface Ownership {
  /** By path key, one for each file. */
  readonly owners: ReadonlyMap<string, PathOwner>;
  /** Paths that later blocks changed in another's implicit scope (OWN-4). */
  readonly contributions: readonly {
    readonly block: string;
    readonly to: string;
    readonly paths: readonly WirePath[];
  }[];
}

/** Decides who owns each changed path. */
export function decideOwnership(input: OwnershipInput): Ownership {
  const open = new Map(input.blocks.map((block) => [block.id, block]));
  const declaredBy = compileDeclarations(input.blocks.map((b) => ({ block: b.id, entries: b.entries })));
  const links = linkPaths(input.files);
  const renamedTo = new Map(
    input.files.flatMap(({ path, from }) => (from === null ? [] : [[pathKey(from), path] as const])),
  );
  const owners = new Map<string, PathOwner>();
  const contributed = new Map<string, { block: string; to: string; paths: WirePath[] }>();
  for (const file of input.files) {
    const key = pathKey(file.path);
    const touchers = (input.touches.get(key) ?? []).filter((id) => open.has(id));
    const owner = ownerOf(file, key, touchers);
    owners.set(key, owner);
    if (owner.ownership !== 'owned') continue;
    for (const block of touchers) {
      if (block === owner.block) continue;
      const pair = `${block}\0${owner.block}`;
      const known = contributed.get(pair);
      if (known === undefined) contributed.set(pair, { block, to: owner.block, paths: [file.path] });
      else known.paths.push(file.path);
    }
  }
  return { owners, contributions: [...contributed.values()] };

  function ownerOf(file: OwnedFile, key: string, touchers: readonly string[]): PathOwner {
    // both paths of a pair are guarded when either is (OWN-9)
    const pair = [file.path, file.from, renamedTo.get(key) ?? null];
    if (pair.some((path) => path !== null && input.guarded(path))) {
      return { block: 'guarded', ownership: 'guarded', reason: null, claim: null };
    }
    const words = input.claims.get(key) ?? NO_WORDS;
    // a claim is held to its rules again: the path may be a link by now (OWN-1)
    const holds = words.size > 0 && claimRefusal(file, links) === null;
    // a person's claim settles it
    const person = holds ? newest(words, open, (word) => word.claimed && !word.auto) : null;
    if (person !== null) return owned(person);
    const released = (id: string) => words.get(id)?.claimed === false;
    const claimed = holds ? newest(words, open, (word) => word.claimed && word.auto) : null;
    const declared = declaredBy(pathText(file.path)).filter((id) => !released(id));
    const covering = [...new Set([...declared, ...(claimed === null ? [] : [claimed])])];
    if (covering.length > 1) {
      return unowned('overlap', `declared by ${covering.slice(0, 5).join(', ')}`);
    }
    const [only] = covering;
    if (only !== undefined) {
      const stranger = touchers.find(
        (id) => id !== only && (declared.includes(only) || open.get(id)?.declares),
      );
      if (stranger !== undefined) return unowned('unowned_change', `${stranger} changes what ${only} owns`);
      return owned(only);
    }
    const [first, ...later] = touchers;
    if (first === undefined) return unowned('orphan', 'no commit of this pull request leads to this change');
    if (released(first)) return unowned('unowned_change', `${first} released it`);
    const declarer = later.find((id) => open.get(id)?.declares === true);
    if (declarer !== undefined) {
      return unowned('unowned_change', `${declarer} changes what ${first} owns`);
    }
    if (open.get(first)?.declares !== true) return owned(first);
    if (input.mode === 'declared') return unowned('orphan', `${first} changes it and does not declare it`);
    const refusal = claimRefusal(file, links);
    if (refusal !== null) return unowned('unowned_change', refusal);
    const claim = { block: first, entry: entryKind(file.modeHead), reason: 'changed outside its entries' };
    return { ...owned(first), claim };
  }
}

/** Why a path is never claimed, by itself or by a command (OWN-5, OWN-7); null when it may be. Guards are asked apart. */
export function claimRefusal(file: OwnedFile, links: ReadonlySet<string>): string | null {
  // NTFS reaches `.git` as `git~1` too
  const segments = foldPath(pathText(file.path)).split('/');
  if (segments.some((segment) => /^(?:\.git|\.countersign|git~[0-9]+)$/.test(segment))) {
    return 'it lies in .git or .countersign';
  }
  for (const mode of [file.modeHead, file.modeBase]) {
    if (mode === '120000') return 'it is a symlink';
    if (mode === '160000') return 'it is a submodule';
  }
  const key = pathKey(file.path);
  for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
    if (links.has(key.slice(0, slash))) return 'it lies behind a symlink or submodule';
  }
  return null;
}

/** Path keys that are a symlink or submodule on either side. */
export function linkPaths(files: readonly OwnedFile[]): ReadonlySet<string> {
  const links = files.filter((file) => isLinkMode(file.modeBase) || isLinkMode(file.modeHead));
  return new Set(links.map((file) => pathKey(file.path)));
}

/** By path, what the rows of a run say of claims (OWN-6), in the order of the chain. */
export function foldClaims(
  rows: Iterable<{ readonly kind: string; readonly seq: number; readonly data: unknown }>,
): Map<string, Map<string, { claimed: boolean; auto: boolean; seq: number }>> {
  const claims = new Map<string, Map<string, { claimed: boolean; auto: boolean; seq: number }>>();
  for (const row of rows) {
    if (row.kind !== 'block.claimed' && row.kind !== 'block.released') continue;
    const data = row.data as RowData<'block.claimed'> | RowData<'block.released'>;
    const key = pathKey(data.path);
    const words = claims.get(key) ?? new Map();
    claims.set(key, words);
    const claimed = row.kind === 'block.claimed';
    words.set(data.block, { claimed, auto: claimed && 'auto' in data && data.auto, seq: row.seq });
  }
  return claims;
}

const NO_WORDS: ClaimWords = new Map();

function newest(
  words: ClaimWords,
  open: ReadonlyMap<string, unknown>,
  wanted: (word: { readonly claimed: boolean; readonly auto: boolean }) => boolean,
): string | null {
  let best: { id: string; seq: number } | null = null;
  for (const [id, word] of words) {
    if (open.has(id) && wanted(word) && (best === null || word.seq > best.seq)) best = { id, seq: word.seq };
  }
  return best?.id ?? null;
}

/** Whether a mode is a symlink's or a submodule's. */
export function isLinkMode(mode: string | null): boolean {
  return mode === '120000' || mode === '160000';
}

function owned(block: string): PathOwner {
  return { block, ownership: 'owned', reason: null, claim: null };
}

function unowned(ownership: 'unowned_change' | 'overlap' | 'orphan', reason: string): PathOwner {
  return { block: 'unowned', ownership, reason, claim: null };
}
