/** Which findings a new file set ends, and which come back with their content (FND-1, TKT-4). Pure. */
import type { DecidedPath } from '../ledger/row-fields.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import { pathKey, type WirePath } from '../path.ts';
import { isStanding, severityRank } from './coverage.ts';
import type { Fact } from './fact.ts';
import type { FindingFact } from './state.ts';

/** The newest raising of a finding, as it is to be said again. */
export interface Again {
  readonly block: string | null;
  readonly data: RowData<'finding.raised'>;
}

/** What to record of findings when the file set changes. */
export interface SettledFindings {
  readonly ended: readonly { readonly finding: number; readonly reason: string }[];
  /** Findings on content that is present again. */
  readonly raised: readonly Again[];
  /** The same where the finding has gone on to another path, which is still there: each takes a new number. */
  readonly anew: readonly Again[];
}

/** What the results of one review key said of a finding, last word: raised, or ended as fixed for a reason. */
type Word = ({ readonly kind: 'raised' } & Again) | { readonly kind: 'ended'; readonly reason: string };

/** Last words by review key, then by number; and the newest raising by number. */
interface Words {
  readonly byKey: ReadonlyMap<string, ReadonlyMap<number, Word>>;
  readonly last: ReadonlyMap<number, Again>;
}

/**
 * Holds every finding against the content that stands at its path now, `findings` being where renames
 * carried them. One whose path left the change ends `left_the_change`; one that was reviewed away or
 * left, and whose very content is back, is raised again, also at the path that it was carried to
 * (`moved`): a push forth and back is no way to a green.
 */
export function settleFindings(
  rows: readonly Pick<Fact, 'kind' | 'block' | 'cause' | 'data'>[],
  findings: ReadonlyMap<number, FindingFact>,
  files: readonly DecidedPath[],
  moved: ReadonlySet<number> = new Set(),
): SettledFindings {
  if (findings.size === 0) return { ended: [], raised: [], anew: [] };
  const present = new Map(files.map((file) => [pathKey(file.path), file]));
  const named = new Map([...findings.values()].map((one) => [place(one.path, one.fingerprint), one]));
  const words = wordsOf(rows as readonly Fact[]);
  const ended = new Map<number, string>();
  const raised = new Map<number, Again>();
  const anew = new Map<string, Again>();
  const raise = (finding: FindingFact, { block, data }: Again, key: string | null) => {
    const { number, path, fingerprint } = finding;
    if (finding.state !== 'fixed' || raised.has(number)) return;
    raised.set(number, {
      block,
      data: { ...data, finding: number, path, fingerprint, key: key ?? data.key },
    });
  };
  for (const finding of findings.values()) {
    const file = present.get(pathKey(finding.path));
    if (file === undefined || hasLeft(file, finding.side)) {
      if (isStanding(finding)) ended.set(finding.number, 'left_the_change');
    } else if (moved.has(finding.number) && finding.side === 'head' && file.blob.head === finding.blob) {
      const said = file.key === null ? undefined : words.byKey.get(file.key)?.get(finding.number);
      const last = words.last.get(finding.number);
      if (said === undefined && last !== undefined) raise(finding, last, file.key);
    }
  }
  for (const file of files) {
    if (file.key === null) continue;
    for (const [number, word] of words.byKey.get(file.key) ?? []) {
      const finding = findings.get(number);
      const here =
        finding !== undefined && pathKey(finding.path) === pathKey(file.path) ? finding : undefined;
      if (word.kind === 'ended') {
        if (here !== undefined && isStanding(here) && !ended.has(number)) ended.set(number, word.reason);
        continue;
      }
      if (hasLeft(file, word.data.side)) continue;
      // another one may have taken the name since: then that is the finding of this content
      const name = place(file.path, word.data.fingerprint);
      const meant = named.get(name) ?? here;
      // two numbers may have had that name in turn: the worse word stands
      if (meant === undefined) anew.set(name, worse(anew.get(name), word));
      else raise(meant, word, file.key);
    }
  }
  const byNumber = ([a]: readonly [number, unknown], [b]: readonly [number, unknown]) => a - b;
  return {
    ended: [...ended].sort(byNumber).map(([finding, reason]) => ({ finding, reason })),
    raised: [...raised].sort(byNumber).map(([, again]) => again),
    anew: [...anew.values()],
  };
}

/** Present paths whose review key has a finding of that number, the newest raising first (REV-5). */
export function knownPaths(
  rows: readonly Pick<Fact, 'kind' | 'block' | 'cause' | 'data'>[],
  files: readonly DecidedPath[],
): Map<number, DecidedPath> {
  const byKey = new Map(files.flatMap((file) => (file.key === null ? [] : [[file.key, file]])));
  const known = new Map<number, DecidedPath>();
  for (const row of rows as readonly Fact[]) {
    if (row.kind !== 'finding.raised') continue;
    const file = byKey.get(row.data.key);
    if (file !== undefined) known.set(row.data.finding, file);
  }
  return known;
}

/** The side it was found on is gone, or is exactly what the base has elsewhere. */
function hasLeft(file: DecidedPath, side: FindingFact['side']): boolean {
  return file.blob[side] === null || (file.level === 'L0' && file.reason === 'moved');
}

function wordsOf(rows: readonly Fact[]): Words {
  const byKey = new Map<string, Map<number, Word>>();
  const last = new Map<number, Again>();
  const keyOfLease = new Map<string, string>();
  const say = (key: string, number: number, word: Word) => {
    const said = byKey.get(key);
    if (said === undefined) byKey.set(key, new Map([[number, word]]));
    else said.set(number, word);
  };
  for (const row of rows) {
    if (row.kind === 'ticket.ended') {
      if (row.cause.kind === 'lease') keyOfLease.set(row.cause.id, row.data.key);
    } else if (row.kind === 'finding.raised') {
      const { block, data } = row;
      say(data.key, data.finding, { kind: 'raised', block, data });
      last.set(data.finding, { block, data });
    } else if (row.kind === 'finding.ended' && row.data.state === 'fixed' && row.cause.kind === 'lease') {
      // a late result ends what it raises because its content is away, which is no word on that content
      if (row.data.reason === 'left_the_change') continue;
      const key = keyOfLease.get(row.cause.id);
      if (key !== undefined) say(key, row.data.finding, { kind: 'ended', reason: row.data.reason });
    }
  }
  return { byKey, last };
}

function worse(one: Again | undefined, { block, data }: Again): Again {
  const kept = one !== undefined && severityRank(one.data.severity) <= severityRank(data.severity);
  return kept ? one : { block, data };
}

function place(path: WirePath, fingerprint: string): string {
  return `${pathKey(path)}\u0000${fingerprint}`;
}
