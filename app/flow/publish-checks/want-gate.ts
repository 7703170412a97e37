/** What the gate's check run on a commit should show now, out of every run that has it as its head (PUB-2, RUN-5). */
import { createHash } from 'node:crypto';
import type { CheckUnit, StoredCheck } from '../../../db/store/check.ts';
import { contentionOf } from '../../../db/store/contention.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { addJobs } from '../../../db/store/job.ts';
import { findRun, listOpenRuns, productNow, type Run } from '../../../db/store/run.ts';
import { findKill } from '../../../db/store/setting.ts';
import { readTexts } from '../../../db/store/text.ts';
import { buttonsOf } from '../../domain/button.ts';
import { gateName } from '../../domain/check.ts';
import { compileShow } from '../../domain/finding/show.ts';
import { gateDigest } from '../../domain/gate/record.ts';
import { encodePath } from '../../domain/path.ts';
import { redactor } from '../../domain/redact.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { LIMIT_BYTES, renderReport } from '../../domain/summary/render.ts';
import {
  makeReport,
  type PublishedHead,
  type Report,
  type ReportPlaces,
  reportRefs,
  type Texts,
} from '../../domain/summary/report.ts';
import { titleOf } from '../../domain/summary/title.ts';
import type { CheckRunContent } from '../../github/port/check.ts';
import type { Deps } from '../deps.ts';
import { type Judged, judgeRun } from '../judge-run.ts';
import { holderOf } from '../share-head.ts';

/** What a check run should show. */
export interface Wanted {
  readonly runId: string;
  /** Decides whether to write (PUB-2): verdict, reasons, blocks, findings; no counts, cost or ledger head. */
  readonly digest: string;
  readonly content: CheckRunContent;
  /** The commit is nobody's head any more: even a `success` is concluded `cancelled`. */
  readonly superseded: boolean;
  /** It is made concluded and never goes back: another conclusion is another check run. */
  readonly once?: boolean;
  readonly seq: number | null;
}

/** Most findings whose titles a summary shows. */
const TITLES = 200;

/** Runs of which the commit is the head, as judged now; null when one of them has to be decided first (queued then). */
export async function judgeHead(deps: Deps, unit: CheckUnit): Promise<Judged[] | null> {
  const { db } = deps.database;
  const now = await productNow(db);
  const judged: Judged[] = [];
  for (const run of await listOpenRuns(db, { repositoryId: unit.repositoryId, toldHead: unit.sha })) {
    const one = await judgeRun(deps, db, run, now);
    // what is shown is what was recorded and signed; anything newer is decided first
    if (one.verified !== null && one.state.gate?.digest !== gateDigest(one.decision)) {
      await addJobs(db, [{ task: 'decide-gate', payload: { run: run.id }, key: `decide-gate:${run.id}` }]);
      return null;
    }
    judged.push(one);
  }
  return judged;
}

/** The gate's check run; null when there is nothing to show and nothing was shown. */
export async function wantGate(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  judged: readonly Judged[],
  shown: StoredCheck | undefined,
): Promise<Wanted | null> {
  const own = judged.filter((one) => gateName(one.decision.mode) === unit.name);
  const holder = holderOf(own);
  if (holder === undefined) return shown === undefined ? null : wantSuperseded(deps, unit, shown);
  const { state, decision, run } = holder;
  const published = publishedHead(deps, holder);
  const others = own.filter((one) => one !== holder);
  const about = {
    published,
    places: placesOf(deps, run.id, repository),
    enrol: {
      repository: placesOf(deps, run.id, repository).repository,
      baseRef: run.baseRef,
      defaultBranch: repository.defaultBranch,
      server: deps.settings.publicUrl,
    },
    shared: others.map((one) => ({ pull: `#${one.run.pull ?? '?'}`, conclusion: one.decision.conclusion })),
    contention: (await contentionOf(deps.database.db, run)).map((one) => ({
      ...one,
      paths: one.paths.map(encodePath),
    })),
  };
  const shows = compileShow(holder.policy?.review.show ?? null);
  const texts = await textsOf(deps, reportRefs(state, TITLES));
  const report = await withReason(deps, run, makeReport(state, decision, texts, about, shows));
  const title = titleOf(decision) + (others.length > 0 ? ` · held by #${run.pull ?? '?'}` : '');
  const undecided = decision.conclusion === 'in_progress' || decision.conclusion === 'queued';
  const said = {
    gate: gateDigest(decision),
    run: run.id,
    reasons: undecided ? [] : decision.reasons.map((reason) => [reason.code, reason.count, reason.detail]),
    blocks: report.blocks.map((block) => [block.id, block.verdict, block.blocking, block.other]),
    findings: report.findings.map((finding) => [finding.number, finding.state, finding.people]),
    shared: report.shared,
    ...(report.receipts?.length
      ? { receipts: report.receipts.map((one) => [one.block, one.id, one.words]) }
      : {}),
  };
  return {
    runId: run.id,
    digest: digestOf(said),
    content: {
      ...(undecided
        ? { status: decision.conclusion }
        : { status: 'completed' as const, conclusion: decision.conclusion }),
      title,
      summary: renderReport(report),
      detailsUrl: report.places.run,
      // a group has no pull request to answer in, and no command is about it
      actions: run.pull === null ? [] : buttonsOf(decision),
    } as CheckRunContent,
    superseded: false,
    seq: state.gate?.seq ?? null,
  };
}

