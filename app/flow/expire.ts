/**
 * What time alone decides about leases, runners and waiting tickets (LSE-6, TKT-2, TKT-6, POOL-5).
 *
 * Reads: lease, runner, ticket. Writes: lease, ticket, slot, runner; rows `ticket.ended`.
 * Calls: nothing. Queues: decide-gate, cut-tickets, dispatch. One run's failure stops no other.
 */
import {
  countLeasesOfRunners,
  type Lease,
  listExpiredLeases,
  listLeasesOfGoneRunners,
  lockLiveLease,
  pruneLeases,
  shortenLeases,
} from '../../db/store/lease.ts';
import { findRunner, pruneRunners } from '../../db/store/runner.ts';
import { clearDue, fillWindows, findTicket } from '../../db/store/ticket.ts';
import { settleLease } from '../../db/store/turn.ts';
import { listDueRuns } from '../../db/store/waiting.ts';
import { LIMITS } from '../domain/limits.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { endLease } from './end-lease.ts';

/** Most leases or runs one sweep takes; the next one goes on. */
const BATCH = 200;
const KEPT_DAYS = 1;

/** Ends what expired and puts back what is due; returns how many leases and tickets it moved. */
export async function expire(deps: Deps): Promise<number> {
  const { db } = deps.database;
  const shortened = await shortenLeases(db, LIMITS.leaseMs.default);
  if (shortened > 0) deps.log.warn({ leases: shortened, code: 'clock_stepped_back' }, 'expire');
  const gone = [...(await listExpiredLeases(db, BATCH)), ...(await listLeasesOfGoneRunners(db, BATCH))];
  const lost = await loseLeases(deps, gone);
  let ready = 0;
  for (const runId of await listDueRuns(db, BATCH)) ready += await guarded(deps, runId, (unit) => wake(unit));
  await deps.database.transaction(async (tx) => {
    await pruneRunners(tx, LIMITS.leaseMs.default);
    await pruneLeases(tx, KEPT_DAYS);
  });
  return lost + ready;
}

/** Ends leases whose runner is gone as `lost_runner`; a loss counts only where the runner held nothing else (TKT-6). */
export async function loseLeases(deps: Deps, leases: readonly Lease[]): Promise<number> {
  // before any of them ends: what a runner held is what it held when it got lost
  const held = await countLeasesOfRunners(deps.database.db, [...new Set(leases.map((one) => one.runnerId))]);
  const byRun = new Map<string, Lease[]>();
  for (const lease of new Map(leases.map((one) => [one.id, one])).values())
    byRun.set(lease.runId, [...(byRun.get(lease.runId) ?? []), lease]);
  let lost = 0;
  for (const [runId, mine] of byRun) {
    lost += await guarded(deps, runId, async (unit) => {
      let n = 0;
      for (const lease of mine) if (await lose(deps, unit, lease, (held.get(lease.runnerId) ?? 1) <= 1)) n++;
      if (n > 0)
        unit.enqueue(
          'dispatch',
          { repository: unit.run.repositoryId },
          { key: `dispatch:${unit.run.repositoryId}` },
        );
      return n;
    });
  }
  if (lost > 0) deps.log.info({ leases: lost }, 'expire');
  return lost;
}

async function lose(deps: Deps, unit: RunUnit, seen: Lease, alone: boolean): Promise<boolean> {
  const { tx } = unit;
  const lease = await lockLiveLease(tx, seen.id);
  if (lease === null) return false;
  const ticket = await findTicket(tx, lease.ticketId);
  if (ticket === null) return false;
  const runner = await findRunner(tx, lease.runnerId);
  const ended = runner === null || runner.endedAt !== null;
  // a heartbeat came between the look and the lock
  if (!ended && lease.expiresAt > unit.now && (lease.drainUntil === null || lease.drainUntil > unit.now))
    return false;
  if (lease.drainUntil !== null && lease.drainUntil <= unit.now) {
    // the pause's grace is over: no failure of the runner (CTL-2)
    return settleLease(tx, lease.id, {
      ...ticket,
      leaseState: 'revoked',
      ticketState: 'pending',
      front: true,
      notBeforeMs: null,
      end: null,
      verdict: null,
      result: null,
      reason: 'drained',
      seq: null,
    });
  }
  await endLease(unit, {
    lease,
    ticket,
    runner,
    actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
    cause: { kind: 'lease', id: lease.id, sha256: null },
    leaseState: 'expired',
    end: 'lost_runner',
    verdict: null,
    partial: false,
    detail: ended
      ? runner?.instance == null
        ? 'the workflow run ended'
        : 'the runner ended'
      : 'no heartbeat',
    retryAfterMs: null,
    alone,
    sessions: [],
    findings: [],
    brief: null,
    result: null,
    ms: Math.max(0, unit.now.getTime() - lease.grantedAt.getTime()),
  });
  return true;
}

async function wake(unit: RunUnit): Promise<number> {
  const ready = await fillWindows(unit.tx, unit.run.id);
  await clearDue(unit.tx, unit.run.id);
  if (ready > 0)
    unit.enqueue(
      'dispatch',
      { repository: unit.run.repositoryId },
      { key: `dispatch:${unit.run.repositoryId}` },
    );
  return ready;
}

async function guarded(deps: Deps, runId: string, fn: (unit: RunUnit) => Promise<number>): Promise<number> {
  try {
    return await withRun(deps, runId, fn);
  } catch (error) {
    deps.log.error({ run: runId, err: error }, 'expire');
    return 0;
  }
}
