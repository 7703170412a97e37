/** The finding rows of one accepted result, and their projection. */
import { endFinding, listFindings, nextFindingNumber, upsertFinding } from '../../../db/store/finding.ts';
import { putTexts } from '../../../db/store/text.ts';
import type { Ticket } from '../../../db/store/ticket.ts';
import { encodePath } from '../../domain/path.ts';
import { COMMAND, providerOf } from '../../domain/provider.ts';
import { type CheckedResult, silencedFindings } from '../../domain/result.ts';
import { type Answer, provenFixed, raisedAgain } from '../../domain/round.ts';
import type { RunUnit } from '../append-rows.ts';
import { withEntries } from './entries.ts';

/**
 * Raises what was found, and ends what a command no longer finds, or a model says is mended, on new
 * content (RND-1, FND-1). A `late` result speaks of content that no present head has: what it raises
 * ends at once and comes back with that content (sync-run), and it ends nothing.
 */
export async function recordFindings(
  unit: RunUnit,
  ticket: Ticket,
  checked: CheckedResult,
  { late, ...by }: Pick<Parameters<RunUnit['append']>[1], 'actor' | 'cause'> & { readonly late: boolean },
  { answers, gone }: { readonly answers: readonly Answer[]; readonly gone: ReadonlySet<number> },
): Promise<void> {
  const { tx, run } = unit;
  const path = encodePath(ticket.path);
  const known = await listFindings(tx, run.id, path);
  const names = new Map([...ticket.spec.reviewers, ...ticket.spec.fallbacks].map((one) => [one.name, one]));
  let next = await nextFindingNumber(tx, run.id);
  const ended: (readonly [number, string])[] = [];
  const texts = await putTexts(
    tx,
    checked.findings.flatMap((one) => [one.title, one.body, one.quote, one.suggestion ?? '']),
  );
  for (const [index, one] of checked.findings.entries()) {
    const before = known.find((other) => other.fingerprint === one.fingerprint);
    const reviewer = names.get(one.reviewer);
    const command = reviewer !== undefined && providerOf(reviewer) === COMMAND;
    const severity = raisedAgain(before, { ...one, command });
    if (severity === null) continue;
    const number = before?.number ?? next++;
    const [title = '', body = '', quote = '', suggestion = ''] = texts.slice(index * 4, index * 4 + 4);
    const data = {
      finding: number,
      fingerprint: one.fingerprint,
      path,
      side: one.side,
      start_line: one.start_line,
      end_line: one.end_line,
      severity,
      lens: one.lens,
      state: one.grounded ? ('open' as const) : ('ungrounded' as const),
      reviewer: one.reviewer,
      command,
      ticket: ticket.id,
      key: ticket.key,
      blob: ticket.spec.blob[one.side],
      title,
      body,
      quote,
      suggestion: one.suggestion === null ? null : suggestion,
    };
    const standing =
      before?.state === 'open' || before?.state === 'answered' || before?.state === 'dismissed';
    if (late && data.state === 'open' && !standing) ended.push([number, 'left_the_change']);
    const seq = unit.append('finding.raised', { block: ticket.blockId, ...by, data });
    await upsertFinding(tx, {
      runId: run.id,
      number,
      fingerprint: one.fingerprint,
      path,
      side: one.side,
      startLine: one.start_line,
      endLine: one.end_line,
      severity,
      lens: one.lens,
      // FND-2: a dismissal sticks to the fingerprint in this run, as the fold has it
      state: before?.state === 'dismissed' ? 'dismissed' : data.state,
      reviewer: one.reviewer,
      command,
      ticketId: ticket.id,
      key: ticket.key,
      blob: data.blob,
      title,
      body,
      quote,
      suggestion: data.suggestion,
      seq,
    });
  }
  const open = known.filter((one) => one.state === 'open' || one.state === 'answered');
  if (!late) {
    const entries = await withEntries(tx, open);
    ended.push(...silencedFindings(ticket.spec, checked, entries, gone));
    for (const one of provenFixed(ticket.spec, checked, answers, open, gone))
      ended.push([one, 'code_changed']);
  }
  for (const [finding, reason] of ended) {
    const seq = unit.append('finding.ended', {
      block: ticket.blockId,
      ...by,
      data: { finding, state: 'fixed', reason, head: run.head ?? ticket.spec.head, text: null },
    });
    await endFinding(tx, run.id, finding, 'fixed', seq);
  }
}
