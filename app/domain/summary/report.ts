/** What a person reads of a run, as data (PUB-7): made of the verified state and its verdict, rendered in `render.ts`. */
import type { GateDecision } from '../gate/decide.ts';
import { REASONS } from '../gate/reason.ts';
import { pathKey, showPath, type WirePath } from '../path.ts';
import { type PathStanding, severityRank, standings } from '../run-state/coverage.ts';
import type { FindingFact, RunState } from '../run-state/state.ts';
import type { EnrolPlace } from './enrol.ts';

/** The signed head that is published with a verdict (LED-10). */
export interface PublishedHead {
  readonly run: string;
  readonly seq: number;
  /** Lower-case hex. */
  readonly hash: string;
  /** The signed note: text, blank line, signature line. */
  readonly note: string;
}

/** Where things are; addresses without a trailing slash. */
export interface ReportPlaces {
  /** The page of the run. */
  readonly run: string;
  /** The repository on GitHub. */
  readonly repository: string;
}

/** A line of "what holds it". */
export interface Hold {
  readonly code: string;
  readonly what: string;
  readonly concerns: readonly string[];
  readonly count: number;
  readonly detail: string | null;
  readonly clears: string;
  readonly who: string;
  readonly untilMs: number | null;
  readonly past: boolean;
}

/** A block's line of the table. */
export interface BlockLine {
  readonly id: string;
  readonly title: string | null;
  readonly level: string;
  readonly files: number;
  readonly counted: number;
  readonly verdict: 'passed' | 'reviewing' | 'blocked' | 'held';
  readonly blocking: number;
  readonly other: number;
}

/** A finding as listed. */
export interface FindingLine {
  readonly number: number;
  readonly severity: string;
  readonly path: WirePath;
  readonly line: number;
  readonly title: string | null;
  readonly blocks: boolean;
  readonly state: FindingFact['state'];
}

/** Everything the summary says. Texts are as stored, redacted; rendering neutralises them. */
export interface Report {
  readonly decision: GateDecision;
  readonly holds: readonly Hold[];
  readonly blocks: readonly BlockLine[];
  readonly findings: readonly FindingLine[];
  readonly missing: readonly { readonly path: WirePath; readonly why: string }[];
  readonly unreviewed: readonly { readonly path: WirePath; readonly why: string }[];
  readonly usage: RunState['usage'];
  readonly since: {
    readonly head: string;
    readonly conclusion: string;
    readonly raised: readonly number[];
    readonly ended: readonly number[];
  } | null;
  /** Other pull requests on the same head, and what they decide (RUN-5). */
  readonly shared: readonly { readonly pull: string; readonly conclusion: string }[];
  readonly published: PublishedHead;
  readonly places: ReportPlaces;
  /** The one block that it is about; absent: the whole run. */
  readonly block?: { readonly id: string; readonly title: string | null };
  /** Where the base branch can be enrolled; told only while that is what holds it. */
  readonly enrol?: EnrolPlace;
}

/** Texts by reference, redacted; null or absent: erased. */
export type Texts = ReadonlyMap<string, string | null>;

