/** Writes how receipts stand: a row where that changed, and its projection (VER-2). */
import { putReceipt } from '../../../db/store/receipt.ts';
import type { ReceiptFact } from '../../domain/receipt.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import type { Look } from './read.ts';
import { keepTold } from './told.ts';

/** Whether GitHub shows something else than the receipt says. */
export function isNews(receipt: ReceiptFact, { standing }: Pick<Look, 'standing'>): boolean {
  const { state, why, job } = standing;
  // what passed by an earlier head stands until a job of this head says something (VER-4)
  if (receipt.reused !== null) return state === 'passed' || state === 'failed';
  // nothing seen of what has ended takes nothing back
  if (state === 'waiting' && ['passed', 'failed', 'aborted'].includes(receipt.state))
    return why === 'queued' || why === 'needs_approval';
  return (
    receipt.state !== state ||
    receipt.why !== why ||
    receipt.job?.job !== job?.job ||
    receipt.job?.attempt !== job?.attempt
  );
}

/** Appends the row of one receipt and updates its projection. */
export async function recordReceipt(
  deps: Deps,
  unit: RunUnit,
  receipt: ReceiptFact,
  look: Pick<Look, 'standing' | 'detail'>,
): Promise<void> {
  const { tx, run } = unit;
  const { standing, detail } = look;
  const { block, id } = receipt;
  const by = {
    block,
    actor: { kind: 'app' as const, id: deps.github.appId, via: 'schedule' },
    cause: { kind: 'schedule' as const, id: `settle-receipts:${run.id}`, sha256: null },
  };
  const job =
    standing.job === null
      ? null
      : {
          workflow_run: standing.job.workflowRun,
          attempt: standing.job.attempt,
          job: standing.job.job,
        };
  const { state } = standing;
  let seq: number;
  if (state === 'waiting' || state === 'reserved')
    seq = unit.append('receipt.waiting', {
      ...by,
      data: { block, receipt: id, why: standing.why ?? 'no_run' },
    });
  else if (state === 'running' && job !== null)
    seq = unit.append('receipt.bound', { ...by, data: { block, receipt: id, job } });
  else
    seq = unit.append('receipt.ended', {
      ...by,
      data: {
        block,
        receipt: id,
        state: state === 'running' ? 'aborted' : state,
        why: standing.why,
        job,
        conclusion: standing.conclusion,
        ms: standing.ms,
        ...(detail === null ? {} : { told: await keepTold(unit, detail) }),
      },
    });
  await putReceipt(tx, {
    runId: run.id,
    blockId: block,
    id,
    repositoryId: run.repositoryId,
    head: receipt.head,
    commands: receipt.commands,
    definition: receipt.definition,
    state,
    why: standing.why,
    workflowRun: standing.job?.workflowRun ?? null,
    attempt: standing.job?.attempt ?? null,
    job: standing.job?.job ?? null,
    pool: null,
    seq,
  });
}
