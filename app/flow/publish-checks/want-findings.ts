/** What `countersign / findings` on a commit should show: the open findings of the run that holds it (PUB-1, PUB-3). */

import type { CheckUnit, StoredCheck } from '../../../db/store/check.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { compileShow } from '../../domain/finding/show.ts';
import { decodePath, pathKey } from '../../domain/path.ts';
import { isStanding, severityRank } from '../../domain/run-state/coverage.ts';
import type { FindingFact } from '../../domain/run-state/state.ts';
import { countLines, type PlacedAnnotation, placeAnnotation } from '../../domain/summary/annotation.ts';
import {
  type FindingsReport,
  findingsTitle,
  renderFindings,
  type UnplacedFinding,
} from '../../domain/summary/findings.ts';
import type { Texts } from '../../domain/summary/report.ts';
import { Fault } from '../../errors.ts';
import type { CheckRunContent } from '../../github/port/check.ts';
import { cloneUrl } from '../clone-url.ts';
import type { Deps } from '../deps.ts';
import type { Judged } from '../judge-run.ts';
import { holderOf } from '../share-head.ts';
import { digestOf, placesOf, publishedHead, textsOf, type Wanted, wantSuperseded } from './want-gate.ts';
import { type Remarks, wantRemarks } from './want-remarks.ts';

/** Findings as annotations by number, and the content that fits when some of them were dropped. */
export interface WantedFindings extends Wanted {
  /** Numbers to annotate, in order; at most `publish.annotations`. */
  readonly order: readonly number[];
  readonly annotations: ReadonlyMap<number, PlacedAnnotation>;
  /** The content once these could not be placed after all. */
  contentWithout(dropped: readonly { readonly finding: number; readonly reason: string }[]): CheckRunContent;
  /** The review of ours on this head; null where the policy wants none, or no finding suggests anything. */
  readonly remarks: Remarks | null;
}

/** The findings' check run; null when it has nothing to show, or the gate is still undecided. */
export async function wantFindings(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  judged: readonly Judged[],
  shown: StoredCheck | undefined,
): Promise<Wanted | WantedFindings | null> {
  const holder = holderOf(judged);
  if (holder === undefined) return shown === undefined ? null : wantSuperseded(deps, unit, shown);
  const { state, decision, run, policy } = holder;
  const undecided = decision.conclusion === 'in_progress' || decision.conclusion === 'queued';
  // the gate's own summary lists what is found meanwhile; one write a head instead of one a finding
  if (undecided && shown?.state !== 'open' && shown?.state !== 'intended') return null;
  const present = new Set(state.files.keys());
  const blocking = new Set(decision.blocking);
  const open = [...state.findings.values()]
    .filter(
      (finding) =>
        (isStanding(finding) || blocking.has(finding.number)) && present.has(pathKey(finding.path)),
    )
    .sort((a, b) => severityRank(a.severity) - severityRank(b.severity) || a.number - b.number);
  if (open.length === 0 && shown === undefined) return null;
  const most = policy?.publish.annotations ?? 0;
  const shows = compileShow(policy?.review.show ?? null);
  const visible = open.filter((finding) => shows(finding, blocking.has(finding.number)));
  const shownOpen = visible.slice(0, most);
  const texts = await textsOf(
    deps,
    shownOpen.flatMap((one) => [one.title, one.body]),
  );
  const lines = await linesOfFiles(deps, repository, holder, shownOpen);
  const annotations = new Map<number, PlacedAnnotation>();
  const unplaced = new Map<number, string>();
  for (const finding of shownOpen) {
    const placed = place(finding, blocking, texts, lines);
    if (placed.ok) annotations.set(finding.number, placed.annotation);
    else unplaced.set(finding.number, placed.reason);
  }
  const remarks = await wantRemarks(deps, unit, repository, holder, visible);
  const conclusion = blocking.size > 0 ? 'failure' : 'success';
  const contentWithout = (dropped: readonly { finding: number; reason: string }[]): CheckRunContent => {
    const reasons = new Map([...unplaced, ...dropped.map((one) => [one.finding, one.reason] as const)]);
    const report: FindingsReport = {
      head: unit.sha,
      blocking: blocking.size,
      open: open.length,
      over: Math.max(0, visible.length - most),
      hidden: open.length - visible.length,
      ...(remarks === null ? {} : { suggestions: remarks.listed }),
      unplaced: open.flatMap((finding) => unplacedLine(finding, reasons, blocking, texts)),
      published: holder.verified === null ? null : publishedHead(deps, holder),
      places: placesOf(deps, run.id, repository),
    };
    return {
      status: 'completed',
      conclusion,
      title: findingsTitle(report),
      summary: renderFindings(report),
      detailsUrl: report.places.run,
    };
  };
  return {
    runId: run.id,
    digest: digestOf([
      conclusion,
      most,
      open.map((one) => [one.number, one.state, blocking.has(one.number), visible.includes(one)]),
      ...(remarks === null ? [] : [remarks.listed.map((one) => one.number)]),
    ]),
    content: contentWithout([]),
    superseded: false,
    seq: state.gate?.seq ?? null,
    order: open.map((one) => one.number).filter((number) => annotations.has(number)),
    annotations,
    contentWithout,
    remarks,
  };
}

