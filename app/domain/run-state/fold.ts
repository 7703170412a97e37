/** The fold of a run's verified rows: one step a row, in the order of the chain. */

import { staysDismissed } from '../finding/dismissal.ts';
import { witnessesOf } from '../finding/witness.ts';
import type { RowKind } from '../ledger/row-kinds.ts';
import { pathKey, type WirePath } from '../path.ts';
import { isReadBefore } from '../round.ts';
import { endConsent, guardedSince } from './consent.ts';
import type { Fact, FactOf } from './fact.ts';
import { hearKey, incomplete, keyFact } from './key.ts';
import { isOfOther } from './of-other.ts';
import { contentDigest, foldPeople } from './people.ts';
import { receiptSteps } from './receipts.ts';
import { carryRounds, countRound, standAt } from './rounds.ts';
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
    state.heads.push({ ...data, seq, at, content: contentDigest(state.files.values()) });
    endConsent(state, data.head);
    state.wokenAt = at;
  },
  'run.pushed': (state, { data }) => {
    const pushers = state.pushers.get(data.head);
    if (pushers === undefined) state.pushers.set(data.head, new Set([data.pusher]));
    else pushers.add(data.pusher);
  },
  'run.people': (state, { data }) => foldPeople(state, data),
  'run.policy': (state, { seq, data }) => {
    state.policy = { ...data, seq };
  },
  'run.allowed': (state, { seq, at, data }) => {
    state.allowances.push({ ...data, seq });
    state.wokenAt = at;
  },
  'group.read': (state, { data }) => {
    // a group that is read anew, members listed at last: what was known by the earlier reading stands
    const { members, known } = state.group ?? { members: new Map(), known: new Map() };
    state.group = { read: data, members, known };
  },
  'group.member': (state, { seq, data }) => {
    if (state.group === null) return void anomaly(state, seq, 'a member of a group that was not read');
    state.group.members.set(data.position, data);
  },
  'group.known': (state, { seq, data }) => {
    if (state.group === null) return void anomaly(state, seq, 'a known path of a group that was not read');
    for (const { path } of data.paths) state.group.known.set(pathKey(path), data.proof);
  },
  decision: (state, { seq, data }) => {
    for (const path of data.gone) state.files.delete(pathKey(path));
    for (const path of data.paths) {
      const since = guardedSince(state.files.get(pathKey(path.path)), path, seq);
      state.files.set(pathKey(path.path), { ...path, seq, guardedSince: since });
      if (path.key !== null) state.decided.set(path.key, path);
    }
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
      accept: data.accept,
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
  'block.ended': (state, { seq, at, data }) => {
    const block = state.blocks.get(data.block);
    if (block === undefined) return void anomaly(state, seq, `end of unknown block ${data.block}`);
    state.blocks.set(data.block, { ...block, ended: data.status });
    // what waited for it has had no machine time yet (BLK-5)
    if (data.status === 'passed' && [...state.blocks.values()].some(({ after }) => after.includes(block.id)))
      state.wokenAt = at;
  },
  'block.reopened': (state, { seq, data }) => {
    const block = state.blocks.get(data.block);
    if (block === undefined) return void anomaly(state, seq, `unknown block ${data.block} is open again`);
    state.blocks.set(data.block, { ...block, ended: null });
  },
  'block.claimed': (state, { seq, data }) => {
    state.claims.set(pathKey(data.path), { block: data.block, auto: data.auto, seq });
  },
  'block.released': (state, { seq, data }) => {
    const key = pathKey(data.path);
    const known = state.claims.get(key);
    // what one block lets go of is no word on another's claim (OWN-6)
    if (known === undefined || known.block === null || known.block === data.block)
      state.claims.set(key, { block: null, auto: false, seq });
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
    const bad = isOfOther(data, state.decided.get(data.key));
    const complete =
      data.end === 'reviewed' &&
      !data.partial &&
      !bad &&
      (data.verdict === 'approve' || data.verdict === 'findings');
    if (complete) {
      key.counted = true;
      key.countedSeq = seq;
      hearKey(key, seq, data);
      countRound(state, seq, data);
      for (const fingerprint of data.findings) state.promised.set(fingerprint, seq);
      return;
    }
    const end = bad ? 'bad_decision' : data.end === 'reviewed' ? incomplete(data) : data.end;
    key.failed = { end, final: bad || data.final, detail: data.detail ?? null, seq };
  },
  'ticket.reused': (state, { seq, data }) => {
    state.ticketKeys.set(data.ticket, data.key);
    const key = keyFact(state, data.key, data.path);
    key.counted = true;
    key.countedSeq = seq;
    hearKey(key, seq, data);
    for (const fingerprint of data.findings) state.promised.set(fingerprint, seq);
  },
  'ticket.conflict': (state, { seq, data }) => {
    state.conflicts.push({ ticket: data.ticket, seq });
  },
  'finding.raised': (state, { seq, data }) => raise(state, seq, data),
  'finding.carried': (state, { seq, data }) => {
    const finding = state.findings.get(data.finding);
    if (finding === undefined)
      return void anomaly(state, seq, `F${data.finding} is carried and was never raised`);
    const { number, path, fingerprint } = finding;
    const index = indexOf(data.path, data.fingerprint);
    const there = state.findingIndex.get(index);
    if (there !== undefined && there !== number)
      return void anomaly(state, seq, `F${number} is carried to where F${there} is`);
    state.findingIndex.delete(indexOf(path, fingerprint));
    state.former.set(indexOf(path, fingerprint), number);
    state.findingIndex.set(index, number);
    const { path: to, fingerprint: print } = data;
    carryRounds(state, number, path, to);
    state.findings.set(number, { ...finding, path: to, fingerprint: print, carriedSeq: seq });
  },
  'finding.answered': (state, { seq, data }) => {
    const finding = state.findings.get(data.finding);
    if (finding === undefined)
      return void anomaly(state, seq, `answer to F${data.finding}, which was never raised`);
    const stands = finding.state === 'open' || finding.state === 'answered';
    if (!stands) return void anomaly(state, seq, `answer to F${data.finding}, which is ${finding.state}`);
    state.findings.set(finding.number, { ...finding, state: 'answered', answer: data.text, seq });
  },
  'finding.ended': (state, { seq, data }) => {
    const finding = state.findings.get(data.finding);
    if (finding === undefined)
      return void anomaly(state, seq, `end of F${data.finding}, which was never raised`);
    state.findings.set(finding.number, { ...finding, state: data.state, seq });
  },
  'human.acted': (state, { seq, at, actor, data }) => {
    const content = state.heads.findLast((head) => head.head === data.head)?.content ?? null;
    state.acts.push({ ...data, seq, at, actor: actor.id, actorKind: actor.kind, content, revoked: false });
    // an answer opens a round, which has a time of its own (TKT-1)
    if (data.act === 'rerun' || data.act === 'answer') state.wokenAt = at;
    if (data.act === 'dismiss') dismiss(state, seq, actor.id, data);
  },
  'human.revoked': (state, { seq, data }) => {
    const act = state.acts.find((known) => known.seq === data.seq);
    if (act === undefined)
      return void anomaly(state, seq, `row ${data.seq} is revoked and is nothing a person did`);
    act.revoked = true;
  },
  ...receiptSteps,
  'rule.break': (state, { seq, data }) => {
    state.ruleBreaks.push({ ticket: data.ticket, detail: data.detail, seq });
  },
  'gate.decided': (state, { seq, at, data }) => {
    state.gate = { ...data, seq, at };
    state.gates.set(data.head, { ...data, seq });
  },
};

