/**
 * Takes a ticket's result (LSE-3, LSE-4, AUT-3, REV-4, REV-5, REV-8, RND-1): its end, findings, rows
 * and follow-up jobs commit together, or nothing does.
 *
 * Reads: lease, ticket, session, runner, file, finding. Writes: ticket, lease, slot, session, finding,
 * texts; rows `ticket.ended rule.break finding.raised finding.ended ticket.late ticket.refused ticket.conflict`.
 * Calls: git, where a model proposes that a finding is fixed or a
 * changed command does not say it again. Queues: decide-gate, cut-tickets.
 * May fail with: `wrong_content`, `conflict`, `expired`, `revoked`, `superseded`, `bad_request`,
 * `not_found`, `owner_mismatch`, `forbidden`.
 */
import type { Tx } from '../../db/client.ts';
import { findFile } from '../../db/store/file.ts';
import { findLease, keepRefusal, type Lease, listLeasesOfRunner, lockLease } from '../../db/store/lease.ts';
import { findRunner } from '../../db/store/runner.ts';
import { listSessions, type Session } from '../../db/store/session.ts';
import { textRef } from '../../db/store/text.ts';
import { findTicket, type Ticket } from '../../db/store/ticket.ts';
import { clauseWords } from '../domain/clause.ts';
import { encodePath } from '../domain/path.ts';
import type { RedactionKeys } from '../domain/redact/keyed.ts';
import { redactor } from '../domain/redact.ts';
import {
  type CheckedResult,
  checkResult,
  foreignReviewer,
  readOtherContent,
  resultDigest,
} from '../domain/result.ts';
import { completeModels } from '../domain/round.ts';
import { judgeLogs } from '../domain/session-log.ts';
import { Fault, Refusal } from '../errors.ts';
import type { TicketResult } from '../protocol/runner.ts';
import { appendBreaks } from './accept-result/breaks.ts';
import { goneFindings } from './accept-result/gone.ts';
import { recordFindings } from './accept-result/record.ts';
import type { RunUnit } from './append-rows.ts';
import { wakeWanting } from './cut-tickets/wake.ts';
import type { Deps } from './deps.ts';
import { writeEnd } from './end-lease.ts';
import { tellEnd } from './end-session.ts';
import { nextLeases } from './lease/next.ts';
import type { LeaseOutcome, LeaseRequest } from './lease.ts';
import { actorOf, type LeaseClaim, leaseOfClaim, proofOf, whyNotHeld } from './lease-proof.ts';
import { takeTurn, type WorkOutcome } from './take-turn.ts';

/** What became of a result that was not refused. */
export interface AcceptOutcome {
  readonly accepted: true;
  /** No head of the run wants its key any more: recorded and reusable, not published (RUN-4). */
  readonly late: boolean;
  /** The same result had been accepted before. */
  readonly repeated: boolean;
}

type Outcome = AcceptOutcome | { readonly refusal: Refusal };

/**
 * Accepts a result under a lease, once; a refused one is kept as a row and never counted. With `next` the
 * runner's next tickets are leased in the same commit (LSE-1): null where it did not ask.
 */
export async function acceptResult(
  deps: Deps,
  claim: LeaseClaim,
  result: TicketResult,
  next: LeaseRequest | null = null,
): Promise<AcceptOutcome & { readonly next: LeaseOutcome | null }> {
  const seen = await leaseOfClaim(deps.database.db, claim);
  const digest = resultDigest(result);
  const told = await findTicket(deps.database.db, seen.ticketId);
  const gone = told === null ? new Set<number>() : await goneFindings(deps, told, result);
  const keys = deps.signer.redactionKeys(seen.installationId, seen.repositoryId);
  const following = await nextLeases(deps, claim.login, seen, next);
  const { value, granted } = await takeTurn(
    deps,
    { installationId: seen.installationId, repositoryId: seen.repositoryId },
    {
      of: {
        runId: seen.runId,
        leaseId: seen.id,
        work: (unit, ending) => work(unit, { claim, seen, result, digest, gone, keys }, ending),
      },
      ask: following.ask,
    },
  );
  if (value === null) throw new Fault('bug', 'a result without an outcome');
  if ('refusal' in value) {
    deps.log.warn({ lease: claim.lease, ticket: seen.ticketId, code: value.refusal.code }, 'accept-result');
    throw value.refusal;
  }
  deps.log.info({ lease: claim.lease, ticket: seen.ticketId, end: result.end, ...value }, 'accept-result');
  return { ...value, next: await following.tell(granted) };
}

interface Submission {
  readonly claim: LeaseClaim;
  readonly seen: Lease;
  readonly result: TicketResult;
  readonly digest: string;
  readonly gone: ReadonlySet<number>;
  readonly keys: RedactionKeys;
}

