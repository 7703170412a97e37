/**
 * Decides recorded runs under another policy (GAT-1, OPS-9): verifies the rows of each, has every recorded
 * verdict again from them, and decides the last one as if the proposed policy had been the base's.
 *
 * Reads: runs, repositories, ledgers, reasons, policies. Writes: nothing. Calls: the signer. May fail with:
 * what Postgres does.
 */
import { findRepository } from '../../db/store/installation.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { listReasons } from '../../db/store/reason.ts';
import type { Run } from '../../db/store/run.ts';
import { listRecordedRuns } from '../../db/store/simulate.ts';
import { type Policy, parsePolicy } from '../domain/policy.ts';
import { policiesOf } from '../domain/simulate/replay.ts';
import { type Proposed, type RunSimulation, simulateRun } from '../domain/simulate/run.ts';
import { PROMPT_VERSION } from '../protocol/runner.ts';
import type { UnitDeps } from './append-rows.ts';
import { ledgerFault } from './judge-run.ts';
import { verifyRun } from './verify-run.ts';

/** Which runs: those opened since a moment of product time, or the newest ones; and under which policy. */
export interface SimulateRunsInput {
  readonly since: Date | null;
  /** Most runs, newest first. */
  readonly most: number;
  readonly proposed: Proposed;
}

/** One run: where it is, and what came of it; `broken`: its rows do not verify, and nothing is decided from them. */
export interface SimulatedRun {
  readonly run: string;
  /** `owner/name#7`, or `owner/name@` and the head of a merge group. */
  readonly name: string;
  readonly epoch: number;
  readonly outcome: RunSimulation | { readonly kind: 'broken'; readonly fault: string };
}

/** Decides them, newest first. */
export async function simulateRuns(deps: UnitDeps, input: SimulateRunsInput): Promise<SimulatedRun[]> {
  const { db } = deps.database;
  const policies = new Map<string, Policy>();
  const missing = new Set<string>();
  const names = new Map<string, string>();
  const simulated: SimulatedRun[] = [];
  for (const run of await listRecordedRuns(db, { since: input.since, most: input.most })) {
    const { verdict, rows } = await verifyRun(deps, run);
    // what was found once against what GitHub shows no later look at the rows alone can see (LED-9)
    const found = (await listReasons(db, run.id)).find(({ code }) => code.startsWith('ledger_'));
    const address = names.get(run.repositoryId) ?? (await addressOf(deps, run));
    names.set(run.repositoryId, address);
    const place = { run: run.id, name: nameOf(run, address), epoch: run.epoch };
    if (verdict.kind !== 'intact' || found !== undefined) {
      const { code, detail } = ledgerFault(verdict, found ?? null);
      simulated.push({ ...place, outcome: { kind: 'broken', fault: `${code}: ${detail}` } });
      continue;
    }
    for (const hash of policiesOf(rows)) {
      if (policies.has(hash) || missing.has(hash)) continue;
      const bytes = await loadPolicy(db, hash);
      const reading = bytes === null ? null : parsePolicy(bytes);
      if (reading?.ok === true) policies.set(hash, reading.policy);
      else missing.add(hash);
    }
    const outcome = simulateRun(rows, run.groupHead !== null, policies, input.proposed, PROMPT_VERSION);
    simulated.push({ ...place, outcome });
  }
  return simulated;
}

async function addressOf({ database }: UnitDeps, run: Run): Promise<string> {
  const repository = await findRepository(database.db, run.repositoryId);
  return repository === null ? `repository ${run.repositoryId}` : `${repository.owner}/${repository.name}`;
}

function nameOf(run: Run, address: string): string {
  return run.pull === null ? `${address}@${run.groupHead?.slice(0, 12) ?? ''}` : `${address}#${run.pull}`;
}
