/**
 * Ends a leased ticket inside a unit of work: the row, the lease with all that hangs on it, the
 * provider's state, and what follows (TKT-2, TKT-6, POOL-3, LSE-4).
 *
 * Reads: provider, ticket. Writes: ticket, lease, slot, session, provider; row `ticket.ended`.
 * Calls: nothing. Queues: decide-gate, cut-tickets, dispatch.
 */
import type { Lease } from '../../db/store/lease.ts';
import {
  listProviders,
  lockProvider,
  reviveProvider,
  setStrikes,
  settleProvider,
} from '../../db/store/provider.ts';
import type { Runner } from '../../db/store/runner.ts';
import { countUnfinished, releaseBackoffs, type Ticket } from '../../db/store/ticket.ts';
import { type Settlement, settleLease } from '../../db/store/turn.ts';
import { listRunsBehind } from '../../db/store/waiting.ts';
import type { Actor, Cause } from '../domain/ledger/row-fields.ts';
import type { RowData } from '../domain/ledger/row-kinds.ts';
import { encodePath } from '../domain/path.ts';
import { COMMAND } from '../domain/provider.ts';
import type { TicketEnd } from '../domain/review.ts';
import { endTicketWith, stepProvider } from '../domain/ticket-end.ts';
import type { RunUnit } from './append-rows.ts';

/** How a leased ticket ended. */
export interface LeaseEnd {
  readonly lease: Lease;
  readonly ticket: Ticket;
  readonly runner: Runner | null;
  readonly actor: Actor;
  readonly cause: Cause;
  readonly leaseState: 'ended' | 'expired';
  readonly end: TicketEnd;
  readonly verdict: RowData<'ticket.ended'>['verdict'];
  readonly partial: boolean;
  /** What a review read (AUT-3); absent for other ends. */
  readonly blob?: RowData<'ticket.ended'>['blob'];
  readonly detail: string | null;
  readonly retryAfterMs: number | null;
  /** Whether the runner held nothing else: only then does a loss count (TKT-6). */
  readonly alone: boolean;
  readonly sessions: RowData<'ticket.ended'>['sessions'];
  readonly findings: readonly string[];
  /** What its models say of clauses, and why it calls for a person; absent or empty: nothing. */
  readonly clauses?: RowData<'ticket.ended'>['clauses'];
  readonly calls?: RowData<'ticket.ended'>['calls'];
  readonly brief: string | null;
  readonly result: string | null;
  readonly ms: number;
}

/** Appends the row and settles the lease; returns the row's `seq` and whether the end is final. */
export async function endLease(unit: RunUnit, of: LeaseEnd): Promise<{ seq: number; final: boolean }> {
  const { seq, final, settlement } = await writeEnd(unit, of);
  await settleLease(unit.tx, of.lease.id, settlement);
  return { seq, final };
}

/** All of an end but the settling of its lease, which the caller sends: several travel in one turn (LSE-1). */
export async function writeEnd(
  unit: RunUnit,
  of: LeaseEnd,
): Promise<{ seq: number; final: boolean; settlement: Settlement }> {
  const { ticket, lease } = of;
  const outcome = endTicketWith(ticket, of.end, { retryAfterMs: of.retryAfterMs, alone: of.alone });
  const seq = unit.append('ticket.ended', {
    block: ticket.blockId,
    actor: of.actor,
    cause: of.cause,
    data: {
      ticket: ticket.id,
      key: ticket.key,
      path: encodePath(ticket.path),
      block: ticket.blockId,
      round: ticket.round,
      grant: lease.grant,
      level: ticket.level,
      policy: ticket.policyHash,
      end: of.end,
      final: outcome.final,
      verdict: of.verdict,
      partial: of.partial,
      ...(of.blob === undefined ? {} : { blob: of.blob }),
      ...(of.detail === null || of.detail === '' ? {} : { detail: of.detail }),
      runner:
        of.runner === null
          ? null
          : {
              runner: of.runner.id,
              pool: of.runner.pool,
              workflow_run: of.runner.workflowRun,
              attempt: of.runner.attempt,
              job: of.runner.job,
            },
      sessions: of.sessions,
      findings: [...new Set(of.findings)],
      ...(of.clauses === undefined || of.clauses.length === 0 ? {} : { clauses: of.clauses }),
      ...(of.calls === undefined || of.calls.length === 0 ? {} : { calls: of.calls }),
      brief: of.brief,
      result: of.result,
      ms: of.ms,
    },
  });
  const settlement: Settlement = {
    leaseState: of.leaseState,
    ticketState: outcome.final ? 'ended' : 'pending',
    front: !outcome.final,
    notBeforeMs: outcome.notBeforeMs,
    losses: outcome.losses,
    timeouts: outcome.timeouts,
    transients: outcome.transients,
    suspect: outcome.suspect,
    end: of.end,
    verdict: of.verdict,
    partial: of.partial,
    result: of.result,
    reason: of.detail,
    seq,
  };
  await stepProviderOf(unit, of);
  unit.enqueue(
    'decide-gate',
    { run: unit.run.id },
    { key: `decide-gate:${unit.run.id}`, ...(await putOff(unit)) },
  );
  if (!outcome.final)
    unit.enqueue('cut-tickets', { run: unit.run.id }, { key: `cut-tickets:${unit.run.id}` });
  return { seq, final: outcome.final, settlement };
}

/** Up to so many tickets that are not over, each end is decided on at once. */
const FEW = 64;
/** Of more than this many it does not matter how many there are. */
const MANY = 256;
/** How long a decision is put off for each ticket that is not over. */
const EACH_MS = 2;

/**
 * A decision reads all that a run has, under its lock. One for each of 4,000 ends would keep the others from
 * ending: while many are to come it waits for some of them, half a second at most, and less the fewer are left.
 */
async function putOff({ tx, run }: RunUnit): Promise<{ readonly afterMs?: number }> {
  const open = await countUnfinished(tx, run.id, MANY);
  return open <= FEW ? {} : { afterMs: open * EACH_MS };
}

async function stepProviderOf(unit: RunUnit, of: LeaseEnd): Promise<void> {
  const { installationId, provider: name } = of.lease;
  if (name === COMMAND) return;
  const state = (await listProviders(unit.tx, installationId)).find((one) => one.name === name);
  if (state === undefined) return;
  const asked = of.lease.admitted;
  const view = (one: typeof state) => ({
    strikes: one.strikes,
    settled: one.settledUntil !== null,
    rounds: one.rounds,
    probe: one.probeTicket,
  });
  // looked at without a lock first: in good times, a result waits for nobody's
  if (stepProvider(view(state), of.ticket.id, of.end, asked).kind === 'none') return;
  const locked = await lockProvider(unit.tx, installationId, name);
  if (locked === null) return;
  const step = stepProvider(view(locked), of.ticket.id, of.end, asked);
  if (step.kind === 'strikes') return setStrikes(unit.tx, installationId, name, step.strikes);
  if (step.kind === 'none') return;
  if (step.kind === 'settle') {
    await settleProvider(unit.tx, installationId, name, { ...step, detail: of.end });
  } else {
    await reviveProvider(unit.tx, installationId, name);
    await releaseBackoffs(unit.tx, installationId, name);
  }
  // each run points and fills its own windows, under its own lock
  for (const behind of await listRunsBehind(unit.tx, installationId, name)) {
    unit.enqueue('cut-tickets', { run: behind.runId }, { key: `cut-tickets:${behind.runId}` });
  }
}
