/**
 * What of a file one session reads (REV-2): all of it, or the ranges that together are all of it. A
 * range is claimed only by its own session, and a file counts as reviewed when every range was read.
 */
import { linesOf } from '../../../app/domain/finding.ts';
import { visible } from './quoted.ts';

/** Lines `from` to `to` of `of`, with their numbers, and what the diff says there. */
export type Range = Readonly<{
  from: number;
  to: number;
  of: number;
  /** Its last line that no later range shows again. */
  until: number;
  /** The numbered lines. */
  lines: string;
  /** The numbered diff of these lines; empty where nothing of them changed. */
  changes: string;
}>;

/** The ranges in order, or why no session can read the file. */
export type Ranges =
  | Readonly<{ kind: 'ranges'; ranges: readonly Range[] }>
  | Readonly<{ kind: 'too_large'; detail: string }>;

/** Characters of file and diff in one session: 40,000 to 50,000 tokens. */
export const RANGE_CHARACTERS = 160_000;
/** Most sessions that share one file. */
export const MOST_RANGES = 6;
/** Lines that a range shows again of the one before, so that nothing is read out of its place. */
const OVERLAP = 30;

/** Cuts a text and its unified diff (empty: none) into what sessions of `budget` characters can read. */
export function rangesOf(text: string, diff: string, budget = RANGE_CHARACTERS): Ranges {
  const lines = linesOf(text);
  const of = lines.length;
  const width = String(of).length;
  const shown = lines.map(
    (line, i) => `${String(i + 1).padStart(width)}| ${visible(line.replace(/\r$/, ''))}`,
  );
  const changes = changesByLine(diff, of);
  const cost = shown.map((line, i) => line.length + 1 + costOf(changes.get(i + 1)));
  const widest = cost.findIndex((one) => one > budget);
  if (widest >= 0)
    return {
      kind: 'too_large',
      detail: `line ${widest + 1} with its changes has ${cost[widest]} characters, a session reads ${budget}`,
    };
  const bounds: [from: number, to: number][] = [];
  for (let from = 1; from <= Math.max(of, 1); ) {
    let to = from;
    let left = budget - (cost[from - 1] ?? 0);
    while (to < of && left >= (cost[to] ?? 0)) {
      left -= cost[to] ?? 0;
      to++;
    }
    bounds.push([from, to]);
    if (to >= of) break;
    // never less than a step forward
    from = Math.max(from + 1, to + 1 - OVERLAP);
  }
  if (bounds.length > MOST_RANGES)
    return {
      kind: 'too_large',
      detail: `it takes ${bounds.length} sessions to read, the limit is ${MOST_RANGES}`,
    };
  return {
    kind: 'ranges',
    ranges: bounds.map(([from, to], i) => ({
      from,
      to,
      of,
      until: (bounds[i + 1]?.[0] ?? to + 1) - 1,
      lines: shown.slice(from - 1, to).join('\n'),
      changes: between(changes, from, to),
    })),
  };
}

const costOf = (lines: readonly string[] | undefined): number =>
  (lines ?? []).reduce((sum, line) => sum + line.length + 1, 0);

/** The diff's lines, each numbered on its side (`B12-| …` was, `H12+| …` is), by the head line they stand at. */
function changesByLine(diff: string, of: number): Map<number, string[]> {
  const found = new Map<number, string[]>();
  let base = 0;
  let head = 0;
  let inHunk = false;
  const say = (line: string) => {
    // what was taken away at the end of the file stands at its last line
    const at = Math.min(Math.max(1, head), Math.max(1, of));
    const list = found.get(at);
    if (list === undefined) found.set(at, [line]);
    else list.push(line);
  };
  for (const line of diff.split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,(\d+))? @@/.exec(line);
    const code = visible(line.slice(1).replace(/\r$/, ''));
    if (hunk !== null) {
      base = Number(hunk[1]);
      // an empty head side names the line before it
      head = Number(hunk[2]) + (hunk[3] === '0' ? 1 : 0);
      inHunk = true;
    } else if (inHunk && line.startsWith('-')) say(`B${base++}-| ${code}`);
    else if (inHunk && line.startsWith('+')) {
      say(`H${head}+| ${code}`);
      head++;
    } else if (inHunk && line.startsWith(' ')) {
      say(`H${head} | ${code}`);
      head++;
      base++;
    }
  }
  return found;
}

/** The changes of these lines, with a mark where lines without any lie between. */
function between(changes: ReadonlyMap<number, readonly string[]>, from: number, to: number): string {
  const out: string[] = [];
  let last = 0;
  for (let line = from; line <= to; line++) {
    const here = changes.get(line);
    if (here === undefined) continue;
    if (last !== 0 && line > last + 1) out.push('…');
    out.push(...here);
    last = line;
  }
  return out.join('\n');
}
