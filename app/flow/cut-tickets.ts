/**
 * From the changed paths of a run's present head to tickets (TKT-1…TKT-5, POOL-3).
 *
 * Reads: run, its files, blocks and findings, policy, tickets, providers, verified rows of this and of other runs;
 * config blobs by git, outside the transaction. Writes: ticket, lease (recalls), provider, slot, finding, receipt,
 * `provider_down`; rows `ticket.ended` where nobody can review, `ticket.reused finding.raised receipt.reserved
 * receipt.reused`. Calls: git, only where a reviewer names config files. Queues: dispatch, settle-receipts, decide-gate.
 * May fail with: `run_missing`, `git_unavailable` (retryable).
 */

import { listBlocks, type StoredBlock } from '../../db/store/block.ts';
import { listFiles, type StoredFile } from '../../db/store/file.ts';
import { listOpenFindings, type StoredFinding } from '../../db/store/finding.ts';
import { freeTickets, holdTickets } from '../../db/store/held.ts';
import { findRepository } from '../../db/store/installation.ts';
import { listActiveLeaseStates, recallLease } from '../../db/store/lease.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import {
  dropTickets,
  liftTickets,
  listActiveTickets,
  listOverTickets,
  skipTickets,
} from '../../db/store/ticket.ts';
import { type Cut, type KnownTicket, planCut, type Rerun } from '../domain/cut.ts';
import { encodePath, pathKey } from '../domain/path.ts';
import { parsePolicy } from '../domain/policy.ts';
import { ticketId } from '../domain/ticket.ts';
import { configPaths } from '../domain/ticket-spec.ts';
import { Fault } from '../errors.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import { cloneUrl } from './clone-url.ts';
import { openTickets, type Snapshot, type Wanted } from './cut-tickets/open.ts';
import { reserveReceipts } from './cut-tickets/receipts.ts';
import { type ReviewsThere, readReviews, readTaken, takeOver } from './cut-tickets/reuse.ts';
import type { Deps } from './deps.ts';
import { pointTicketsOf } from './point-tickets.ts';
import { verifyRun } from './verify-run.ts';

/** What a run's tickets are cut for; `rerun` opens the next round of what is over. */
export interface CutInput {
  readonly run: string;
  readonly rerun?: Rerun;
}
/** What came of it. */
export interface CutOutcome {
  readonly kind: 'cut' | 'waits' | 'no_policy';
  readonly opened: number;
  readonly dropped: number;
  /** Keys whose review elsewhere was taken over (TKT-4). */
  readonly reused: number;
}

const ATTEMPTS = 3;

/** Cuts the tickets of a run; running it again changes nothing unless something else changed. */
export async function cutTickets(deps: Deps, input: CutInput): Promise<CutOutcome> {
  for (let n = 1; ; n++) {
    const run = await findRun(deps.database.db, input.run);
    if (run === null) throw new Fault('run_missing', `there is no run ${input.run}`);
    if (run.policyHash === null) return { kind: 'no_policy', opened: 0, dropped: 0, reused: 0 };
    const snapshot = await readSnapshot(deps, run, run.policyHash);
    // before the lock: what is learnt meanwhile cuts this run again
    const keys = (await listFiles(deps.database.db, run.id)).flatMap((file) => file.key ?? []);
    const there = spends(run) ? await readReviews(deps, run, snapshot.policy, keys) : new Map();
    const outcome = await withRun(deps, input.run, (unit) =>
      cut(deps, unit, snapshot, there, input.rerun ?? null),
    );
    if (outcome !== 'moved') {
      deps.log.info({ run: input.run, ...outcome }, 'cut-tickets');
      return outcome;
    }
    // the policy changed between reading it and locking the run: once more under the new one
    if (n >= ATTEMPTS) throw new Fault('git_unavailable', 'the policy keeps changing', { retryable: true });
  }
}

async function readSnapshot(deps: Deps, run: Run, hash: string): Promise<Snapshot> {
  // one re-read: a missing or damaged snapshot is no other policy (RUN-8)
  const bytes = (await loadPolicy(deps.database.db, hash)) ?? (await loadPolicy(deps.database.db, hash));
  const reading = bytes === null ? null : parsePolicy(bytes);
  if (reading === null || !reading.ok) return { hash, policy: null, config: new Map() };
  const config = new Map<string, string | null>();
  const paths = configPaths(reading.policy);
  if (paths.length > 0 && run.base !== null) {
    const repository = await findRepository(deps.database.db, run.repositoryId);
    if (repository === null) throw new Fault('run_missing', 'the repository of the run is not known');
    const github = await deps.github.installation(run.installationId);
    const token = await github.readToken(repository);
    const url = cloneUrl(deps.settings, repository);
    const entries = await deps.git.readEntries(repository, url, token, run.base, paths);
    for (const path of paths) config.set(path, entries.get(pathKey(path))?.oid ?? null);
  }
  return { hash, policy: reading.policy, config };
}

