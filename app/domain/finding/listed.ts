/** The findings of a run as other programs read them: every one in its one state, with its texts, and what was not looked at. Pure. */
import { plain } from '../neutralise.ts';
import type { WirePath } from '../path.ts';
import { standings } from '../run-state/coverage.ts';
import type { Fact } from '../run-state/fact.ts';
import { type FindingFact, presentHead, type RunState } from '../run-state/state.ts';

/** A finding as listed. Texts are null once erased; `quote` and `body` are as they were redacted. */
export interface ListedFinding {
  readonly number: number;
  readonly fingerprint: string;
  readonly severity: FindingFact['severity'];
  readonly lens: string;
  readonly state: FindingFact['state'];
  /** Whether the gate is held by it now. */
  readonly blocks: boolean;
  readonly path: WirePath;
  /** The side its lines are counted on: `base` for what a deletion took away. */
  readonly side: 'head' | 'base';
  readonly startLine: number;
  readonly endLine: number;
  /** The content it was found in. */
  readonly blob: string | null;
  readonly reviewer: string;
  /** Whether a command found it; else a model or an agent. */
  readonly command: boolean;
  readonly title: string | null;
  readonly body: string | null;
  readonly quote: string | null;
  readonly suggestion: string | null;
  /** The newest answer of the author; null: none, or erased. */
  readonly answer: string | null;
  /** Why it is in its state, where a row ended it: a code, and what a person wrote. */
  readonly ended: {
    readonly reason: string;
    readonly text: string | null;
    /** The account id of the person; null: no person ended it. */
    readonly by: string | null;
    /** ISO product time. */
    readonly at: string;
  } | null;
}

/** A path of the head that no complete review covers, and why. */
export interface UnreviewedFile {
  readonly path: WirePath;
  /** `pending`: it may still be; `unavailable`: it was tried; `unreviewed`: the policy does not ask for it. */
  readonly standing: 'pending' | 'unavailable' | 'unreviewed';
  readonly why: string | null;
}

/** Texts by their references; null: erased. */
type Texts = ReadonlyMap<string, string | null>;

/** References of every text that a list shows. */
export function listedRefs(state: RunState, rows: readonly Fact[]): string[] {
  const own = [...state.findings.values()].flatMap((one) => [
    ...[one.title, one.body, one.quote, one.suggestion, one.answer].filter((ref) => ref !== null),
  ]);
  const ends = [...endsOf(rows).values()].flatMap(({ data }) => (data.text === null ? [] : [data.text]));
  return [...own, ...ends];
}

/** All findings of a verified state, by number; `rows` are the same rows, `blocking` the numbers that hold the gate. */
export function listFindings(
  state: RunState,
  rows: readonly Fact[],
  blocking: readonly number[],
  texts: Texts,
): ListedFinding[] {
  const blocks = new Set(blocking);
  const ends = endsOf(rows);
  const text = (ref: string | null): string | null => {
    const found = ref === null ? null : (texts.get(ref) ?? null);
    return found === null ? null : plain(found);
  };
  return [...state.findings.values()]
    .sort((a, b) => a.number - b.number)
    .map((one) => {
      const last = ends.get(one.number);
      const end = last?.data.state === one.state ? last : undefined;
      return {
        number: one.number,
        fingerprint: one.fingerprint,
        severity: one.severity,
        lens: one.lens,
        state: one.state,
        blocks: blocks.has(one.number),
        path: one.path,
        side: one.side,
        startLine: one.startLine,
        endLine: one.endLine,
        blob: one.blob,
        reviewer: one.reviewer,
        command: one.command,
        title: text(one.title),
        body: text(one.body),
        quote: text(one.quote),
        suggestion: text(one.suggestion),
        answer: text(one.answer),
        ended:
          end === undefined
            ? null
            : {
                reason: end.data.reason,
                text: text(end.data.text),
                by: end.actor.kind === 'person' ? end.actor.id : null,
                at: end.at,
              },
      };
    });
}

/** Paths of the present head without a complete review; nothing that was not looked at goes unsaid. */
export function listUnreviewed(state: RunState): UnreviewedFile[] {
  if (presentHead(state) === null) return [];
  return standings(state).flatMap(({ file, standing, why }) =>
    standing === 'counted'
      ? []
      : [{ path: file.path, standing: standing === 'keyless' ? 'pending' : standing, why }],
  );
}

type End = Extract<Fact, { kind: 'finding.ended' }>;

/** The last row that ended each finding, by number. */
function endsOf(rows: readonly Fact[]): Map<number, End> {
  const ends = new Map<number, End>();
  for (const row of rows) if (row.kind === 'finding.ended') ends.set(row.data.finding, row);
  return ends;
}
