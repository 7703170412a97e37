/** What a person reads of a run, as data (PUB-7): made of the verified state and its verdict, rendered in `render.ts`. */

import { peopleBehind, peopleNeeded } from '../finding/dismissal.ts';
import { remarksOn } from '../finding/remark.ts';
import { compileShow, type Shows } from '../finding/show.ts';
import type { GateDecision } from '../gate/decide.ts';
import { REASONS, type ReasonCode } from '../gate/reason.ts';
import { pathKey, showPath, type WirePath } from '../path.ts';
import { type PathStanding, severityRank, standings } from '../run-state/coverage.ts';
import type { FindingFact, RunState } from '../run-state/state.ts';
import { type BlockNoteLine, blockNotes } from './block-notes.ts';
import type { Contention } from './contention.ts';
import type { EnrolPlace } from './enrol.ts';
import { type ClauseLine, clauseLines, type PersonLine, peopleRefs, personLines } from './people.ts';
import { type ReceiptLine, receiptLines } from './receipts.ts';

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
  readonly verdict: 'passed' | 'reviewing' | 'waiting' | 'blocked' | 'held';
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
  /** Of a standing one that somebody dismissed already: `1 of 2` (FND-2). */
  readonly people?: string | null;
  /** How it came to be, where that matters: `single witness` (RND-3). */
  readonly remarks?: readonly string[];
}

/** Everything the summary says. Texts are as stored, redacted; rendering neutralises them. */
export interface Report {
  readonly decision: GateDecision;
  readonly holds: readonly Hold[];
  readonly blocks: readonly BlockLine[];
  /** Notes on blocks that hold nothing (BLK-3). */
  readonly notes?: readonly BlockNoteLine[];
  readonly findings: readonly FindingLine[];
  /** Acts that the verdict rests on, and the clauses that ask for one. */
  readonly people?: readonly PersonLine[];
  readonly clauses?: readonly ClauseLine[];
  /** What became of the verify commands (VER-2). */
  readonly receipts?: readonly ReceiptLine[];
  /** Findings that `review.show` hides. */
  readonly hidden?: number;
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
  /** Other open pull requests with the same paths; told when something else makes us write (PUB-2). */
  readonly contention?: readonly Contention[];
  /** Keys of the policy that the settings of the installation hold (POL-2). */
  readonly held?: readonly string[];
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
  rest: Pick<Report, 'published' | 'places' | 'shared' | 'contention' | 'enrol'>,
  shows: Shows = compileShow(null),
): Report {
  // a file set of another head or base is not this verdict's: it then counts no files
  const paths = decision.counts.files > 0 ? standings(state) : [];
  const present = new Set(paths.map((path) => pathKey(path.file.path)));
  const shown = [...state.findings.values()]
    .filter((finding) => present.has(pathKey(finding.path)) && finding.state !== 'fixed')
    .sort((a, b) => severityRank(a.severity) - severityRank(b.severity) || a.number - b.number);
  const blocking = new Set(decision.blocking);
  const listed = shown.filter((finding) => shows(finding, blocking.has(finding.number)));
  return {
    ...rest,
    ...(listed.length === shown.length ? {} : { hidden: shown.length - listed.length }),
    ...(state.policy?.held === undefined ? {} : { held: state.policy.held }),
    decision,
    holds: decision.reasons.map((reason, index) => ({
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
      clears: decision.next[index]?.what ?? REASONS[reason.code].clears,
      who: REASONS[reason.code].who,
      untilMs: reason.untilMs,
      past: reason.past,
    })),
    blocks: blockLines(state, decision, paths, shown, blocking, texts),
    notes: blockNotes(state),
    findings: listed.map((finding) => ({
      number: finding.number,
      severity: finding.severity,
      path: finding.path,
      line: finding.startLine,
      title: texts.get(finding.title) ?? null,
      blocks: blocking.has(finding.number),
      state: finding.state,
      people: peopleOf(finding),
      remarks: remarksOn(finding),
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
    people: personLines(state, decision, texts),
    clauses: clauseLines(state, texts),
    receipts: decision.counts.files > 0 ? receiptLines(state) : [],
    usage: { ...state.usage },
    since: changes(state, decision),
  };
}

/** How many of the people that it takes have dismissed a finding that still stands. */
function peopleOf({ state, dismissals, severity }: FindingFact): string | null {
  if (state !== 'open' && state !== 'answered') return null;
  const people = peopleBehind(
    dismissals.filter((one) => !one.self),
    severity,
  ).length;
  return people === 0 ? null : `${people} of ${peopleNeeded(severity)}`;
}

function blockLines(
  state: RunState,
  decision: GateDecision,
  paths: readonly PathStanding[],
  findings: readonly FindingFact[],
  blocking: ReadonlySet<number>,
  texts: Texts,
): BlockLine[] {
  const groups = new Map<string, PathStanding[]>();
  for (const path of paths) {
    const group = groups.get(path.block);
    if (group === undefined) groups.set(path.block, [path]);
    else group.push(path);
  }
  const owner = new Map(paths.map((path) => [pathKey(path.file.path), path.block]));
  const order = new Map([...state.blocks.keys()].map((id, index) => [id, index]));
  // pseudo-blocks have no row: they come last
  const place = (id: string) => order.get(id) ?? order.size;
  const standing = findings.filter(({ state: now }) => now === 'open' || now === 'answered');
  const concerned = (code: ReasonCode) =>
    new Set(decision.reasons.flatMap((reason) => (reason.code === code ? reason.blocks : [])));
  const waiting = concerned('dependency_open');
  const [verifying, unverified] = [concerned('verify_pending'), concerned('verify_failed')];
  return [...groups]
    .sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1))
    .map(([id, group]) => {
      const block = state.blocks.get(id);
      const own = standing.filter((finding) => owner.get(pathKey(finding.path)) === id);
      const blocked = own.filter((finding) => blocking.has(finding.number)).length;
      const standings = new Set(group.map((path) => path.standing));
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
        verdict: standings.has('pending')
          ? waiting.has(id)
            ? 'waiting'
            : 'reviewing'
          : blocked > 0 || standings.has('unavailable') || standings.has('keyless') || unverified.has(id)
            ? 'blocked'
            : verifying.has(id)
              ? 'reviewing'
              : group.some((path) => path.ownership !== 'owned')
                ? 'held'
                : 'passed',
        blocking: blocked,
        other: own.length - blocked,
      };
    });
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
    ...peopleRefs(state),
    ...[...state.blocks.values()].map((block) => block.title),
    ...findings.map((finding) => finding.title),
  ];
}
