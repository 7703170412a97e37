/** A verdict as the ledger records it, and the digest that says whether it changed (LED-10, PUB-2). */
import { createHash } from 'node:crypto';
import type { RowData } from '../ledger/row-kinds.ts';
import type { RunState } from '../run-state/state.ts';
import { presentHead } from '../run-state/state.ts';
import type { GateDecision, GateFacts } from './decide.ts';

const LIST = 50;

/** Lower-case hex SHA-256 over head, mode, conclusion, reason codes, blocking findings and what people cleared: a row is appended when it changes, not when a count moves. */
export function gateDigest(decision: GateDecision): string {
  const said = {
    head: decision.head,
    mode: decision.mode,
    conclusion: decision.conclusion,
    reasons: decision.reasons.map((reason) => [reason.code, reason.class, reason.past]),
    blocking: [...decision.blocking].sort((a, b) => a - b),
    // left out where there is nothing, so that verdicts of before keep their digests
    ...(clearedOf(decision).length === 0 ? {} : { cleared: clearedOf(decision) }),
    ...(decision.overridden == null ? {} : { overridden: decision.overridden.seq }),
  };
  return createHash('sha256').update('countersign/gate/v1\n').update(JSON.stringify(said)).digest('hex');
}

/** The data of `gate.decided`: lists cut to what a row holds, counts whole, facts as they were given. */
export function recordGate(
  state: RunState,
  decision: GateDecision,
  facts: GateFacts,
  now: number,
): RowData<'gate.decided'> {
  const head = presentHead(state);
  const synced = head !== null && head.head === facts.head && head.base_ref === facts.baseRef;
  const share = 10_000 / Math.max(decision.reasons.length, 1);
  return {
    head: decision.head,
    base_ref: facts.baseRef,
    merge_base: synced ? head.merge_base : null,
    policy: state.policy?.hash ?? null,
    mode: decision.mode,
    conclusion: decision.conclusion,
    reasons: decision.reasons.slice(0, 40).map((reason) => ({
      code: reason.code,
      class: reason.class,
      // long names could pass a row's 32 KiB: the decision rows have them all
      blocks: fitting(reason.blocks, share),
      paths: fitting(reason.paths, share),
      findings: reason.findings.slice(0, LIST).map((number) => `F${number}`),
      count: reason.count,
      ...(reason.detail === null ? {} : { detail: reason.detail }),
    })),
    blocking: decision.blocking.slice(0, 500),
    ...decision.counts,
    ...(clearedOf(decision).length === 0 ? {} : { cleared: clearedOf(decision) }),
    ...(decision.overridden == null ? {} : { overridden: { seq: decision.overridden.seq } }),
    facts: recordFacts(facts),
    now: new Date(now).toISOString(),
    digest: gateDigest(decision),
  };
}

/** What was cleared, each code and act once, at most 40. */
function clearedOf({ cleared = [] }: GateDecision): { code: string; seq: number }[] {
  return [...cleared].sort((a, b) => a.seq - b.seq || (a.code < b.code ? -1 : 1)).slice(0, 40);
}

function fitting<T>(values: readonly T[], bytes: number): T[] {
  const kept: T[] = [];
  let left = bytes;
  for (const value of values.slice(0, LIST)) {
    left -= Buffer.byteLength(JSON.stringify(value)) + 1;
    if (left < 0) break;
    kept.push(value);
  }
  return kept;
}

function recordFacts(facts: GateFacts): RowData<'gate.decided'>['facts'] {
  const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  const recorded: RowData<'gate.decided'>['facts'] = [
    { code: 'head', since: iso(facts.headAtMs), until: null, detail: facts.head },
    { code: 'base_ref', since: null, until: null, detail: facts.baseRef.slice(0, 200) },
    { code: 'open_tickets', since: null, until: null, detail: String(facts.openTickets) },
  ];
  if (facts.draft) recorded.push({ code: 'draft', since: null, until: null });
  for (const reason of facts.reasons.slice(0, 30)) {
    recorded.push({
      code: reason.code,
      since: iso(reason.sinceMs),
      until: iso(reason.untilMs),
      ...(reason.detail === null || reason.detail === '' ? {} : { detail: reason.detail.slice(0, 200) }),
    });
  }
  return recorded;
}
