/**
 * The findings of a run for other programs (REV-6, FND-1): of verified rows only, every one in its one
 * state, with what the gate makes of them now and what of the head was not looked at.
 *
 * Reads: run, ledger, reasons, gate, policy, texts. Writes: nothing. Calls: the signer. May fail with:
 * `not_found`; `ledger_invalid`, `ledger_unverifiable`: nothing is told of rows that do not verify.
 */
import { findRepository } from '../../db/store/installation.ts';
import { findRun, productNow } from '../../db/store/run.ts';
import { readTexts } from '../../db/store/text.ts';
import {
  type ListedFinding,
  listedRefs,
  listFindings as listOf,
  listUnreviewed,
  type UnreviewedFile,
} from '../domain/finding/listed.ts';
import { redactor } from '../domain/redact.ts';
import { presentHead } from '../domain/run-state/state.ts';
import { Fault, Refusal } from '../errors.ts';
import type { UnitDeps } from './append-rows.ts';
import { judgeRun } from './judge-run.ts';
import { verifyRun } from './verify-run.ts';

/** A run's findings and what they are of. */
export interface RunFindings {
  readonly run: string;
  readonly repository: { readonly owner: string; readonly name: string } | null;
  /** The pull request's number; null: a merge group. */
  readonly pull: string | null;
  readonly head: string | null;
  readonly base: string | null;
  readonly verdict: string;
  readonly ledger: { readonly rows: number; readonly hash: string };
  readonly findings: readonly ListedFinding[];
  readonly unreviewed: readonly UnreviewedFile[];
}

/** Verifies every row of a run and lists its findings by number. */
export async function listFindings(deps: UnitDeps, runId: string): Promise<RunFindings> {
  const { db } = deps.database;
  const run = await findRun(db, runId);
  if (run === null) throw new Refusal('not_found', `there is no run ${runId}`, 'the id of a run');
  const judged = await judgeRun(deps, db, run, await productNow(db), { full: true });
  const { facts, verified, state, decision } = judged;
  if (facts.ledger !== null || verified === null)
    throw new Fault(
      facts.ledger?.code ?? 'ledger_invalid',
      `the rows of run ${runId} do not verify: ${facts.ledger?.detail ?? 'unknown'}`,
    );
  // rows that came after the verdict say nothing about it
  const rows = (await verifyRun(deps, run)).rows.filter((row) => row.seq <= state.seq);
  const { redact } = redactor();
  const stored = await readTexts(db, listedRefs(state, rows));
  const texts = new Map([...stored].map(([ref, text]) => [ref, text === null ? null : redact(text)]));
  const repository = await findRepository(db, run.repositoryId);
  const head = presentHead(state);
  return {
    run: run.id,
    repository: repository === null ? null : { owner: repository.owner, name: repository.name },
    pull: run.pull,
    head: head?.head ?? null,
    base: head?.merge_base ?? null,
    verdict: decision.conclusion,
    ledger: { rows: verified.seq, hash: verified.hash.toString('hex') },
    findings: listOf(state, rows, decision.blocking, texts),
    unreviewed: listUnreviewed(state),
  };
}
