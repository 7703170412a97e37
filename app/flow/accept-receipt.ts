/**
 * Takes what a verify command came to in its pool (VER-2, VER-3, LSE-3, LSE-4): the receipt's end, its row and the follow-up
 * job commit together, or nothing does.
 *
 * Reads: the lease, run. Writes: the lease, receipt, texts; rows `receipt.ended receipt.waiting receipt.refused`.
 * Calls: nothing. Queues: decide-gate.
 * May fail with: `wrong_content`, `bad_request`, `conflict`, `expired`, `revoked`, `superseded`, `not_found`,
 * `owner_mismatch`, `forbidden`.
 */
import {
  findReceiptLease,
  keepReceiptRefusal,
  lockReceiptLease,
  type ReceiptLease,
} from '../../db/store/receipt-lease.ts';
import { aborted, judgePool, type PoolEnd } from '../domain/receipt/pool.ts';
import { resultDigest } from '../domain/result.ts';
import { Refusal } from '../errors.ts';
import { type ReceiptDetail, receiptTrouble } from '../protocol/receipt.ts';
import type { ReceiptResult } from '../protocol/verify.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { actorOf, type LeaseClaim, proofOf, whyNotHeld } from './lease-proof.ts';
import { type By, endReceipt, nameOf, receiptLeaseOf } from './receipt-claim.ts';
import { keepTold } from './settle-receipts/told.ts';

/** What became of a result that was not refused; `repeated`: it was accepted before. */
export interface ReceiptOutcome {
  readonly accepted: true;
  readonly repeated: boolean;
}

/** Accepts a result once; the same one again is a success, another one under the grant a conflict. */
export async function acceptReceipt(
  deps: Deps,
  claim: LeaseClaim,
  result: ReceiptResult,
): Promise<ReceiptOutcome> {
  const seen = await receiptLeaseOf(deps.database.db, claim);
  const digest = resultDigest(result);
  const by: By = { actor: actorOf(claim.login), cause: { kind: 'lease', id: seen.id, sha256: digest } };
  const outcome = await withRun(deps, seen.runId, async (unit): Promise<ReceiptOutcome | Refusal> => {
    // LED-8: evidence gets no row on top, so nothing of this result can be kept
    if (unit.broken)
      return new Refusal('revoked', 'the ledger of this run was found cut: nothing is accepted');
    const lease = await lockReceiptLease(unit.tx, proofOf(claim));
    if (lease === null)
      return refuse(unit, (await findReceiptLease(unit.tx, seen.id)) ?? seen, claim.grant, digest, by);
    const fault = result.end === 'ran' ? faultOf(result.detail, lease) : null;
    if (fault !== null) return fault;
    const detail = result.end === 'ran' ? result.detail : null;
    await endReceipt(
      unit,
      lease,
      {
        ...endOf(result, lease),
        leaseState: 'ended',
        result: digest,
        ms: detail?.ms ?? 0,
        told: detail === null ? undefined : await keepTold(unit, detail),
      },
      by,
    );
    return { accepted: true, repeated: false };
  });
  const line = { lease: claim.lease, run: seen.runId };
  if (outcome instanceof Refusal) {
    deps.log.warn({ ...line, code: outcome.code }, 'accept-receipt');
    throw outcome;
  }
  deps.log.info({ ...line, end: result.end, ...outcome }, 'accept-receipt');
  return outcome;
}

function endOf(result: ReceiptResult, lease: ReceiptLease): PoolEnd {
  if (result.end === 'refused') return aborted(result.reason);
  const { detail } = result;
  const { exit, signal, command_sha256: command } = detail;
  return judgePool({ trouble: receiptTrouble(detail), exit, signal, command }, lease.command);
}

/** AUT-3: the head is the lease's; and what was not let go by us did not run. */
function faultOf(detail: ReceiptDetail, lease: ReceiptLease): Refusal | null {
  if (detail.head !== lease.head)
    return new Refusal('wrong_content', 'the detail is of another head', 'the head of the lease');
  if (detail.started && lease.startedAt === null)
    return new Refusal('bad_request', 'it was never started under this lease', 'start, then submit');
  return null;
}

/** LSE-3, LSE-4: what came too late, or beside another result, is kept once and never counts. */
async function refuse(
  unit: RunUnit,
  lease: ReceiptLease,
  grant: number,
  digest: string,
  by: By,
): Promise<ReceiptOutcome | Refusal> {
  if (lease.state === 'ended' && lease.grant === grant && lease.result === digest)
    return { accepted: true, repeated: true };
  const conflict = lease.state === 'ended' && lease.grant === grant;
  const reason = conflict ? 'conflict' : ((await whyNotHeld(unit.tx, lease, grant)) ?? 'superseded');
  if (await keepReceiptRefusal(unit.tx, lease.id, digest)) {
    const { block, receipt } = nameOf(lease);
    unit.append('receipt.refused', {
      block,
      ...by,
      data: { block, receipt, lease: lease.id, grant, reason, result: digest },
    });
    if (conflict) unit.enqueue('decide-gate', { run: unit.run.id }, { key: `decide-gate:${unit.run.id}` });
  }
  return conflict
    ? new Refusal('conflict', 'another result was accepted under this grant')
    : new Refusal(reason, `this lease does not hold: ${reason}; the result is kept and not counted`);
}
