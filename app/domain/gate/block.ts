/**
 * The verdict of a block that the commits name (PUB-1): the gate's own reasons as far as they concern
 * its paths. It decides nothing by itself; the gate weighs the same rows.
 */
import { createHash } from 'node:crypto';
import { pathKey } from '../path.ts';
import { type PathStanding, standings } from '../run-state/coverage.ts';
import type { RunState } from '../run-state/state.ts';
import { conclude, type GateDecision } from './decide.ts';
import type { GateReason, ReasonCode } from './reason.ts';

/** Most blocks of a head with a check run of their own (PUB-1). */
export const MOST_BLOCK_CHECKS = 10;

/** A block's verdict, concluded. */
export interface BlockVerdict {
  readonly id: string;
  /** SHA-256 of its title's text. */
  readonly title: string;
  /** Keys of the paths that are the block's. */
  readonly paths: ReadonlySet<string>;
  /** The gate's decision narrowed to the block: never a status, `success` only for what is done and held by nothing. */
  readonly decision: GateDecision;
  /** Lower-case hex SHA-256 of verdict, reasons and findings: decides whether to write (PUB-2). */
  readonly digest: string;
}

/** Of the whole run: under these nothing is known of a block either. */
const UNKNOWN: ReadonlySet<ReasonCode> = new Set([
  'config_invalid',
  'not_enrolled',
  'no_merge_base',
  'needs_allow',
  'coverage_gap',
]);

/**
 * The named blocks that own changed paths (BLK-5), in the order in which they were opened, at most
 * ten, each with its verdict; null where it has none yet. Empty before the head was read.
 */
export function decideBlocks(
  state: RunState,
  decision: GateDecision,
): ReadonlyMap<string, BlockVerdict | null> {
  const named = [...state.blocks.values()].filter((block) => block.named && block.ended !== 'dropped');
  if (named.length === 0 || decision.counts.files === 0) return new Map();
  const owned = new Map<string, PathStanding[]>();
  for (const path of standings(state)) {
    const group = owned.get(path.block);
    if (group === undefined) owned.set(path.block, [path]);
    else group.push(path);
  }
  const told = withoutOverride(decision);
  const unknown = isUndecided(told);
  const verdicts = new Map<string, BlockVerdict | null>();
  for (const block of named) {
    const paths = owned.get(block.id);
    if (paths === undefined || verdicts.size >= MOST_BLOCK_CHECKS) continue;
    verdicts.set(block.id, unknown ? null : decideBlock(state, told, block, paths));
  }
  return verdicts;
}

/** The verdict as it would be had nobody overridden it: an override lets the run pass and none of its blocks (GAT-7). */
export function withoutOverride(decision: GateDecision): GateDecision {
  const { without } = decision;
  if (without === undefined) return decision;
  // a draft is one with an override or without
  const conclusion = decision.conclusion === 'queued' ? 'queued' : conclude(without.reasons);
  return { ...decision, ...without, conclusion, overridden: null };
}

/** Whether a verdict says nothing of single blocks: of a draft, of a head that was not read, or under what holds all of them. */
export function isUndecided(decision: GateDecision): boolean {
  return (
    decision.conclusion === 'queued' ||
    decision.counts.files === 0 ||
    decision.reasons.some((reason) => isOfRun(reason) && UNKNOWN.has(reason.code))
  );
}

function isOfRun(reason: GateReason): boolean {
  return reason.blocks.length === 0 && reason.paths.length === 0 && reason.findings.length === 0;
}

function decideBlock(
  state: RunState,
  gate: GateDecision,
  { id, title }: { readonly id: string; readonly title: string },
  own: readonly PathStanding[],
): BlockVerdict | null {
  const paths = new Set(own.map((path) => pathKey(path.file.path)));
  const narrowed = gate.reasons.map((reason) => narrow(state, reason, id, paths));
  const reasons = narrowed.flatMap((reason) => reason ?? []);
  const conclusion = conclude(reasons);
  if (conclusion === 'in_progress' || isPending(own, reasons)) return null;
  const decision: GateDecision = {
    ...gate,
    conclusion,
    reasons,
    next: gate.next.filter((_, index) => narrowed[index] !== null),
    blocking: gate.blocking.filter((number) => isOf(state, number, paths)),
    counts: {
      files: own.length,
      counted: own.filter((path) => path.standing === 'counted').length,
      unreviewed: own.filter((path) => path.standing === 'unreviewed').length,
    },
    dueAtMs: null,
  };
  const findings = [...state.findings.values()]
    .filter((finding) => paths.has(pathKey(finding.path)) && finding.state !== 'fixed')
    .map((finding) => [finding.number, finding.state]);
  const said = [
    id,
    gate.head,
    gate.mode,
    conclusion,
    reasons.map((reason) => [reason.code, reason.class, reason.count, reason.detail]),
    decision.blocking,
    decision.counts,
    findings,
  ];
  const digest = createHash('sha256').update('countersign/block/v1\n').update(JSON.stringify(said));
  return { id, title, paths, decision, digest: digest.digest('hex') };
}

/** Whether a review of its paths may still end: not when its time is up, or when the gate says that it could not be done. */
function isPending(own: readonly PathStanding[], reasons: readonly GateReason[]): boolean {
  const given = new Set(
    reasons
      .filter((reason) => reason.past || reason.code === 'ticket_unavailable')
      .flatMap((reason) => reason.paths.map(pathKey)),
  );
  return own.some((path) => path.standing === 'pending' && !given.has(pathKey(path.file.path)));
}

/** A reason as far as it concerns a block; null: not at all. */
function narrow(
  state: RunState,
  reason: GateReason,
  id: string,
  own: ReadonlySet<string>,
): GateReason | null {
  // an empty list passes nowhere (BLK-7)
  if (isOfRun(reason)) return reason.code === 'nothing_to_review' ? reason : null;
  const paths = reason.paths.filter((path) => own.has(pathKey(path)));
  const findings = reason.findings.filter((number) => isOf(state, number, own));
  const blocks = reason.blocks.filter((block) => block === id);
  if (paths.length + findings.length + blocks.length === 0) return null;
  const count = paths.length || findings.length || 1;
  // a cause that was put together for more than this block may be another's
  const whole =
    reason.code === 'dependency_open' ? reason.detail?.startsWith(`${id} `) : count === reason.count;
  return { ...reason, paths, findings, blocks, count, detail: whole === true ? reason.detail : null };
}

function isOf(state: RunState, number: number, own: ReadonlySet<string>): boolean {
  const finding = state.findings.get(number);
  return finding !== undefined && own.has(pathKey(finding.path));
}
