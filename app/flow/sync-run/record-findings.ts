/** Ends findings whose path left the change, and raises again those whose content is back (FND-1): rows and projection. */
import { endFinding, upsertFinding } from '../../../db/store/finding.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import { settleFindings } from '../../domain/run-state/settle-findings.ts';
import type { RunState } from '../../domain/run-state/state.ts';
import type { RunUnit } from '../append-rows.ts';
import type { HeadPlan } from './plan.ts';
import type { Truth } from './read.ts';
import type { Append } from './record.ts';

/** Records it; true when anything was written. */
export async function recordFindings(
  { tx, run }: RunUnit,
  append: Append,
  state: RunState,
  truth: Truth,
  plan: HeadPlan,
  rows: readonly AnyRow[],
): Promise<boolean> {
  const { ended, raised } = settleFindings(rows, state.findings, plan.files);
  const { head } = truth.pull;
  for (const { finding, reason } of ended) {
    const seq = append('finding.ended', null, { finding, state: 'fixed', reason, head, text: null });
    await endFinding(tx, run.id, finding, 'fixed', seq);
  }
  for (const { block, data } of raised) {
    const seq = append('finding.raised', block, data);
    await upsertFinding(tx, {
      runId: run.id,
      number: data.finding,
      fingerprint: data.fingerprint,
      path: data.path,
      side: data.side,
      startLine: data.start_line,
      endLine: data.end_line,
      severity: data.severity,
      lens: data.lens,
      state: data.state,
      reviewer: data.reviewer,
      command: data.command,
      ticketId: data.ticket,
      key: data.key,
      blob: data.blob,
      title: data.title,
      body: data.body,
      quote: data.quote,
      suggestion: data.suggestion,
      seq,
    });
  }
  return ended.length + raised.length > 0;
}