/** Puts a report together. */
export function makeReport(
  state: RunState,
  decision: GateDecision,
  texts: Texts,
  rest: Pick<Report, 'published' | 'places' | 'shared' | 'enrol'>,
): Report {
  // a file set of another head or base is not this verdict's: it then counts no files
  const paths = decision.counts.files > 0 ? standings(state) : [];
  const present = new Set(paths.map((path) => pathKey(path.file.path)));
  const shown = [...state.findings.values()]
    .filter((finding) => present.has(pathKey(finding.path)) && finding.state !== 'fixed')
    .sort((a, b) => severityRank(a.severity) - severityRank(b.severity) || a.number - b.number);
  const blocking = new Set(decision.blocking);
  return {
    ...rest,
    decision,
    holds: decision.reasons.map((reason) => ({
      code: reason.code,
      what: REASONS[reason.code].what,
      concerns:
        reason.findings.length > 0
          ? reason.findings.map((number) => `F${number}`)
          : reason.paths.length > 0
            ? reason.paths.map(showPath)
            : reason.blocks,
      count: reason.count,
      detail: reason.detail,
      clears: REASONS[reason.code].clears,
      who: REASONS[reason.code].who,
      untilMs: reason.untilMs,
      past: reason.past,
    })),
    blocks: blockLines(state, paths, shown, blocking, texts),
    findings: shown.map((finding) => ({
      number: finding.number,
      severity: finding.severity,
      path: finding.path,
      line: finding.startLine,
      title: texts.get(finding.title) ?? null,
      blocks: blocking.has(finding.number),
      state: finding.state,
    })),
    missing: paths
      .filter(
        (path) =>
          path.standing === 'pending' || path.standing === 'unavailable' || path.standing === 'keyless',
      )
      .map((path) => ({
        path: path.file.path,
        why: (path.why ?? path.standing) + (path.detail ? `: ${path.detail}` : ''),
      })),
    unreviewed: paths
      .filter((path) => path.standing === 'unreviewed')
      .map((path) => ({ path: path.file.path, why: path.why ?? 'no reason' })),
    usage: { ...state.usage },
    since: changes(state, decision),
  };
}

function blockLines(
  state: RunState,
  paths: readonly PathStanding[],
  findings: readonly FindingFact[],
  blocking: ReadonlySet<number>,
  texts: Texts,
): BlockLine[] {
  const groups = new Map<string, PathStanding[]>();
  for (const path of paths) groups.set(path.block, [...(groups.get(path.block) ?? []), path]);
  const owner = new Map(paths.map((path) => [pathKey(path.file.path), path.block]));
  const order = [...state.blocks.keys()];
  return [...groups]
    .sort(([a], [b]) => place(order, a) - place(order, b) || (a < b ? -1 : 1))
    .map(([id, group]) => {
      const block = state.blocks.get(id);
      const own = findings.filter(
        (finding) =>
          owner.get(pathKey(finding.path)) === id &&
          (finding.state === 'open' || finding.state === 'answered'),
      );
      const blocked = own.filter((finding) => blocking.has(finding.number)).length;
      const standing = new Set(group.map((path) => path.standing));
      return {
        id,
        title: block === undefined ? null : (texts.get(block.title) ?? null),
        level:
          group
            .map((path) => path.file.level as string)
            .sort()
            .at(-1) ?? 'L0',
        files: group.length,
        counted: group.filter((path) => path.standing === 'counted' || path.standing === 'unreviewed').length,
        verdict: standing.has('pending')
          ? 'reviewing'
          : blocked > 0 || standing.has('unavailable') || standing.has('keyless')
            ? 'blocked'
            : group.some((path) => path.ownership !== 'owned')
              ? 'held'
              : 'passed',
        blocking: blocked,
        other: own.length - blocked,
      };
    });
}

/** Pseudo-blocks have no row: they come last. */
function place(order: readonly string[], id: string): number {
  const index = order.indexOf(id);
  return index < 0 ? order.length : index;
}

/** Against the newest verdict of the head before: findings that came and findings that went. */
function changes(state: RunState, decision: GateDecision): Report['since'] {
  const before = state.heads.filter((head) => head.head !== decision.head).at(-1);
  const gate = before === undefined ? undefined : state.gates.get(before.head);
  const arrived = state.heads.find((head) => head.head === decision.head);
  if (before === undefined || gate === undefined || arrived === undefined) return null;
  const since = [...state.findings.values()].filter((finding) => finding.seq > gate.seq);
  return {
    head: before.head,
    conclusion: gate.conclusion,
    raised: since.filter((finding) => finding.state === 'open').map((finding) => finding.number),
    ended: since.filter((finding) => finding.state === 'fixed').map((finding) => finding.number),
  };
}

/** References of every text that a report of this state shows; `most` findings at most, worst first. */
export function reportRefs(state: RunState, most: number): string[] {
  const findings = [...state.findings.values()]
    .filter((finding) => finding.state !== 'fixed')
    .sort((a, b) => severityRank(a.severity) - severityRank(b.severity) || a.number - b.number)
    .slice(0, most);
  return [
    ...[...state.blocks.values()].map((block) => block.title),
    ...findings.map((finding) => finding.title),
  ];
}
