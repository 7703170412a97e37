/**
 * One run as its page shows it (OPS-8): the verdict as the gate decides it now over verified rows, and
 * what the rows say besides. Texts come redacted and without controls; who renders them escapes them.
 *
 * Reads: run, ledger, gate, tickets, texts, commands. Writes: nothing. Calls: the signer, GitHub's
 * permission. May fail with: `not_found`, `rate_limited`, what GitHub does.
 */
import type { Reader } from '../../db/client.ts';
import { listCommandLogins } from '../../db/store/browse.ts';
import { findGate } from '../../db/store/gate.ts';
import { productNow, type Run } from '../../db/store/run.ts';
import { type GateReason, REASONS, type ReasonClass } from '../domain/gate/reason.ts';
import type { AnyRow } from '../domain/ledger/row.ts';
import { plain } from '../domain/neutralise.ts';
import { showPath } from '../domain/path.ts';
import { type PathStanding, standings } from '../domain/run-state/coverage.ts';
import { type BlockLine, makeReport, reportRefs } from '../domain/summary/report.ts';
import { titleOf } from '../domain/summary/title.ts';
import type { Deps } from './deps.ts';
import { type Judged, judgeRun, ledgerFault } from './judge-run.ts';
import { placesOf, publishedHead, textsOf } from './publish-checks/want-gate.ts';
import { type ReadableRun, readableRun } from './read-right.ts';
import { type ActView, actRefs, readActs } from './read-run/acts.ts';
import { type FindingView, findingRefs, readFindings } from './read-run/findings.ts';
import { readTickets, type TicketsView } from './read-run/tickets.ts';
import type { Visitor } from './read-visit.ts';
import { verifyRun } from './verify-run.ts';

/** Why a verdict is not success, for a reader. */
export interface HoldView {
  readonly code: string;
  readonly class: ReasonClass;
  readonly what: string;
  readonly detail: string | null;
  /** Findings (F1), paths or blocks; the first of `count`. */
  readonly concerns: readonly string[];
  readonly count: number;
  /** May hold `code` between back-ticks. */
  readonly clears: string;
  readonly who: string;
  readonly untilMs: number | null;
  readonly past: boolean;
}

/** A block with what it waits for. */
export interface BlockView extends BlockLine {
  readonly after: readonly string[];
  readonly attempt: number;
}

/** A changed path. */
export interface PathView {
  readonly path: string;
  readonly block: string;
  readonly level: string;
  readonly change: string;
  readonly ownership: string;
  readonly standing: PathStanding['standing'];
  readonly why: string | null;
}

/** A head that the run has had. */
export interface HeadView {
  readonly sha: string;
  readonly atMs: number;
  readonly base: string;
  readonly commits: number;
  readonly files: number;
  readonly conclusion: string | null;
  /** Whether history was rewritten before it; null where it could not be told. */
  readonly rewritten: boolean | null;
}

/** What the reviews of a run have used, by reviewer, worst first. */
export interface CostView {
  readonly sessions: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  readonly costMicro: number;
  readonly ms: number;
  readonly reviewers: readonly {
    readonly name: string;
    readonly model: string | null;
    readonly sessions: number;
    readonly tokensIn: number;
    readonly tokensOut: number;
    readonly costMicro: number;
    readonly ms: number;
  }[];
}

/** A run for its page. */
export interface RunView {
  readonly id: string;
  readonly repository: string;
  /** Addresses on GitHub: the repository, and the pull request (null for a merge group). */
  readonly repositoryAddress: string;
  readonly pullAddress: string | null;
  readonly pull: string | null;
  readonly epoch: number;
  readonly status: string;
  readonly title: string;
  readonly author: string | null;
  readonly baseRef: string;
  readonly head: string;
  readonly mode: 'enforce' | 'advisory';
  readonly openedAtMs: number;
  readonly nowMs: number;
  readonly verdict: {
    readonly conclusion: string;
    /** In one line. */
    readonly said: string;
    readonly files: number;
    readonly counted: number;
    readonly unreviewed: number;
    /** When it was decided so; null: not recorded yet. */
    readonly decidedAtMs: number | null;
  };
  readonly holds: readonly HoldView[];
  readonly blocks: readonly BlockView[];
  readonly paths: readonly PathView[];
  readonly pathCount: number;
  readonly tickets: TicketsView;
  readonly findings: readonly FindingView[];
  readonly acts: readonly ActView[];
  readonly heads: readonly HeadView[];
  readonly cost: CostView;
  readonly ledger: {
    readonly seq: number;
    readonly hash: string;
    /** Null: every row verifies. */
    readonly fault: string | null;
  };
}

/** Most paths of a page; the rest is counted. */
const MOST_PATHS = 500;
const MOST_CONCERNS = 20;

