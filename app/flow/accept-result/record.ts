/** The finding rows of one accepted result, and their projection. */
import { endFinding, listFindings, nextFindingNumber, projectRaised } from '../../../db/store/finding.ts';
import { putTexts } from '../../../db/store/text.ts';
import { listOverTickets, type Ticket } from '../../../db/store/ticket.ts';
import { seenBy } from '../../domain/finding/witness.ts';
import { encodePath } from '../../domain/path.ts';
import { COMMAND, providerOf } from '../../domain/provider.ts';
import { type RedactionKeys, sealedField } from '../../domain/redact/keyed.ts';
import { type CheckedResult, silencedFindings } from '../../domain/result.ts';
import { type Answer, completeModels, provenEnds, raisedAgain, readEarlier } from '../../domain/round.ts';
import { isStanding } from '../../domain/run-state/coverage.ts';
import { stateRaised } from '../../domain/run-state/fold.ts';
import type { RunUnit } from '../append-rows.ts';
import { type FindingWithEntry, withEntries } from './entries.ts';

/** Who submitted the result, how, and under which keys its redactions are sealed. */
type By = Pick<Parameters<RunUnit['append']>[1], 'actor' | 'cause'> & {
  readonly late: boolean;
  readonly keys: RedactionKeys;
};

/**
 * Raises what was found, and ends what a command no longer finds, or a model says is mended, on new
 * content (RND-1, FND-1). A `late` result speaks of content that no present head has: what it raises
 * ends at once and comes back with that content (sync-run), and it ends nothing.
 */
export async function recordFindings(
  unit: RunUnit,
  ticket: Ticket,
  checked: CheckedResult,
  { late, keys, ...by }: By,
  { answers, gone }: { readonly answers: readonly Answer[]; readonly gone: ReadonlySet<number> },
): Promise<void> {
  const { tx, run } = unit;
  const path = encodePath(ticket.path);
  const known = await listFindings(tx, run.id, path);
  const names = new Map([...ticket.spec.reviewers, ...ticket.spec.fallbacks].map((one) => [one.name, one]));
  let next = await nextFindingNumber(tx, run.id);
  const ended: (readonly [number, string])[] = [];
  const withdrawn: (readonly [number, string])[] = [];
  const models = completeModels(ticket.spec, checked.sessions);
  const earlier = await readBefore(unit, ticket);
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
      ...sealedField(keys, one.redacted ?? []),
      ...witnessField(seenBy(ticket.level, one, models)),
      ...(!command && earlier.has(one.reviewer) ? { read_before: true as const } : {}),
    };
    const stood = before !== undefined && (isStanding(before) || before.state === 'dismissed');
    if (late && stateRaised(before, data) === 'open' && !stood) ended.push([number, 'left_the_change']);
    const seq = unit.append('finding.raised', { block: ticket.blockId, ...by, data });
    await projectRaised(tx, run.id, data, stateRaised(before, data), seq);
  }
  const open = known.filter(isStanding);
  if (!late) {
    const entries = await withEntries(tx, open);
    ended.push(...silencedFindings(ticket.spec, checked, entries, gone));
    for (const one of provenEnds(ticket.spec, checked, answers, entries.map(withRaiser), gone))
      (one.state === 'fixed' ? ended : withdrawn).push([one.finding, one.reason]);
  }
  for (const [state, list] of [
    ['fixed', ended],
    ['withdrawn', withdrawn],
  ] as const)
    for (const [finding, reason] of list) {
      const seq = unit.append('finding.ended', {
        block: ticket.blockId,
        ...by,
        data: { finding, state, reason, head: run.head ?? ticket.spec.head, text: null },
      });
      await endFinding(tx, run.id, finding, state, seq);
    }
}

/** Who had read this very content in an earlier round (RND-1); a first round has none. */
async function readBefore({ tx, run }: RunUnit, ticket: Ticket): Promise<ReadonlySet<string>> {
  if (ticket.round === 0) return new Set();
  const over = await listOverTickets(tx, run.id, [ticket.key]);
  return readEarlier(
    over
      .filter((one) => one.id !== ticket.id && one.round < ticket.round)
      .map(({ end, partial, spec }) => ({ end, partial, reviewers: spec.reviewers })),
  );
}

function witnessField(witnesses: string[] | null): { witnesses?: string[] } {
  return witnesses === null ? {} : { witnesses };
}

function withRaiser(
  one: FindingWithEntry,
): FindingWithEntry & { readonly raisedBy: FindingWithEntry['entry'] } {
  return { ...one, raisedBy: one.entry };
}