function place(
  finding: FindingFact,
  blocking: ReadonlySet<number>,
  texts: Texts,
  lines: ReadonlyMap<string, number | null>,
): ReturnType<typeof placeAnnotation> {
  if (typeof finding.path !== 'string') return { ok: false, reason: 'its path cannot be written as text' };
  if (finding.side === 'base') return { ok: false, reason: 'it is about the base side' };
  const severity = finding.severity;
  const title = texts.get(finding.title) ?? 'text erased';
  return placeAnnotation(
    {
      path: finding.path,
      startLine: finding.startLine,
      endLine: finding.endLine,
      level: blocking.has(finding.number)
        ? 'failure'
        : severity === 'info' || severity === 'low'
          ? 'notice'
          : 'warning',
      title: `F${finding.number} ${severity}: ${title}`,
      message: texts.get(finding.body) ?? title,
    },
    // by the name as given: repaired names are looked up as they will be sent
    (path) => lines.get(decodePath(path).toString('latin1')),
  );
}

function unplacedLine(
  finding: FindingFact,
  reasons: ReadonlyMap<number, string>,
  blocking: ReadonlySet<number>,
  texts: Texts,
): UnplacedFinding[] {
  const reason = reasons.get(finding.number);
  if (reason === undefined) return [];
  return [
    {
      number: finding.number,
      severity: finding.severity,
      path: finding.path,
      line: finding.startLine,
      title: texts.get(finding.title) ?? null,
      body: texts.get(finding.body) ?? null,
      blocks: blocking.has(finding.number),
      state: finding.state,
      reason,
    },
  ];
}

/** Lines of the head's files by path bytes, counted by LF from their blobs (case 29); null where a blob cannot be read now. */
async function linesOfFiles(
  deps: Deps,
  repository: Repository,
  { state, run }: Judged,
  findings: readonly FindingFact[],
): Promise<ReadonlyMap<string, number | null>> {
  const lines = new Map<string, number | null>();
  const wanted = new Map<string, string>();
  for (const finding of findings) {
    const file = state.files.get(pathKey(finding.path));
    if (file === undefined || file.status === 'D' || file.blob.head === null) continue;
    lines.set(pathKey(file.path), null);
    wanted.set(pathKey(file.path), file.blob.head);
  }
  if (wanted.size === 0) return lines;
  try {
    const github = await deps.github.installation(run.installationId);
    const token = await github.readToken(repository);
    const url = cloneUrl(deps.settings, repository);
    const blobs = await deps.git.readBlobs(repository, url, token, [...new Set(wanted.values())]);
    for (const [path, oid] of wanted) {
      const blob = blobs.get(oid);
      if (blob !== undefined) lines.set(path, countLines(blob));
    }
  } catch (error) {
    // findings are shown at the lines their reviewer grounded them on; counting again is a second guard
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ run: run.id, code: error.code }, 'publish-checks.lines-unread');
  }
  return lines;
}