/** The run, for a visitor who may read its repository. */
export async function readRun(deps: Deps, visitor: Visitor, id: string): Promise<RunView> {
  const readable = await readableRun(deps, visitor, id);
  const { run, repository } = readable;
  const { db } = deps.database;
  const gate = await findGate(db, run.id);
  const over = run.status === 'closed' || run.status === 'merged';
  const now = await productNow(db);
  // what is over is shown as it stood: no deadline passes for it any more
  const at = over && gate !== null ? new Date(gate.decidedAtMs) : now;
  const judged = await judgeRun(deps, db, run, at);
  const { state, decision } = judged;
  const { verdict, rows: all } = await verifyRun(deps, run);
  const rows = judged.verified === null ? [] : all.filter((row) => row.seq <= state.seq);
  const places = placesOf(deps, run.id, repository);
  const refs = [...reportRefs(state, 200), ...findingRefs(state), ...actRefs(rows)];
  const texts = await textsOf(deps, refs);
  const published = publishedHead(deps, judged);
  const report = makeReport(state, decision, texts, { published, places, shared: [] });
  const paths = decision.counts.files > 0 ? standings(state) : [];
  return {
    ...about(readable, places.repository),
    nowMs: now.getTime(),
    verdict: {
      conclusion: decision.conclusion,
      said: titleOf(decision),
      ...decision.counts,
      decidedAtMs: gate === null ? null : gate.decidedAtMs,
    },
    holds: decision.reasons.map(hold),
    blocks: report.blocks.map((block) => ({
      ...block,
      title: block.title === null ? null : plain(block.title),
      after: state.blocks.get(block.id)?.after ?? [],
      attempt: state.blocks.get(block.id)?.attempt ?? 1,
    })),
    paths: paths.slice(0, MOST_PATHS).map(pathView),
    pathCount: paths.length,
    tickets: await readTickets(db, run.id, rows),
    findings: readFindings(state, decision.blocking, rows, texts),
    acts: readActs(rows, await loginsOf(db, readable.run), texts),
    heads: headsOf(judged),
    cost: costOf(judged, rows),
    ledger: {
      seq: judged.verified?.seq ?? 0,
      hash: judged.verified?.hash.toString('hex') ?? '',
      fault: judged.verified === null ? faultOf(judged, verdict) : null,
    },
  };
}

function about({ run, repository }: ReadableRun, repositoryAddress: string) {
  return {
    id: run.id,
    repository: `${repository.owner}/${repository.name}`,
    repositoryAddress,
    pullAddress: run.pull === null ? null : `${repositoryAddress}/pull/${run.pull}`,
    pull: run.pull,
    epoch: run.epoch,
    status: run.status,
    title: plain(run.title),
    author: run.authorLogin,
    baseRef: plain(run.baseRef),
    head: run.toldHead,
    mode: run.mode,
    openedAtMs: run.openedAt.getTime(),
  };
}

/** Who is known by which login: the author, and people who gave commands. */
async function loginsOf(reader: Reader, run: Run): Promise<Map<string, string>> {
  const logins = await listCommandLogins(reader, run.id);
  if (run.authorId !== null && run.authorLogin !== null) logins.set(run.authorId, run.authorLogin);
  return logins;
}

function faultOf(judged: Judged, verdict: Parameters<typeof ledgerFault>[0]): string {
  const { code, detail } = judged.facts.ledger ?? ledgerFault(verdict, null);
  return plain(`${code}: ${detail}`);
}

function hold(reason: GateReason): HoldView {
  const concerns =
    reason.findings.length > 0
      ? reason.findings.map((number) => `F${number}`)
      : reason.paths.length > 0
        ? reason.paths.map(showPath)
        : reason.blocks;
  const { what, clears, who } = REASONS[reason.code];
  return {
    code: reason.code,
    class: reason.class,
    what,
    detail: reason.detail === null ? null : plain(reason.detail),
    concerns: concerns.slice(0, MOST_CONCERNS).map(plain),
    count: reason.count,
    clears,
    who,
    untilMs: reason.untilMs,
    past: reason.past,
  };
}

function pathView(path: PathStanding): PathView {
  const { file } = path;
  return {
    path: plain(showPath(file.path)),
    block: path.block,
    level: file.level,
    change: file.status,
    ownership: path.ownership,
    standing: path.standing,
    why: path.why === null ? null : plain(path.detail ? `${path.why}: ${path.detail}` : path.why),
  };
}

function headsOf({ state }: Judged): HeadView[] {
  return state.heads
    .map((head) => ({
      sha: head.head,
      atMs: Date.parse(head.at),
      base: plain(head.base_ref),
      commits: head.commits,
      files: head.files,
      conclusion: state.gates.get(head.head)?.conclusion ?? null,
      rewritten: head.ancestor === null ? null : !head.ancestor,
    }))
    .reverse();
}

function costOf({ state }: Judged, rows: readonly AnyRow[]): CostView {
  const by = new Map<
    string,
    { -readonly [K in keyof CostView['reviewers'][number]]: CostView['reviewers'][number][K] }
  >();
  for (const row of rows) {
    if (row.kind !== 'ticket.ended') continue;
    for (const session of row.data.sessions) {
      const key = `${session.reviewer} ${session.model ?? ''}`;
      const sum = by.get(key) ?? {
        name: session.reviewer,
        model: session.model,
        sessions: 0,
        tokensIn: 0,
        tokensOut: 0,
        costMicro: 0,
        ms: 0,
      };
      sum.sessions++;
      sum.tokensIn += session.tokens_in;
      sum.tokensOut += session.tokens_out;
      sum.costMicro += session.cost_micro;
      sum.ms += session.ms;
      by.set(key, sum);
    }
  }
  const { sessions, tokensIn, tokensOut, costMicro, ms } = state.usage;
  const reviewers = [...by.values()].sort((a, b) => b.costMicro - a.costMicro || b.ms - a.ms);
  return { sessions, tokensIn, tokensOut, costMicro, ms, reviewers };
}