async function cut(
  deps: Deps,
  unit: RunUnit,
  snapshot: Snapshot,
  there: ReviewsThere,
  rerun: Rerun | null,
): Promise<CutOutcome | 'moved'> {
  const { tx, run } = unit;
  if (run.policyHash !== snapshot.hash) return 'moved';
  const asleep = run.draft && snapshot.policy?.review.drafts === 'off';
  // nothing is spent on a run whose ledger does not verify (LED-8)
  const { verdict, rows } = await verifyRun(deps, run, { reader: tx });
  if (!spends(run) || unit.broken || verdict.kind === 'invalid')
    return { kind: 'waits', opened: 0, dropped: 0, reused: 0 };
  const files = await listFiles(tx, run.id);
  const blocks = await listBlocks(tx, run.id);
  const wanted = asleep ? [] : wantedOf(files, blocks, await listOpenFindings(tx, run.id));
  const active = await listActiveTickets(tx, run.id);
  const leases = await listActiveLeaseStates(tx, run.id);
  const keys = [...new Set(wanted.map((one) => one.key))];
  const known: KnownTicket[] = [...active, ...(await listOverTickets(tx, run.id, keys))].map((ticket) => ({
    id: ticket.id,
    path: pathKey(encodePath(ticket.path)),
    block: ticket.blockId,
    key: ticket.key,
    round: ticket.round,
    // reused: over, with the result of another run
    state: ticket.state === 'skipped' && ticket.seq !== null ? 'ended' : ticket.state,
    end:
      ticket.state === 'skipped'
        ? 'reviewed'
        : ticket.verdict === 'cannot_review'
          ? 'cannot_review'
          : ticket.end,
    // only a lease without a session is recalled; the others are left to end (TKT-3)
    lease: ticket.leaseId !== null && leases.get(ticket.leaseId) === false ? ticket.leaseId : null,
    seq: ticket.seq,
  }));
  const plan = planCut(wanted, known, rerun);
  for (const state of ['superseded', 'cancelled'] as const) {
    for (const reason of ['new_content', 'left_the_change']) {
      const ids = plan.drop
        .filter((one) => one.state === state && one.reason === reason)
        .map((one) => one.id);
      await dropTickets(tx, ids, state, reason);
    }
  }
  await holdTickets(tx, plan.hold);
  await freeTickets(tx, plan.free);
  for (const lease of plan.recall) await recallLease(tx, lease);
  await openTickets(deps, unit, snapshot, blocks, files, plan.open);
  const reused = await reuse(deps, unit, there, wanted, known, plan);
  const receipts = asleep ? 0 : await reserveReceipts(deps, unit, snapshot.policy, rows);
  const waiting = await pointTicketsOf(unit, snapshot.policy);
  // GAT-5: what a merge group waits for goes before everything else
  if (run.groupHead !== null) await liftTickets(tx, run.id);
  if (waiting > 0)
    unit.enqueue('dispatch', { repository: run.repositoryId }, { key: `dispatch:${run.repositoryId}` });
  if (plan.open.length > 0 || plan.drop.length > 0 || reused > 0 || receipts > 0)
    unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
  return { kind: 'cut', opened: plan.open.length, dropped: plan.drop.length, reused };
}

function spends(run: Run): boolean {
  return run.status === 'open' && run.allowedRule !== null && run.head !== null;
}

/**
 * TKT-4: takes over what other runs say of the keys that this head wants, each result once. A key that
 * was not reviewed here needs no runner then, unless a finding of other content waits for one (RND-1).
 */
async function reuse(
  deps: Deps,
  unit: RunUnit,
  there: ReviewsThere,
  wanted: readonly Wanted[],
  known: readonly KnownTicket[],
  plan: Cut<Wanted>,
): Promise<number> {
  const { run, tx } = unit;
  if (!wanted.some((one) => there.has(one.key))) return 0;
  const taken = await readTaken(deps, unit);
  if (taken === null) return 0;
  const skipped: { id: string; seq: number }[] = [];
  let reused = 0;
  for (const one of wanted) {
    const fresh = (there.get(one.key) ?? []).filter(
      (review) => review.seq > (taken.get(`${one.key} ${review.run}`) ?? 0),
    );
    if (fresh.length === 0) continue;
    const mine = known.filter((ticket) => ticket.key === one.key && ticket.path === one.path);
    const opened = plan.open.find((item) => item.wanted === one);
    const newest = Math.max(0, ...mine.map((ticket) => ticket.round));
    const round = opened?.round ?? newest;
    const ticket = ticketId({ run: run.id, block: one.block, key: one.key, round });
    const seq = await takeOver(unit, fresh, {
      ticket,
      key: one.key,
      path: one.file.path,
      block: one.block,
      actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
      cause: { kind: 'schedule', id: 'cut-tickets', sha256: null },
    });
    reused++;
    if (one.foreignSeq !== null || mine.some((other) => other.state === 'ended')) continue;
    const active = mine.find((other) => other.state === 'pending' || other.state === 'held');
    const id = opened === undefined ? active?.id : ticket;
    if (id !== undefined) skipped.push({ id, seq });
  }
  await skipTickets(tx, skipped);
  return reused;
}

function wantedOf(
  files: readonly StoredFile[],
  blocks: readonly StoredBlock[],
  findings: readonly StoredFinding[],
): Wanted[] {
  const waiting = new Set(blocks.flatMap((block) => (block.status === 'waiting' ? [block.id] : [])));
  const found = new Map<string, StoredFinding[]>();
  for (const one of findings) {
    const path = pathKey(one.path);
    found.set(path, [...(found.get(path) ?? []), one]);
  }
  const foreignSeq = (path: string, key: string) => {
    // an answer and a rename are news too, whatever content the finding is of
    const foreign = (found.get(path) ?? [])
      .filter((one) => one.key !== key || one.state === 'answered' || one.carriedSeq !== null)
      .map((one) => Math.max(one.seq, one.carriedSeq ?? 0));
    return foreign.length === 0 ? null : Math.max(...foreign);
  };
  return files.flatMap((file) =>
    file.level === 'L0' || file.key === null
      ? []
      : [
          {
            path: pathKey(encodePath(file.path)),
            block: file.blockId,
            waits: waiting.has(file.blockId),
            key: file.key,
            foreignSeq: foreignSeq(pathKey(encodePath(file.path)), file.key),
            file,
            level: file.level,
          },
        ],
  );
}
