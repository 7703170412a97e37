/** Which findings a new file set carries to another path (REV-5, GIT-4): a rename takes them along. Pure. */
import { createHash } from 'node:crypto';
import { staysDismissed } from '../finding/dismissal.ts';
import { fingerprint } from '../finding.ts';
import type { DecidedPath } from '../ledger/row-fields.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import { pathKey, type WirePath } from '../path.ts';
import { SEVERITIES } from '../review.ts';
import { isStanding } from './coverage.ts';
import type { FindingFact } from './state.ts';

/** What to record of a finding that moves, in the order in which it must be recorded. */
export type Carry = Omit<RowData<'finding.carried'>, 'head'>;

/** A path of a file set, as far as a rename asks. */
export type PlacedFile = Pick<DecidedPath, 'path' | 'from' | 'status' | 'mode' | 'blob'>;

/** What a new file set is held against. */
export interface Moving {
  readonly findings: ReadonlyMap<number, FindingFact>;
  /** The file set before, by path key. */
  readonly before: ReadonlyMap<string, PlacedFile>;
  readonly files: readonly PlacedFile[];
  /** Paths of the file set before whose content git finds similar to that of a new path. */
  readonly similar: readonly { readonly from: WirePath; readonly to: WirePath }[];
  /** Present paths whose review key a finding was raised under before, by its number. */
  readonly known: ReadonlyMap<number, PlacedFile>;
}

/** A finding and the path it goes to. */
export interface Move {
  readonly finding: FindingFact;
  readonly to: PlacedFile;
}

/**
 * The findings whose path is gone while its content stands at another one, in every state: what was
 * dismissed must stay so there, and what was fixed must be met again under its number. First the very
 * same content, then where it was found before (of a path that left earlier: the other way round), then
 * a pair with the same old path or the old path itself, then a pair with the base, then similar content.
 */
export function movesOf({ findings, before, files, similar, known }: Moving): Move[] {
  const present = new Map(files.map((file) => [pathKey(file.path), file]));
  const byBlob = groupBy(files, (file) => file.blob.head);
  const byOrigin = groupBy(files, (file) => (file.from === undefined ? null : pathKey(file.from)));
  const alike = new Map(similar.map(({ from, to }) => [pathKey(from), present.get(pathKey(to))]));
  const isNew = (file: PlacedFile) => entered(file, before.get(pathKey(file.path)));
  const headSide = (finding: FindingFact): PlacedFile | undefined => {
    const key = pathKey(finding.path);
    const was = before.get(key);
    // a path that left with an earlier head is known by the content the finding was raised on
    const blob = was?.blob.head ?? finding.blob;
    const same = byBlob.get(blob ?? '') ?? [];
    const fits = isStanding(finding) ? same : same.filter(isNew);
    const origin = was?.from === undefined ? null : pathKey(was.from);
    const exact = nearest(finding, fits, isNew);
    const there = known.get(finding.number);
    return (
      // what is known at yet another place is raised there anew: content that moves takes its finding along
      (was?.blob.head == null ? (there ?? exact) : (exact ?? there)) ??
      (origin === null ? undefined : (byOrigin.get(origin)?.[0] ?? withHead(present.get(origin)))) ??
      byOrigin.get(key)?.[0] ??
      alike.get(key)
    );
  };
  return [...findings.values()].flatMap((finding) => {
    const key = pathKey(finding.path);
    const stays = present.get(key);
    // what was found on a deletion goes where the base side went
    const to =
      finding.side === 'base'
        ? byOrigin.get(key)?.[0]
        : stays === undefined || stays.blob.head === null
          ? headSide(finding)
          : undefined;
    return to === undefined || pathKey(to.path) === key ? [] : [{ finding, to }];
  });
}

/** Most paths a side that git is asked to compare. */
const MOST_COMPARED = 1000;

/**
 * Paths that may have been renamed since the head before, for git to compare: those that are gone, and
 * those that came. Also without a finding yet, since one may be raised while git compares; of very many
 * only those with findings.
 */
export function comparable({ findings, before, files }: Pick<Moving, 'findings' | 'before' | 'files'>): {
  readonly gone: readonly { readonly path: WirePath; readonly blob: string }[];
  readonly came: readonly { readonly path: WirePath; readonly blob: string }[];
} {
  const present = new Map(files.map((file) => [pathKey(file.path), file]));
  const byBlob = groupBy(files, (file) => file.blob.head);
  const gone = [...before].flatMap(([key, { path, blob, mode }]) => {
    const stays = present.get(key)?.blob.head != null;
    // the very same content needs no comparing
    if (stays || blob.head === null || !isFile(mode.head) || byBlob.has(blob.head)) return [];
    return [{ path, blob: blob.head }];
  });
  const came = files.flatMap((file) =>
    file.blob.head !== null && isFile(file.mode.head) && entered(file, before.get(pathKey(file.path)))
      ? [{ path: file.path, blob: file.blob.head }]
      : [],
  );
  if (gone.length <= MOST_COMPARED) return { gone, came };
  const found = new Set([...findings.values()].map((one) => pathKey(one.path)));
  return { gone: gone.filter((one) => found.has(pathKey(one.path))), came };
}

