/**
 * Decides the gate of a run and records it (GAT-1…GAT-4, LED-9, LED-10).
 *
 * Reads: what judge-run reads, check runs of the run. Writes: `gate.decided` when the verdict's digest
 * changed, `block.ended block.reopened`, the projections of both, publish jobs, a cut where blocks wait;
 * tickets and leases end where the ledger is invalid.
 * Calls: GitHub's list of our check runs, before a first green and outside of any transaction.
 * May fail with: what GitHub and Postgres do (retryable).
 */
import { listChecksOfRun } from '../../db/store/check.ts';
import { deferGate, findGate, listDueGates, putGate } from '../../db/store/gate.ts';
import { listGroupsOf } from '../../db/store/group.ts';
import { addJobs } from '../../db/store/job.ts';
import { notifyRun } from '../../db/store/notice.ts';
import { clearReason, setReason } from '../../db/store/reason.ts';
import type { Run } from '../../db/store/run.ts';
import { cancelTicketsOfRun } from '../../db/store/ticket.ts';
import {
  blockCheckName,
  FINDINGS_NAME,
  gateName,
  isGateName,
  PREVIEW_NAME,
  previewKey,
  publishKey,
} from '../domain/check.ts';
import { gatePolicyOf } from '../domain/gate/policy.ts';
import { gateDigest, recordGate } from '../domain/gate/record.ts';
import { deepBlocks } from '../domain/gate/rounds.ts';
import { Fault } from '../errors.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import { recordStatuses } from './decide-gate/record-statuses.ts';
import type { Deps } from './deps.ts';
import { fetchProof, type Proof } from './fetch-proof.ts';
import { type Judged, judgeRun } from './judge-run.ts';
import { tellMembers } from './publish-checks/tell-members.ts';
import { blocksOf } from './publish-checks/want-block.ts';

/** What to decide. */
export interface DecideGateInput {
  readonly run: string;
}

/** What became of it: the verdict that stands, and whether it was recorded now or before. */
export type DecideGateOutcome =
  | { readonly kind: 'decided' | 'unchanged'; readonly conclusion: string; readonly head: string }
  | { readonly kind: 'over' };

/** A green whose proof was fetched for another head is decided again, this often at most. */
const MOST_TURNS = 4;

/** Decides the gate of a run. Running it twice records nothing twice. */
export async function decideGate(deps: Deps, input: DecideGateInput): Promise<DecideGateOutcome> {
  let proof: Proof | null = null;
  for (let turn = 1; turn <= MOST_TURNS; turn++) {
    const given: Proof | null = proof;
    const outcome = await withRun(deps, input.run, (unit) => decideLocked(deps, unit, given));
    if (outcome.kind !== 'unproved') {
      deps.log.info({ run: input.run, ...outcome }, 'decide-gate');
      return outcome;
    }
    // outside of the lock: GitHub is asked before a run turns green, and only then
    proof = await fetchProof(deps, outcome.run);
  }
  throw new Fault('github_unavailable', 'the head moves faster than its green can be proved', {
    retryable: true,
  });
}

/** Decides again what is due: deadlines pass without an event. Answers how many runs were handed to a job. */
export async function sweepGates(deps: Deps): Promise<number> {
  const due = await listDueGates(deps.database.db, 500);
  for (const runId of due) {
    await deps.database.transaction(async (tx) => {
      await addJobs(tx, [{ task: 'decide-gate', payload: { run: runId }, key: `decide-gate:${runId}` }]);
      // the decision sets its own next time; this one holds if the job dies
      await deferGate(tx, runId, 5 * 60_000);
    });
  }
  return due.length;
}

function isOver(run: Run): boolean {
  return run.status === 'closed' || run.status === 'merged';
}

function callsDeeper({ run, state, policy, facts }: Judged): boolean {
  if (run.pull === null || policy === null || facts.ledger !== null) return false;
  const called = deepBlocks(state, gatePolicyOf(policy));
  return [...state.files.values()].some(
    ({ block, level }) => called.has(block) && (level === 'L1' || level === 'L2'),
  );
}

type Locked = DecideGateOutcome | { readonly kind: 'unproved'; readonly run: Run };

