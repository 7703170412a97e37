/** What the live runs on one commit have to do with each other: their check is one for all of them (RUN-5). */
import type { Reader } from '../../db/client.ts';
import { listOpenRuns } from '../../db/store/run.ts';
import type { GateDecision } from '../domain/gate/decide.ts';
import { heldBy, holderOf as holder } from '../domain/gate/holder.ts';
import type { RunUnit, UnitDeps } from './append-rows.ts';
import { type Judged, judgeRun } from './judge-run.ts';

/** The run whose verdict the check of a shared head shows (RUN-5); undefined where there is none. */
export function holderOf<T extends Judged>(judged: readonly T[]): T | undefined {
  const sharers = judged.map((one) => ({
    state: one.state,
    verified: one.verified !== null,
    draft: one.run.draft,
    own: one.run.headRepositoryId === one.run.repositoryId,
    decision: one.decision,
    one,
  }));
  return holder(sharers)?.one;
}

/**
 * What a pull request's check says: its own verdict, or that another one on the same head is shown
 * there (`shared_head`, RUN-5).
 *
 * Reads: live runs on the head and what judge-run reads of each. Writes: nothing. Calls: the signer.
 */
export async function shownDecision(
  deps: UnitDeps,
  reader: Reader,
  own: Judged,
  now: Date,
): Promise<GateDecision> {
  const { run, decision } = own;
  const runs = await listOpenRuns(reader, { repositoryId: run.repositoryId, toldHead: run.toldHead });
  if (runs.every((one) => one.id === run.id)) return decision;
  const judged: Judged[] = [];
  for (const one of runs) judged.push(one.id === run.id ? own : await judgeRun(deps, reader, one, now));
  const shown = holderOf(judged.filter((one) => one.decision.mode === decision.mode));
  if (shown === undefined || shown.run.id === run.id) return decision;
  return heldBy(decision, `#${shown.run.pull ?? '?'}`, shown.decision.conclusion);
}

/**
 * Has the other live runs on a commit shown again, where this unit's run leaves it, comes to it or ends:
 * this run alone would not touch their check.
 *
 * Reads: live runs. Writes: nothing. Queues: decide-gate of each, once the unit commits.
 */
export async function wakeSharers(unit: RunUnit, head: string): Promise<void> {
  const { run, tx } = unit;
  for (const other of await listOpenRuns(tx, { repositoryId: run.repositoryId, toldHead: head })) {
    if (other.id !== run.id)
      unit.enqueue('decide-gate', { run: other.id }, { key: `decide-gate:${other.id}` });
  }
}
