/**
 * Takes a ticket's result (LSE-3, LSE-4, AUT-3, REV-4, REV-5, REV-8, RND-1): its end, findings, rows
 * and follow-up jobs commit together, or nothing does.
 *
 * Reads: lease, ticket, session, runner, file, finding. Writes: ticket, lease, slot, session, finding,
 * texts; rows `ticket.ended finding.raised finding.ended ticket.late ticket.refused ticket.conflict`.
 * Calls: git, where a model proposes that a finding is fixed or a
 * changed command does not say it again. Queues: decide-gate, cut-tickets.
 * May fail with: `wrong_content`, `conflict`, `expired`, `revoked`, `superseded`, `bad_request`,
 * `not_found`, `owner_mismatch`, `forbidden`.
 */
import { findFile } from '../../db/store/file.ts';
import { keepRefusal, type Lease, listLeasesOfRunner, lockLease } from '../../db/store/lease.ts';
import { findRunner } from '../../db/store/runner.ts';
import { endSessionRow, freeSlot, listSessions } from '../../db/store/session.ts';
import { findTicket, type Ticket } from '../../db/store/ticket.ts';
import { encodePath } from '../domain/path.ts';
import { redactor } from '../domain/redact.ts';
import { checkResult, foreignReviewer, readOtherContent, resultDigest } from '../domain/result.ts';
import { Refusal } from '../errors.ts';
import type { TicketResult } from '../protocol/runner.ts';
import { goneFindings } from './accept-result/gone.ts';
import { recordFindings } from './accept-result/record.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { endLease } from './end-lease.ts';
import { type LeaseClaim, leaseOfClaim, proofOf, whyNotHeld } from './lease-proof.ts';

/** What became of a result that was not refused. */
export interface AcceptOutcome {
  readonly accepted: true;
  /** No head of the run wants its key any more: recorded and reusable, not published (RUN-4). */
  readonly late: boolean;
  /** The same result had been accepted before. */
  readonly repeated: boolean;
}

type Outcome = AcceptOutcome | { readonly refusal: Refusal };

/** Accepts a result under a lease, once; a refused one is kept as a row and never counted. */
export async function acceptResult(
  deps: Deps,
  claim: LeaseClaim,
  result: TicketResult,
): Promise<AcceptOutcome> {
  const seen = await leaseOfClaim(deps.database.db, claim);
  const digest = resultDigest(result);
  const told = await findTicket(deps.database.db, seen.ticketId);
  const gone = told === null ? new Set<number>() : await goneFindings(deps, told, result);
  const outcome = await withRun(deps, seen.runId, async (unit): Promise<Outcome> => {
    const ticket = await findTicket(unit.tx, seen.ticketId);
    if (ticket === null) return { refusal: new Refusal('not_found', 'the ticket is gone') };
    const lease = await lockLease(unit.tx, proofOf(claim));
    if (lease === null) return refuse(unit, claim, seen, ticket, digest);
    const stranger = foreignReviewer(ticket.spec, result);
    if (stranger !== null)
      return {
        refusal: new Refusal(
          'bad_request',
          'a reviewer that the ticket does not name',
          'its reviewers and fallbacks',
        ),
      };
    if (readOtherContent(ticket.spec, result)) {
      if (await keepRefusal(unit.tx, lease.id, digest))
        appendRefused(unit, claim, ticket, 'wrong_content', digest);
      return {
        refusal: new Refusal(
          'wrong_content',
          'the blobs read are not those of the ticket',
          'the blob ids of the ticket',
        ),
      };
    }
    return accept(unit, lease, ticket, result, { digest, gone });
  });
  if ('refusal' in outcome) {
    deps.log.warn({ lease: claim.lease, ticket: seen.ticketId, code: outcome.refusal.code }, 'accept-result');
    throw outcome.refusal;
  }
  deps.log.info({ lease: claim.lease, ticket: seen.ticketId, end: result.end, ...outcome }, 'accept-result');
  return outcome;
}