/**
 * A commit that is no head of an open run any more: concluded `cancelled`, naming what came after it
 * (PUB-2). Null for what a merge rested on: the verdict of a merged head stays what it was (case 13).
 */
export async function wantSuperseded(
  deps: Deps,
  unit: CheckUnit,
  shown: StoredCheck,
): Promise<Wanted | null> {
  const { db } = deps.database;
  const run = await findRun(db, shown.runId);
  if (run?.status === 'merged' && run.toldHead === unit.sha && shown.state === 'concluded') return null;
  const [title, why] =
    run === null || run.toldHead !== unit.sha
      ? [
          `Superseded by ${run?.toldHead.slice(0, 10) ?? 'another commit'}`,
          md`This commit is no head of an open pull request any more: superseded by ${Markdown.code(run?.toldHead ?? 'another commit')}.`,
        ]
      : run.next !== null
        ? [
            'The run was sealed',
            md`The ledger of run ${Markdown.code(run.id)} did not verify; it was sealed and stays as evidence. Run ${Markdown.code(run.next)} goes on.`,
          ]
        : run.status === 'closed' || run.status === 'merged'
          ? [
              `The ${kindOf(run)} was ${run.status}`,
              md`The ${kindOf(run)} was ${run.status}: nothing is decided on this commit any more.`,
            ]
          : [
              'Reported under another name',
              md`The policy's mode has changed: the verdict is reported as ${Markdown.code(gateName(run.mode))}.`,
            ];
  const judged = run === null ? null : await judgeRun(deps, db, run, await productNow(db));
  const foot = judged === null ? md`` : headNote(publishedHead(deps, judged));
  const content: CheckRunContent = {
    status: 'completed',
    conclusion: 'cancelled',
    title,
    summary: Markdown.join([why, foot], '\n\n').cut(LIMIT_BYTES, md`…`).text,
    actions: [],
  };
  return { runId: shown.runId, digest: digestOf({ title }), content, superseded: true, seq: shown.seq };
}

function headNote(published: PublishedHead): Markdown {
  return Markdown.folded(
    md`Ledger ${Markdown.code(`${published.run}:${published.seq}`)}`,
    Markdown.join([md`Head ${Markdown.code(published.hash)}`, Markdown.fence(published.note)], '\n\n'),
  );
}

function kindOf({ groupHead }: { readonly groupHead: string | null }): string {
  return groupHead === null ? 'pull request' : 'merge group';
}

/** The chain's head as verified just now, signed (LED-10); a chain that does not verify is never signed. */
export function publishedHead(deps: Deps, judged: Judged): PublishedHead {
  const { run, verified } = judged;
  if (verified === null)
    return { run: run.id, seq: 0, hash: 'not verified', note: 'not signed: the chain does not verify' };
  const log = deps.signer.logOf(run.installationId);
  return {
    run: run.id,
    seq: verified.seq,
    hash: verified.hash.toString('hex'),
    note: deps.signer.signHead({ log, run: run.id, seq: verified.seq, hash: verified.hash }),
  };
}

/** CTL-5: why everything was switched off is free text, which a verdict does not record and its check run shows. */
async function withReason(deps: Deps, run: Run, report: Report): Promise<Report> {
  if (!report.holds.some((hold) => hold.code === 'killed')) return report;
  const kill = await findKill(deps.database.db, run.installationId);
  const why = kill === null ? null : ((await textsOf(deps, [kill.reason])).get(kill.reason) ?? null);
  if (why === null) return report;
  const say = (detail: string | null) => `${detail ?? ''}: ${why.slice(0, 500)}`;
  return {
    ...report,
    holds: report.holds.map((hold) =>
      hold.code === 'killed' ? { ...hold, detail: say(hold.detail) } : hold,
    ),
  };
}

/** Addresses that a summary links to. */
export function placesOf(deps: Deps, runId: string, repository: Repository): ReportPlaces {
  return {
    run: `${deps.settings.publicUrl}/runs/${runId}`,
    repository: `${deps.settings.serverUrl}/${repository.owner}/${repository.name}`,
  };
}

/** Texts by reference, redacted once more on the server (REV-8). */
export async function textsOf(deps: Deps, refs: readonly string[]): Promise<Texts> {
  const { redact } = redactor();
  const stored = await readTexts(deps.database.db, refs);
  return new Map([...stored].map(([ref, text]) => [ref, text === null ? null : redact(text)]));
}

/** Lower-case hex SHA-256 of what a check run says. */
export function digestOf(said: unknown): string {
  return createHash('sha256').update(JSON.stringify(said)).digest('hex');
}
