/**
 * Judges a run: verifies its rows, folds them, adds the facts that no row proves, decides. What
 * decide-gate records and publish-checks shows is this, so that both say the same.
 *
 * Reads: ledger, reasons, repository, enrolment, tickets, policy. Writes: nothing. Calls: the signer.
 * May fail with: what Postgres does.
 */
import type { Reader } from '../../db/client.ts';
import { countOpenTickets } from '../../db/store/gate.ts';
import { listStaleMembers } from '../../db/store/group.ts';
import { findRepository } from '../../db/store/installation.ts';
import { listReasons } from '../../db/store/reason.ts';
import type { Run } from '../../db/store/run.ts';
import { findKill } from '../../db/store/setting.ts';
import {
  decideGate,
  type GateDecision,
  type GateFacts,
  type OperationalReason,
} from '../domain/gate/decide.ts';
import { gatePolicyOf } from '../domain/gate/policy.ts';
import { decideGroup } from '../domain/group/decide.ts';
import type { ChainVerdict, VerifiedHead } from '../domain/ledger/chain.ts';
import type { Policy } from '../domain/policy.ts';
import { foldRows } from '../domain/run-state/fold.ts';
import { emptyState, type RunState } from '../domain/run-state/state.ts';
import type { UnitDeps } from './append-rows.ts';
import { knownPolicy } from './known-policy.ts';
import { type VerifyOptions, verifyRun } from './verify-run.ts';

/** A run as judged at one moment. */
export interface Judged {
  readonly run: Run;
  /** What the verified rows say; empty where they do not verify. */
  readonly state: RunState;
  /** Null where none is valid, known, or true to its hash. */
  readonly policy: Policy | null;
  readonly facts: GateFacts;
  readonly decision: GateDecision;
  /** The head of the chain that was verified; null where it does not verify. */
  readonly verified: VerifiedHead | null;
}

/** Judges a run at `now` (product time). `options.full` and `options.published` as LED-9 asks before a green. */
export async function judgeRun(
  deps: UnitDeps,
  reader: Reader,
  run: Run,
  now: Date,
  options: Pick<VerifyOptions, 'full' | 'published'> = {},
): Promise<Judged> {
  const { verdict, rows } = await verifyRun(deps, run, { ...options, reader });
  const reasons = await operationalReasons(reader, run);
  // found once against what was published (LED-9): not visible from the rows, and no later row heals it
  const found = reasons.find(
    (reason) => reason.code === 'ledger_invalid' || reason.code === 'ledger_unverifiable',
  );
  const intact = verdict.kind === 'intact' && found === undefined;
  const state = intact ? foldRows(rows) : emptyState();
  const policy = await knownPolicy(reader, state.policy?.state === 'valid' ? state.policy.hash : null);
  const facts: GateFacts = {
    head: run.toldHead,
    baseRef: run.baseRef,
    headAtMs: run.headAt.getTime(),
    draft: run.draft,
    mode: run.mode,
    openTickets: await countOpenTickets(reader, run.id),
    reasons: reasons.filter((reason) => reason !== found),
    ledger: intact ? null : ledgerFault(verdict, found ?? null),
  };
  const decide = run.groupHead === null ? decideGate : decideGroup;
  const decision = decide(state, policy === null ? null : gatePolicyOf(policy), facts, now.getTime());
  return {
    run,
    state,
    policy,
    facts,
    decision,
    verified: intact && verdict.kind === 'intact' ? verdict.head : null,
  };
}

/** What is wrong with a chain, or what was found of it when it was held against what is published. */
export function ledgerFault(
  verdict: ChainVerdict,
  found: Pick<OperationalReason, 'code' | 'detail'> | null,
): NonNullable<GateFacts['ledger']> {
  if (verdict.kind === 'unverifiable')
    return { code: 'ledger_unverifiable', detail: `row ${verdict.seq} needs key ${verdict.kid}` };
  if (verdict.kind === 'invalid')
    return { code: 'ledger_invalid', detail: `row ${verdict.seq}: ${verdict.fault} (${verdict.detail})` };
  const code = found?.code === 'ledger_unverifiable' ? 'ledger_unverifiable' : 'ledger_invalid';
  return { code, detail: found?.detail ?? '' };
}

/** What steps said of the run, of its repository, and of the person who paused it. */
async function operationalReasons(reader: Reader, run: Run): Promise<OperationalReason[]> {
  const reasons: OperationalReason[] = (await listReasons(reader, run.id)).map((reason) => ({
    code: reason.code,
    sinceMs: reason.sinceMs,
    untilMs: reason.dueAtMs,
    detail: reason.detail,
  }));
  const since = run.headAt.getTime();
  const kill = await findKill(reader, run.installationId);
  if (kill !== null)
    // why is free text, and stays out of the row
    reasons.push({
      code: 'killed',
      sinceMs: kill.setAt.getTime(),
      untilMs: null,
      detail: `by ${kill.actor}`,
    });
  if (run.status === 'paused' || run.status === 'stopped')
    reasons.push({ code: run.status, sinceMs: since, untilMs: null, detail: null });
  if (run.groupHead !== null) {
    // what its rows say of a member is not what that one says now: weighed again first (GAT-5)
    const stale = await listStaleMembers(reader, run.id);
    if (stale.length > 0) {
      const detail = `#${stale[0]} was decided anew`;
      reasons.push({ code: 'reviews_pending', sinceMs: since, untilMs: null, detail });
    }
  }
  const cause = (await findRepository(reader, run.repositoryId))?.setupCause ?? null;
  if (cause !== null && !reasons.some((reason) => reason.code === 'setup_incomplete'))
    reasons.push({ code: 'setup_incomplete', sinceMs: since, untilMs: null, detail: cause });
  return reasons;
}