async function decideLocked(deps: Deps, unit: RunUnit, proof: Proof | null): Promise<Locked> {
  const { run, tx, now } = unit;
  if (isOver(run)) {
    await publish(unit, [], new Map());
    const stood = await findGate(tx, run.id);
    if (stood !== null && stood.dueAtMs !== null) await putGate(tx, { ...stood, dueAtMs: null });
    return { kind: 'over' };
  }
  const proved = proof?.head === run.toldHead;
  // a key may have come back: looked at anew, and never green on the word of before
  const doubted = await clearReason(tx, run.id, 'ledger_unverifiable');
  const judged = await judgeRun(deps, tx, run, now, proved ? { full: true, published: proof.notes } : {});
  // the rows alone do not show it: kept, so that every later look at this run knows
  if (proved && judged.facts.ledger !== null)
    await setReason(tx, run.id, { ...judged.facts.ledger, dueAtMs: null });
  // evidence takes no result: nobody works for it any more (LED-8)
  if (judged.facts.ledger?.code === 'ledger_invalid') await cancelTicketsOfRun(tx, run.id, 'ledger_invalid');
  const { decision } = judged;
  const digest = gateDigest(decision);
  const turnsGreen = decision.conclusion === 'success' && (doubted || judged.state.gate?.digest !== digest);
  if (turnsGreen && !proved) return { kind: 'unproved', run };
  await recordStatuses(unit, judged);
  const recorded = record(unit, judged, digest);
  const stood = await findGate(tx, run.id);
  const changed = recorded !== null || stood?.digest !== digest;
  await putGate(tx, {
    runId: run.id,
    head: decision.head,
    conclusion: decision.conclusion,
    digest,
    seq: recorded ?? judged.state.gate?.seq ?? unit.head.seq,
    decidedAtMs: changed ? now.getTime() : (stood?.decidedAtMs ?? now.getTime()),
    dueAtMs: decision.dueAtMs,
  });
  // RND-2: the round at L3 is a matter of levels, which a reading decides
  if (callsDeeper(judged)) unit.enqueue('sync-run', { run: run.id }, { key: `sync-run:${run.id}` });
  // a merge group weighs the verdicts of its members (GAT-5)
  if (changed)
    for (const group of await listGroupsOf(tx, run.id))
      unit.enqueue('sync-group', { run: group }, { key: `sync-group:${group}`, priority: -5 });
  const undecided = decision.conclusion === 'in_progress' || decision.conclusion === 'queued';
  const blocks = new Map([...blocksOf(judged)].map(([id, one]) => [blockCheckName(id), one?.digest ?? null]));
  await notifyRun(tx, run.id);
  if (changed) await tellMembers(unit, decision);
  await publish(unit, [gateName(decision.mode), ...(undecided ? [] : [FINDINGS_NAME])], blocks);
  return { kind: changed ? 'decided' : 'unchanged', conclusion: decision.conclusion, head: decision.head };
}

/**
 * Appends the verdict when it changed; null when it stands, or when the chain does not verify: what
 * is broken is evidence, and a row on top of it would prove nothing.
 */
function record(unit: RunUnit, judged: Judged, digest: string): number | null {
  const { state, decision, facts, run } = judged;
  if (judged.verified === null || state.gate?.digest === digest) return null;
  return unit.append('gate.decided', {
    block: null,
    actor: { kind: 'app', id: 'countersign', via: 'schedule' },
    cause: { kind: 'schedule', id: `decide-gate:${run.id}`, sha256: null },
    data: recordGate(state, decision, facts, unit.now.getTime()),
  });
}

/**
 * Queues every unit that this verdict touches: the names on the present head, gate first, then those
 * of `blocks` (name → digest of its verdict, null: none yet) that do not show it, and what the run
 * published elsewhere (an earlier head, the other mode's name), to be concluded (PUB-2).
 */
async function publish(
  unit: RunUnit,
  names: readonly string[],
  blocks: ReadonlyMap<string, string | null>,
): Promise<void> {
  const { run, tx } = unit;
  const units = new Map(names.map((name) => [`${run.toldHead} ${name}`, { sha: run.toldHead, name }]));
  const owed = new Map(blocks);
  for (const check of await listChecksOfRun(tx, run.repositoryId, run.id)) {
    const here = check.sha === run.toldHead;
    if (here && check.name === PREVIEW_NAME && run.pull !== null) {
      // what it would decide under another policy has moved with it (RUN-9)
      const pull = { repository: run.repositoryId, pull: run.pull };
      unit.enqueue('preview-policy', pull, { key: previewKey(run.repositoryId, run.pull), priority: 5 });
      continue;
    }
    if (here && blocks.has(check.name)) {
      // each look at a unit judges its runs: ten blocks that stand are none of them looked at
      if (check.written === check.wanted && check.written === blocks.get(check.name)) owed.delete(check.name);
      continue;
    }
    const settled =
      check.state === 'concluded' &&
      check.written === check.wanted &&
      (check.conclusion !== 'success' || run.status === 'merged');
    if (here ? !names.includes(check.name) || names.length === 0 : !settled)
      units.set(`${check.sha} ${check.name}`, { sha: check.sha, name: check.name });
  }
  for (const [name, digest] of owed)
    if (digest !== null) units.set(`${run.toldHead} ${name}`, { sha: run.toldHead, name });
  for (const { sha, name } of units.values()) {
    unit.enqueue(
      'publish-checks',
      { repository: run.repositoryId, sha, name },
      {
        key: publishKey(run.repositoryId, sha, name),
        // the gate before findings and blocks, a present head before an old one
        priority: (sha === run.toldHead ? 0 : 4) + (isGateName(name) ? 0 : name === FINDINGS_NAME ? 2 : 3),
      },
    );
  }
}