/**
 * The rows of these moves. A finding that its new path knows already under another number gives way
 * or takes its place: what stands or was dismissed keeps the name a report will meet, and of two that
 * block none is lost. `texts` are those of titles and quotes; an erased one only makes the new
 * fingerprint one that no report meets.
 */
export function carryFindings(
  moves: readonly Move[],
  findings: ReadonlyMap<number, FindingFact>,
  texts: ReadonlyMap<string, string | null>,
): Carry[] {
  const places = new Map<string, number>();
  const now = new Map(findings);
  for (const one of findings.values()) places.set(place(one.path, one.fingerprint), one.number);
  const carried: Carry[] = [];
  const put = (finding: FindingFact, path: WirePath, print: string) => {
    carried.push({ finding: finding.number, from: finding.path, path, fingerprint: print });
    places.delete(place(finding.path, finding.fingerprint));
    places.set(place(path, print), finding.number);
    now.set(finding.number, { ...finding, path, fingerprint: print });
  };
  for (const { finding, to } of moves) {
    const print = printAt(finding, to.path, texts);
    const there = now.get(places.get(place(to.path, print)) ?? -1);
    if (there !== undefined) {
      if (!outranks(finding, there)) continue;
      put(there, there.path, asideOf(there));
    }
    put(finding, to.path, print);
  }
  return carried;
}

/** Whether a finding takes the name that another one has at its new path. */
function outranks(finding: FindingFact, there: FindingFact): boolean {
  const worse = SEVERITIES.indexOf(finding.severity) < SEVERITIES.indexOf(there.severity);
  if (isStanding(finding)) {
    if (isStanding(there)) return worse;
    return there.state !== 'dismissed' || !staysDismissed(there.dismissals, finding.severity);
  }
  return finding.state === 'dismissed' && !isStanding(there) && there.state !== 'dismissed';
}

/** Not in the head before: neither in its file set nor, unchanged, in the base. */
function entered(file: PlacedFile, was: PlacedFile | undefined): boolean {
  return was === undefined ? file.status === 'A' : was.blob.head === null;
}

function withHead(file: PlacedFile | undefined): PlacedFile | undefined {
  return file?.blob.head == null ? undefined : file;
}

function nearest(
  finding: FindingFact,
  files: readonly PlacedFile[],
  isNew: (file: PlacedFile) => boolean,
): PlacedFile | undefined {
  const cost = (file: PlacedFile) =>
    (isNew(file) ? 0 : 2) + (nameOf(file.path) === nameOf(finding.path) ? 0 : 1);
  return files.reduce<PlacedFile | undefined>(
    (best, file) => (best === undefined || cost(file) < cost(best) ? file : best),
    undefined,
  );
}

/** Ordinals of equal quotes that a fingerprint is looked for under, as accept-result does. */
const MOST_ORDINALS = 64;

function printAt(finding: FindingFact, path: WirePath, texts: ReadonlyMap<string, string | null>): string {
  const title = texts.get(finding.title);
  const quote = texts.get(finding.quote);
  if (typeof title === 'string' && typeof quote === 'string') {
    const { lens } = finding;
    for (let ordinal = 0; ordinal < MOST_ORDINALS; ordinal++)
      if (fingerprint({ path: finding.path, lens, title, quote, ordinal }) === finding.fingerprint)
        return fingerprint({ path, lens, title, quote, ordinal });
  }
  return derived('carried', [finding.fingerprint, pathKey(path)]);
}

function asideOf(finding: FindingFact): string {
  return derived('aside', [finding.fingerprint, finding.number]);
}

function derived(why: string, parts: readonly (string | number)[]): string {
  return createHash('sha256')
    .update(`countersign finding ${why} 1\n${JSON.stringify(parts)}`)
    .digest('hex');
}

function groupBy(
  files: readonly PlacedFile[],
  keyOf: (file: PlacedFile) => string | null,
): Map<string, PlacedFile[]> {
  const groups = new Map<string, PlacedFile[]>();
  for (const file of files) {
    const key = keyOf(file);
    if (key === null || file.blob.head === null) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [file]);
    else group.push(file);
  }
  return groups;
}

function place(path: WirePath, print: string): string {
  return `${pathKey(path)}\u0000${print}`;
}

function nameOf(path: WirePath): string {
  const key = pathKey(path);
  return key.slice(key.lastIndexOf('/') + 1);
}

function isFile(mode: string | null): boolean {
  return mode === '100644' || mode === '100755';
}
