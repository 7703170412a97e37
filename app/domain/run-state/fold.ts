/** The fold of a run's verified rows: one step a row, in the order of the chain. */
import type { RowKind } from '../ledger/row-kinds.ts';
import { pathKey, type WirePath } from '../path.ts';
import type { Fact, FactOf } from './fact.ts';
import { emptyState, type FindingFact, type RunState } from './state.ts';

/** The state that a whole run's verified rows say. */
export function foldRows(rows: Iterable<Fact>): RunState {
  const state = emptyState();
  for (const row of rows) foldRow(state, row);
  return state;
}

/**
 * Advances a state by the next row, in place, and returns it. A row that is not the next one, or that
 * contradicts what stands, is an anomaly: the gate fails on it, the fold never throws.
 */
export function foldRow(state: RunState, row: Fact): RunState {
  if (row.seq !== state.seq + 1) {
    state.anomalies.push({ seq: row.seq, detail: `row ${row.seq} does not follow ${state.seq}` });
  }
  state.seq = row.seq;
  const step = steps[row.kind] as ((state: RunState, row: Fact) => void) | undefined;
  step?.(state, row);
  return state;
}

type Steps = { readonly [K in RowKind]?: (state: RunState, row: FactOf<K>) => void };

/** Kinds without a step here say nothing that the gate of this version weighs; they verify all the same. */
const steps: Steps = {
  'run.opened': (state, { seq, data }) => {
    state.opened = { ...data, seq };
  },
  'run.closed': (state, { seq, data }) => {
    state.closed = { ...data, seq };
  },
  'run.reopened': (state, { at }) => {
    state.closed = null;
    state.wokenAt = at;
  },
  'run.sealed': (state) => {
    state.sealed = true;
  },
  'run.head': (state, { seq, at, data }) => {
    state.heads.push({ ...data, seq, at });
    state.wokenAt = at;
  },
  'run.policy': (state, { seq, data }) => {
    state.policy = { ...data, seq };
  },
  'run.allowed': (state, { seq, at, data }) => {
    state.allowances.push({ ...data, seq });
    state.wokenAt = at;
  },
  decision: (state, { seq, data }) => {
    for (const path of data.gone) state.files.delete(pathKey(path));
    for (const path of data.paths) state.files.set(pathKey(path.path), { ...path, seq });
  },
  'block.opened': (state, { data }) => {
    state.blocks.set(data.block, {
      id: data.block,
      title: data.title,
      kind: data.kind,
      level: data.level,
      named: data.named,
      attempt: data.attempt,
      after: data.after,
      acceptHuman: data.accept_human,
      notes: data.notes,
      ended: null,
    });
  },
  'block.attempt': (state, { seq, data }) => {
    const block = state.blocks.get(data.block);
    if (block === undefined) return void anomaly(state, seq, `attempt of unknown block ${data.block}`);
    state.blocks.set(data.block, { ...block, attempt: data.attempt, ended: null });
  },
  'block.ended': (state, { seq, data }) => {
    const block = state.blocks.get(data.block);
    if (block === undefined) return void anomaly(state, seq, `end of unknown block ${data.block}`);
    state.blocks.set(data.block, { ...block, ended: data.status });
  },
  'block.claimed': (state, { seq, data }) => {
    state.claims.set(pathKey(data.path), { block: data.block, auto: data.auto, seq });
  },
  'block.released': (state, { seq, data }) => {
    state.claims.set(pathKey(data.path), { block: null, auto: false, seq });
  },
  'ticket.ended': (state, { seq, data }) => {
    state.ticketKeys.set(data.ticket, data.key);
    for (const session of data.sessions) {
      state.usage.sessions += 1;
      state.usage.tokensIn += session.tokens_in;
      state.usage.tokensOut += session.tokens_out;
      state.usage.costMicro += session.cost_micro;
      state.usage.ms += session.ms;
    }
    const key = keyFact(state, data.key, data.path);
    const decided = state.files.get(pathKey(data.path));
    // BLK-6: a result made at another level than the one recorded for this key never counts
    const badLevel = decided?.key === data.key && decided.level !== data.level;
    const complete =
      data.end === 'reviewed' &&
      !data.partial &&
      !badLevel &&
      (data.verdict === 'approve' || data.verdict === 'findings');
    if (complete) {
      key.counted = true;
      key.countedSeq = seq;
      for (const fingerprint of data.findings) state.promised.set(fingerprint, seq);
      return;
    }
    const end = badLevel ? 'bad_decision' : data.end === 'reviewed' ? incomplete(data) : data.end;
    key.failed = { end, final: badLevel || data.final, detail: data.detail ?? null, seq };
  },
  'ticket.reused': (state, { seq, data }) => {
    state.ticketKeys.set(data.ticket, data.key);
    const key = keyFact(state, data.key, data.path);
    key.counted = true;
    key.countedSeq = seq;
    for (const fingerprint of data.findings) state.promised.set(fingerprint, seq);
  },
  'ticket.conflict': (state, { seq, data }) => {
    state.conflicts.push({ ticket: data.ticket, seq });
  },
  'finding.raised': (state, { seq, data }) => raise(state, seq, data),
  'finding.answered': (state, { seq, data }) => {
    const finding = state.findings.get(data.finding);
    if (finding === undefined)
      return void anomaly(state, seq, `answer to F${data.finding}, which was never raised`);
    if (finding.state === 'open') state.findings.set(finding.number, { ...finding, state: 'answered', seq });
  },
  'finding.ended': (state, { seq, data }) => {
    const finding = state.findings.get(data.finding);
    if (finding === undefined)
      return void anomaly(state, seq, `end of F${data.finding}, which was never raised`);
    state.findings.set(finding.number, { ...finding, state: data.state, seq });
  },
  'human.acted': (state, { seq, at, actor, data }) => {
    state.acts.push({ ...data, seq, actor: actor.id, revoked: false });
    if (data.act === 'rerun') state.wokenAt = at;
  },
  'human.revoked': (state, { seq, data }) => {
    const act = state.acts.find((known) => known.seq === data.seq);
    if (act === undefined)
      return void anomaly(state, seq, `row ${data.seq} is revoked and is nothing a person did`);
    act.revoked = true;
  },
  'rule.break': (state, { seq, data }) => {
    state.ruleBreaks.push({ ticket: data.ticket, detail: data.detail, seq });
  },
  'gate.decided': (state, { seq, at, data }) => {
    state.gate = { ...data, seq, at };
    state.gates.set(data.head, { ...data, seq });
  },
};

