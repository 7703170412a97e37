/**
 * The file set of a head (GIT-4, BLK-6): every changed path with its kind, level, owner and review
 * key, as the decision rows will say it. Pure; levels that were decided before are given in and kept.
 */
import { createHash } from 'node:crypto';
import { type AttributesFile, compileAttributes } from './file-set/attributes.ts';
import { isLockfile, type Kind, kindOf } from './file-set/kind.ts';
import type { DecidedPath } from './ledger/row-fields.ts';
import { type DecidedLevel, decideLevel, type L0Class } from './level.ts';
import { pathText } from './ownership/guard.ts';
import { compileEntries } from './ownership/match.ts';
import type { Ownership } from './ownership.ts';
import { pathKey, type WirePath } from './path.ts';
import type { Policy, ReviewLevel } from './policy.ts';
import { keyEntries, type RoutedFile, routeFile, routeHuman, routeVerify } from './routing.ts';
import { reviewKey } from './ticket.ts';

/** A changed path as git tells it. */
export interface ChangedFile {
  readonly path: WirePath;
  readonly status: 'A' | 'M' | 'D' | 'T';
  readonly modeBase: string | null;
  readonly modeHead: string | null;
  readonly blobBase: string | null;
  readonly blobHead: string | null;
}

/** A changed path with its pair (GIT-4): its base side is the old path's. */
export interface PairedFile extends ChangedFile {
  readonly from: WirePath | null;
  readonly pair: 'old' | 'moved' | 'edited' | null;
}

/** What a block gives to the files it owns. */
export interface FileBlock {
  readonly docsOnly: boolean;
  readonly trailer: ReviewLevel | null;
  readonly clauses: readonly string[];
  /** Whether its next round is the one at L3 (RND-2). */
  readonly deep?: boolean;
}

/** What the file set is decided from. */
export interface FileSetInput {
  readonly policy: Policy;
  readonly files: readonly PairedFile[];
  readonly ownership: Ownership;
  readonly blocks: ReadonlyMap<string, FileBlock>;
  readonly attributes: readonly AttributesFile[];
  /** Lines of the head side by blob, where a route asks for them. */
  readonly lines: ReadonlyMap<string, number>;
  /** Levels decided before under this policy, by `contentKey`. */
  readonly decided: ReadonlyMap<string, DecidedLevel & { readonly kind: Kind }>;
  readonly promptVersion: string;
  /** Paths, by key, that had a blocking finding lately (ADM-3); absent: none is known of. */
  readonly history?: ReadonlySet<string>;
}

/** The reason of a level that rounds raised: it holds for the content that was read so (RND-2). */
export const ROUNDS = 'rounds';

/** One list for all: keys encode lists by identity. */
const NO_BLOCK: FileBlock = { docsOnly: false, trailer: null, clauses: [] };

/** Joins pairs to files: the new side gets the old path's base side, the old side is marked. */
export function pairFiles(
  files: readonly ChangedFile[],
  renames: readonly { readonly from: WirePath; readonly to: WirePath }[],
): PairedFile[] {
  const byKey = new Map(files.map((file) => [pathKey(file.path), file]));
  const oldOf = new Map(renames.map(({ from, to }) => [pathKey(to), from]));
  const olds = new Set(renames.map(({ from }) => pathKey(from)));
  return files.map((file) => {
    const key = pathKey(file.path);
    const from = oldOf.get(key);
    const old = from === undefined ? undefined : byKey.get(pathKey(from));
    if (from === undefined || old === undefined)
      return { ...file, from: null, pair: olds.has(key) ? 'old' : null };
    const same = old.blobBase === file.blobHead && old.modeBase === file.modeHead;
    return { ...file, modeBase: old.modeBase, blobBase: old.blobBase, from, pair: same ? 'moved' : 'edited' };
  });
}

/** Names (path, content) of a decision (BLK-6): both sides' blobs and modes, and the old path of a pair. */
export function contentKey(file: Pick<DecidedPath, 'path' | 'from' | 'mode' | 'blob'>): string {
  const from = file.from === undefined ? '' : pathKey(file.from);
  return `${pathKey(file.path)}\0${from}\0${file.mode.base} ${file.mode.head} ${file.blob.base} ${file.blob.head}`;
}