async function work(
  unit: RunUnit,
  submission: Submission,
  ending: ReadonlySet<string>,
): Promise<WorkOutcome<Outcome>> {
  const { claim, seen, result, digest } = submission;
  const refused = (value: Outcome) => ({ value, end: null, serves: !('refusal' in value) });
  const ticket = await findTicket(unit.tx, seen.ticketId);
  if (ticket === null) return refused({ refusal: new Refusal('not_found', 'the ticket is gone') });
  // LED-8: evidence gets no row on top, so nothing of this result can be kept
  if (unit.broken)
    return refused({
      refusal: new Refusal(
        'revoked',
        'the ledger of this run was found cut: nothing is accepted for it any more',
      ),
    });
  const lease = await lockLease(unit.tx, proofOf(claim));
  if (lease === null) {
    // as it is now: a copy of this very result may have ended it while this one waited for the run
    const over = (await findLease(unit.tx, seen.id)) ?? seen;
    await tellEnds(unit.tx, await listSessions(unit.tx, seen.id), result);
    return refused(await refuse(unit, claim, over, ticket, digest));
  }
  if (foreignReviewer(ticket.spec, result) !== null)
    return refused({
      refusal: new Refusal(
        'bad_request',
        'a reviewer that the ticket does not name',
        'its reviewers and fallbacks',
      ),
    });
  if (readOtherContent(ticket.spec, result)) {
    if (await keepRefusal(unit.tx, lease.id, digest))
      appendRefused(unit, claim, ticket, 'wrong_content', digest);
    return refused({
      refusal: new Refusal(
        'wrong_content',
        'the blobs read are not those of the ticket',
        'the blob ids of the ticket',
      ),
    });
  }
  return accept(unit, lease, ticket, submission, ending);
}

async function accept(
  unit: RunUnit,
  lease: Lease,
  ticket: Ticket,
  { claim, result, digest, gone, keys }: Submission,
  ending: ReadonlySet<string>,
): Promise<WorkOutcome<Outcome>> {
  const { tx, run } = unit;
  const path = encodePath(ticket.path);
  const sessions = await listSessions(tx, lease.id);
  await tellEnds(tx, sessions, result);
  const admitted = new Map(
    sessions.flatMap((one) => (STARTED.has(one.state) ? [[one.id, one.reviewer] as const] : [])),
  );
  const { result: standing, breaks } = judgeLogs(ticket.spec, result);
  const checked = checkResult(ticket.spec, path, standing, admitted, redactor(), keys.salt);
  const runner = await findRunner(tx, lease.runnerId);
  // what ends in the same commit is still live here
  const held = (await listLeasesOfRunner(tx, lease.runnerId)).filter((one) => !ending.has(one.id));
  const actor = actorOf(claim.login);
  const cause = { kind: 'lease', id: lease.id, sha256: digest } as const;
  const { seq, settlement } = await writeEnd(unit, {
    lease,
    ticket,
    runner,
    actor,
    cause,
    leaseState: 'ended',
    end: checked.end,
    verdict: checked.verdict,
    partial: checked.partial,
    ...(checked.end === 'reviewed' ? { blob: result.blobs } : {}),
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
    clauses: clausesOf(ticket, checked, result),
    calls: [...new Set(result.calls ?? [])],
    brief: result.brief_sha256,
    result: digest,
    ms: result.ms,
  });
  appendBreaks(unit, ticket, breaks, { actor, cause });
  const present = await findFile(tx, run.id, ticket.path);
  const late = present?.key !== ticket.key;
  const round = { answers: result.answers ?? [], gone };
  await recordFindings(unit, ticket, checked, { actor, cause, late, keys }, round);
  if (late) {
    unit.append('ticket.late', {
      block: ticket.blockId,
      actor,
      cause,
      data: { ticket: ticket.id, key: ticket.key, path, seq },
    });
    unit.enqueue('cut-tickets', { run: run.id }, { key: `cut-tickets:${run.id}` });
  }
  await wakeWanting(unit, { key: ticket.key, end: checked.end, partial: checked.partial });
  return {
    value: { accepted: true, late, repeated: false },
    end: { ...settlement, leaseId: lease.id },
    serves: true,
  };
}

const STARTED: ReadonlySet<Session['state']> = new Set(['admitted', 'ended']);

/** A lost end of a session costs nothing: the result, refused or not, brings the same figures (ADM-2). */
async function tellEnds(tx: Tx, sessions: readonly Session[], result: TicketResult): Promise<void> {
  for (const one of result.sessions) {
    const own = sessions.find(({ id }) => id === one.id);
    if (own !== undefined && STARTED.has(own.state) && own.usageAt === null)
      await tellEnd(tx, own, {
        end: one.end,
        detail: own.detail,
        tokensIn: one.tokens_in,
        tokensOut: one.tokens_out,
        costMicro: one.cost_micro,
      });
  }
}

/** What models that spoke say of the ticket's clauses, each by its text's reference (REV-3). */
function clausesOf(
  { spec }: Ticket,
  { end, partial, sessions }: CheckedResult,
  result: TicketResult,
): { clause: string; status: 'met' | 'unmet' }[] {
  if (end !== 'reviewed' || partial) return [];
  const complete = new Set(completeModels(spec, sessions).map((one) => one.name));
  return clauseWords(spec.clauses ?? [], result.clauses ?? [], complete).map(({ clause, status }) => ({
    clause: textRef(clause),
    status,
  }));
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
        actor: actorOf(claim.login),
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
    actor: actorOf(claim.login),
    cause: { kind: 'lease', id: claim.lease, sha256: digest },
    data: { ticket: ticket.id, grant: claim.grant, reason, result: digest },
  });
}
