/** Which findings a new file set ends, and which come back with their content (FND-1, TKT-4). Pure. */
import type { DecidedPath } from '../ledger/row-fields.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import { pathKey } from '../path.ts';
import type { Fact } from './fact.ts';
import type { FindingFact } from './state.ts';

/** What to record of findings when the file set changes. */
export interface SettledFindings {
  readonly ended: readonly { readonly finding: number; readonly reason: string }[];
  /** The newest raising of each finding on the content that is present again. */
  readonly raised: readonly { readonly block: string | null; readonly data: RowData<'finding.raised'> }[];
}

/** What the results of one review key said of a finding, last word: raised, or ended as fixed for a reason. */
type Word =
  | { readonly kind: 'raised'; readonly block: string | null; readonly data: RowData<'finding.raised'> }
  | { readonly kind: 'ended'; readonly reason: string };

/**
 * Holds every finding against the content that stands at its path now. One whose path left the
 * change ends `left_the_change`; one that was reviewed away or left, and whose very content is back,
 * is raised again: a push forth and back is no way to a green.
 */
export function settleFindings(
  rows: readonly Pick<Fact, 'kind' | 'block' | 'cause' | 'data'>[],
  findings: ReadonlyMap<number, FindingFact>,
  files: readonly DecidedPath[],
): SettledFindings {
  if (findings.size === 0) return { ended: [], raised: [] };
  const present = new Map(files.map((file) => [pathKey(file.path), file]));
  const words = wordsOf(rows as readonly Fact[]);
  const ended: { finding: number; reason: string }[] = [];
  const raised: { block: string | null; data: RowData<'finding.raised'> }[] = [];
  for (const finding of findings.values()) {
    const file = present.get(pathKey(finding.path));
    const left = file === undefined || hasLeft(file, finding.side);
    const word = left || file.key === null ? undefined : words.get(`${file.key} ${finding.number}`);
    if (finding.state === 'open' || finding.state === 'answered') {
      if (left) ended.push({ finding: finding.number, reason: 'left_the_change' });
      else if (word?.kind === 'ended') ended.push({ finding: finding.number, reason: word.reason });
    } else if (finding.state === 'fixed' && word?.kind === 'raised') {
      raised.push({ block: word.block, data: word.data });
    }
  }
  return { ended, raised };
}

/** The side it was found on is gone, or is exactly what the base has elsewhere. */
function hasLeft(file: DecidedPath, side: FindingFact['side']): boolean {
  return file.blob[side] === null || (file.level === 'L0' && file.reason === 'moved');
}

function wordsOf(rows: readonly Fact[]): Map<string, Word> {
  const words = new Map<string, Word>();
  const keyOfLease = new Map<string, string>();
  for (const row of rows) {
    if (row.kind === 'ticket.ended') {
      if (row.cause.kind === 'lease') keyOfLease.set(row.cause.id, row.data.key);
    } else if (row.kind === 'finding.raised') {
      const { block, data } = row;
      words.set(`${data.key} ${data.finding}`, { kind: 'raised', block, data });
    } else if (row.kind === 'finding.ended' && row.data.state === 'fixed' && row.cause.kind === 'lease') {
      // a late result ends what it raises because its content is away, which is no word on that content
      if (row.data.reason === 'left_the_change') continue;
      const key = keyOfLease.get(row.cause.id);
      if (key !== undefined)
        words.set(`${key} ${row.data.finding}`, { kind: 'ended', reason: row.data.reason });
    }
  }
  return words;
}