async function accept(
  unit: RunUnit,
  lease: Lease,
  ticket: Ticket,
  result: TicketResult,
  { digest, gone }: { digest: string; gone: ReadonlySet<number> },
): Promise<AcceptOutcome> {
  const { tx, run } = unit;
  const path = encodePath(ticket.path);
  const sessions = await listSessions(tx, lease.id);
  for (const one of result.sessions) {
    // a lost end of a session costs nothing: the result brings the same figures
    const own = sessions.find((session) => session.id === one.id && session.state === 'admitted');
    if (own === undefined) continue;
    await freeSlot(tx, own.installationId, own.provider, own.id);
    await endSessionRow(tx, one.id, {
      end: one.end,
      detail: null,
      tokensIn: one.tokens_in,
      tokensOut: one.tokens_out,
      costMicro: one.cost_micro,
    });
  }
  const admitted = new Map(sessions.map((one) => [one.id, one.reviewer]));
  const checked = checkResult(ticket.spec, path, result, admitted, redactor());
  const runner = await findRunner(tx, lease.runnerId);
  const held = await listLeasesOfRunner(tx, lease.runnerId);
  const actor = { kind: 'runner', id: lease.runnerId, via: 'oidc' } as const;
  const cause = { kind: 'lease', id: lease.id, sha256: digest } as const;
  const { seq } = await endLease(unit, {
    lease,
    ticket,
    runner,
    actor,
    cause,
    leaseState: 'ended',
    end: checked.end,
    verdict: checked.verdict,
    partial: checked.partial,
    detail: checked.detail,
    retryAfterMs: result.retry_after_ms,
    alone: held.length <= 1,
    sessions: checked.sessions.map(({ detail, ...one }) => ({
      id: one.id,
      reviewer: one.reviewer,
      provider: one.provider,
      model: one.model,
      end: one.end,
      ...(detail === null || detail === '' ? {} : { detail }),
      tokens_in: one.tokens_in,
      tokens_out: one.tokens_out,
      cost_micro: one.cost_micro,
      ms: one.ms,
    })),
    findings: checked.findings.map((one) => one.fingerprint),
    brief: result.brief_sha256,
    result: digest,
    ms: result.ms,
  });
  const present = await findFile(tx, run.id, ticket.path);
  const late = present?.key !== ticket.key;
  const round = { answers: result.answers ?? [], gone };
  await recordFindings(unit, ticket, checked, { actor, cause, late }, round);
  if (late) {
    unit.append('ticket.late', {
      block: ticket.blockId,
      actor,
      cause,
      data: { ticket: ticket.id, key: ticket.key, path, seq },
    });
    unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}` });
  }
  return { accepted: true, late, repeated: false };
}

/** LSE-3, LSE-4: the same result again is a success; another one under the grant is a conflict; else it came too late. */
async function refuse(
  unit: RunUnit,
  claim: LeaseClaim,
  lease: Lease,
  ticket: Ticket,
  digest: string,
): Promise<Outcome> {
  if (lease.state === 'ended' && lease.grant === claim.grant && ticket.resultGrant === claim.grant) {
    if (ticket.result === digest) return { accepted: true, late: false, repeated: true };
    if (ticket.result !== null && (await keepRefusal(unit.tx, lease.id, digest))) {
      unit.append('ticket.conflict', {
        block: ticket.blockId,
        actor: { kind: 'runner', id: lease.runnerId, via: 'oidc' },
        cause: { kind: 'lease', id: lease.id, sha256: digest },
        data: { ticket: ticket.id, grant: claim.grant, first: ticket.result, second: digest },
      });
      unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
    }
    return { refusal: new Refusal('conflict', 'another result was accepted under this grant') };
  }
  const why = (await whyNotHeld(unit.tx, lease, claim.grant)) ?? 'superseded';
  if (await keepRefusal(unit.tx, lease.id, digest)) appendRefused(unit, claim, ticket, why, digest);
  return {
    refusal: new Refusal(why, `this lease does not hold: ${why}; the result is kept and not counted`),
  };
}

function appendRefused(
  unit: RunUnit,
  claim: LeaseClaim,
  ticket: Ticket,
  reason: 'expired' | 'revoked' | 'superseded' | 'wrong_content',
  digest: string,
): void {
  unit.append('ticket.refused', {
    block: ticket.blockId,
    actor: { kind: 'runner', id: claim.login.runnerId, via: 'oidc' },
    cause: { kind: 'lease', id: claim.lease, sha256: digest },
    data: { ticket: ticket.id, grant: claim.grant, reason, result: digest },
  });
}