function raise(state: RunState, seq: number, data: FactOf<'finding.raised'>['data']): void {
  const index = `${pathKey(data.path)}\u0000${data.fingerprint}`;
  const known = state.findingIndex.get(index);
  if (known !== undefined && known !== data.finding) {
    return void anomaly(state, seq, `F${data.finding} is F${known} under another number`);
  }
  const before = state.findings.get(data.finding);
  if (before !== undefined && before.fingerprint !== data.fingerprint) {
    return void anomaly(state, seq, `F${data.finding} was raised as another finding before`);
  }
  const finding: FindingFact = {
    number: data.finding,
    fingerprint: data.fingerprint,
    path: data.path,
    side: data.side,
    startLine: data.start_line,
    endLine: data.end_line,
    severity: data.severity,
    lens: data.lens,
    // FND-2: a dismissal sticks to the fingerprint in this run
    state: before?.state === 'dismissed' ? 'dismissed' : data.state,
    reviewer: data.reviewer,
    key: data.key,
    blob: data.blob,
    title: data.title,
    body: data.body,
    suggestion: data.suggestion,
    seq,
  };
  state.findings.set(finding.number, finding);
  state.findingIndex.set(index, finding.number);
}

function keyFact(state: RunState, key: string, path: WirePath) {
  let fact = state.keys.get(key);
  if (fact === undefined) {
    fact = { counted: false, countedSeq: null, failed: null, path };
    state.keys.set(key, fact);
  }
  return fact;
}

function incomplete(data: FactOf<'ticket.ended'>['data']): string {
  return data.partial ? 'partial' : (data.verdict ?? 'no_verdict');
}

function anomaly(state: RunState, seq: number, detail: string): void {
  state.anomalies.push({ seq, detail });
}