/** SHA-256 over the sorted path bytes, each followed by NUL: what `run.head` promises of its file set. */
export function filesDigest(paths: Iterable<WirePath>): string {
  const hash = createHash('sha256');
  for (const key of Array.from(paths, pathKey).sort()) hash.update(Buffer.from(`${key}\0`, 'latin1'));
  return hash.digest('hex');
}

/** Decides every path of a head, in order of path bytes. */
export function decideFiles(input: FileSetInput): DecidedPath[] {
  const classOf = compileClasses(input.policy, input.attributes);
  const drafts = input.files.map((file) => draft(input, file, classOf));
  const others = new Map<string, { path: WirePath; base: string | null; head: string | null }[]>();
  for (const { path, blob, block } of drafts) {
    const list = others.get(block);
    const entry = { path, base: blob.base, head: blob.head };
    if (list === undefined) others.set(block, [entry]);
    else list.push(entry);
  }
  // the same lists for the same reviewers: a key encodes a list it has met no second time
  const known = new Map<string, ReturnType<EntriesOf>>();
  const entriesOf: EntriesOf = (reviewers) => {
    const name = reviewers.join('\n');
    const entries = known.get(name) ?? keyEntries(input.policy, reviewers);
    known.set(name, entries);
    return entries;
  };
  return drafts.map((file) => withKey(input, file, others.get(file.block) ?? [], entriesOf)).sort(byPath);
}

/** Order of path bytes. */
function byPath(a: { readonly path: WirePath }, b: { readonly path: WirePath }): number {
  return pathKey(a.path) < pathKey(b.path) ? -1 : 1;
}

type Draft = Omit<DecidedPath, 'key'>;
type EntriesOf = (reviewers: readonly string[]) => ReturnType<typeof keyEntries>;

function draft(input: FileSetInput, file: PairedFile, classOf: (path: WirePath) => L0Class): Draft {
  const owner = input.ownership.owners.get(pathKey(file.path));
  const block = owner?.block ?? 'unowned';
  const facts = {
    path: file.path,
    ...(file.from === null ? {} : { from: file.from }),
    status: file.status,
    mode: { base: file.modeBase, head: file.modeHead },
    blob: { base: file.blobBase, head: file.blobHead },
  };
  const before = input.decided.get(contentKey(facts));
  const standard = before ?? decideFresh(input, file, block, owner?.ownership === 'guarded', classOf);
  const decided = input.blocks.get(block)?.deep === true ? deeper(input, facts, standard, owner) : standard;
  return {
    ...facts,
    kind: decided.kind,
    level: decided.level,
    ...(decided.asked === null ? {} : { asked: decided.asked }),
    ...(decided.reason === null ? {} : { reason: decided.reason }),
    ...asks(input, file, decided.kind, owner?.ownership === 'guarded'),
    block,
    ownership: owner?.ownership ?? 'orphan',
  };
}

/** RND-2: the round at L3 raises what is reviewed at all; what is decided for the content stays on record. */
function deeper<D extends DecidedLevel & { readonly kind: Kind }>(
  { policy, lines }: FileSetInput,
  file: Pick<DecidedPath, 'path' | 'from' | 'status' | 'blob'>,
  decided: D,
  owner: { readonly ownership: string } | undefined,
): D {
  if (decided.level === 'L0' || decided.level === 'L3') return decided;
  const routing = routeFile(policy, {
    path: file.path,
    from: file.from ?? null,
    kind: decided.kind,
    lines: file.blob.head === null ? null : (lines.get(file.blob.head) ?? null),
    guarded: owner?.ownership === 'guarded',
    deleted: file.status === 'D',
    level: 'L3',
  });
  // a level that nobody reads this path at would leave it unread
  if ('invalid' in routing || routing.reviewers.length === 0) return decided;
  return { ...decided, level: 'L3', asked: decided.level, reason: ROUNDS };
}

/** What matching routes ask for beside a review: a person (GAT-6), verify commands (VER-1). */
function asks(
  input: FileSetInput,
  file: PairedFile,
  kind: Kind,
  guarded: boolean,
): Pick<DecidedPath, 'human' | 'verify'> {
  const routed: RoutedFile = {
    path: file.path,
    from: file.from,
    kind,
    lines: file.blobHead === null ? null : (input.lines.get(file.blobHead) ?? null),
    guarded,
    deleted: file.status === 'D' && file.pair === null,
  };
  const verify = routeVerify(input.policy, routed);
  return {
    ...(routeHuman(input.policy, routed) ? { human: true as const } : {}),
    ...(verify.length === 0 ? {} : { verify }),
  };
}