function raise(state: RunState, seq: number, data: FactOf<'finding.raised'>['data']): void {
  const index = indexOf(data.path, data.fingerprint);
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
    state: stateRaised(before, data),
    reviewer: data.reviewer,
    command: data.command,
    key: data.key,
    blob: data.blob,
    title: data.title,
    body: data.body,
    quote: data.quote,
    suggestion: data.suggestion,
    answer: before?.answer ?? null,
    dismissals: before?.dismissals ?? [],
    seq,
    carriedSeq: before?.carriedSeq ?? null,
    witnesses: witnessesOf(before, data),
    readBefore: isReadBefore(before, data),
  };
  state.findings.set(finding.number, finding);
  state.findingIndex.set(index, finding.number);
  standAt(state, finding.number, finding.path);
}

/** The state of a finding that is raised, first or again: the table says the same by the same rule. */
export function stateRaised(
  before: Pick<FindingFact, 'state' | 'dismissals'> | undefined,
  data: Pick<FactOf<'finding.raised'>['data'], 'state' | 'severity'>,
): FindingFact['state'] {
  const sticks = before?.state === 'dismissed' && staysDismissed(before.dismissals, data.severity);
  return sticks ? 'dismissed' : data.state;
}

function dismiss(state: RunState, seq: number, actor: string, data: FactOf<'human.acted'>['data']): void {
  const finding = state.findings.get(Number(data.clause?.slice(1)));
  if (finding === undefined) return void anomaly(state, seq, `dismissal of ${data.clause ?? 'nothing'}`);
  const one = { actor, severity: data.severity ?? null, self: data.self && data.solo !== true, seq };
  state.findings.set(finding.number, { ...finding, dismissals: [...finding.dismissals, one] });
}

function indexOf(path: WirePath, fingerprint: string): string {
  return `${pathKey(path)}\u0000${fingerprint}`;
}

function anomaly(state: RunState, seq: number, detail: string): void {
  state.anomalies.push({ seq, detail });
}