function decideFresh(
  input: FileSetInput,
  file: PairedFile,
  block: string,
  guarded: boolean,
  classOf: (path: WirePath) => L0Class,
): DecidedLevel & { readonly kind: Kind } {
  const { docsOnly, trailer } = input.blocks.get(block) ?? NO_BLOCK;
  const link = [file.modeBase, file.modeHead].some((mode) => mode === '120000' || mode === '160000');
  const cls = classOf(file.path);
  const kind = cls === 'generated' ? cls : kindOf(pathText(file.path), file.modeHead ?? file.modeBase);
  const decided = decideLevel(input.policy, {
    path: file.path,
    from: file.from,
    kind,
    lines: file.blobHead === null ? null : (input.lines.get(file.blobHead) ?? null),
    guarded,
    deleted: file.status === 'D' && file.pair === null,
    pair: file.pair,
    link,
    class: cls,
    fromClass: file.from === null ? null : classOf(file.from),
    docsOnly,
    trailer,
  });
  return { ...(guarded ? decided : adapted(input, file, { ...decided, kind })), kind };
}

/** The reason of a level that the path's history raised. */
export const HISTORY = 'history';

/** ADM-3: one level higher for a path, or the old path of a pair, with a history; never lower, and never where nobody reads. */
function adapted(
  { policy, lines, history }: FileSetInput,
  file: PairedFile,
  decided: DecidedLevel & { readonly kind: Kind },
): DecidedLevel {
  const { level } = decided;
  if (policy.review.adaptive === 'off' || (level !== 'L1' && level !== 'L2')) return decided;
  const paths = file.from === null ? [file.path] : [file.path, file.from];
  if (history === undefined || !paths.some((path) => history.has(pathKey(path)))) return decided;
  const raised = level === 'L1' ? 'L2' : 'L3';
  const routing = routeFile(policy, {
    path: file.path,
    from: file.from,
    kind: decided.kind,
    lines: file.blobHead === null ? null : (lines.get(file.blobHead) ?? null),
    guarded: false,
    deleted: file.status === 'D' && file.pair === null,
    level: raised,
  });
  if ('invalid' in routing || routing.reviewers.length === 0) return decided;
  return { level: raised, asked: level, reason: HISTORY };
}

/** Adds the review key (TKT-1); null at L0 only. Where no reviewer reads the path its ticket ends `route_invalid`. */
function withKey(
  input: FileSetInput,
  file: Draft,
  blockFiles: readonly { path: WirePath; base: string | null; head: string | null }[],
  entriesOf: EntriesOf,
): DecidedPath {
  if (file.level === 'L0') return { ...file, key: null };
  const { policy } = input;
  const routing = routeFile(policy, {
    path: file.path,
    from: file.from ?? null,
    kind: file.kind,
    lines: file.blob.head === null ? null : (input.lines.get(file.blob.head) ?? null),
    guarded: file.ownership === 'guarded',
    deleted: file.status === 'D',
    level: file.level,
  });
  const reviewers = 'invalid' in routing ? [] : routing.reviewers;
  const key = reviewKey({
    path: file.path,
    blob: file.blob,
    mode: file.mode,
    level: file.level,
    lenses: policy.review.lenses,
    ...entriesOf(reviewers),
    promptVersion: input.promptVersion,
    clauses: (input.blocks.get(file.block) ?? NO_BLOCK).clauses,
    others: file.level === 'L3' ? blockFiles : [],
  });
  return { ...file, key };
}

/** L0 classes (BLK-6): globs of the base's policy and attributes of the merge base, nothing else. */
function compileClasses(policy: Policy, attributes: readonly AttributesFile[]): (path: WirePath) => L0Class {
  const attributesOf = compileAttributes(attributes);
  const generated = compileEntries(policy.classes.generated);
  const vendored = compileEntries(policy.classes.vendored);
  const lockfile = compileEntries(policy.classes.lockfile);
  return (path) => {
    const text = pathText(path);
    if (isLockfile(text) || lockfile(text)) return 'lockfile';
    const said = attributesOf(text);
    if (generated(text) || said.generated) return 'generated';
    if (vendored(text) || said.vendored) return 'vendored';
    return said.binary ? 'binary' : null;
  };
}
