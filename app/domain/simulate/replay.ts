/**
 * Recorded verdicts decided again (GAT-1): the rows before each, the facts that it recorded, its own
 * time, and the policy it names give the digest it has, or something of it is not what it was.
 */
import { decideGate, type GateDecision, type GateFacts } from '../gate/decide.ts';
import { gatePolicyOf } from '../gate/policy.ts';
import { gateDigest } from '../gate/record.ts';
import { decideGroup } from '../group/decide.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import type { Policy } from '../policy.ts';
import type { Fact, FactOf } from '../run-state/fact.ts';
import { foldRow } from '../run-state/fold.ts';
import { emptyState, type RunState } from '../run-state/state.ts';

/** Policies by their hash, as they are kept; one whose bytes are gone is not there. */
export type PolicyByHash = ReadonlyMap<string, Policy>;

/** A recorded verdict beside what the gate makes of the same today. */
export interface Replayed {
  readonly seq: number;
  readonly recorded: RowData<'gate.decided'>;
  readonly decision: GateDecision;
  /** Whether the digests are equal. */
  readonly same: boolean;
}

/** The gate by kind of run: of a pull request, or of a merge group (GAT-5). */
export function gateOf(isGroup: boolean): typeof decideGate {
  return isGroup ? decideGroup : decideGate;
}

/** The hash of every policy that a verdict of these rows was decided under. */
export function policiesOf(rows: readonly Fact[]): Set<string> {
  const valid = rows.flatMap((row) =>
    row.kind === 'run.policy' && row.data.state === 'valid' && row.data.hash !== null ? [row.data.hash] : [],
  );
  return new Set(valid);
}

/**
 * Decides every recorded verdict of a run again, in order, and answers the state that all rows give. `see`
 * is given each with the state that it was decided on, which goes on changing afterwards.
 */
export function replayRun(
  rows: readonly Fact[],
  isGroup: boolean,
  policies: PolicyByHash,
  see: (replayed: Replayed, state: RunState) => void,
): RunState {
  const state = emptyState();
  /** Ends of blocks that a verdict caused: they stand before it in the chain, and it was decided without them. */
  let caused: Fact[] = [];
  const settle = () => {
    for (const row of caused) foldRow(state, row);
    caused = [];
  };
  for (const row of rows) {
    if (isOfVerdict(row)) {
      if (caused[0] !== undefined && caused[0].at !== row.at) settle();
      caused.push(row);
      continue;
    }
    if (row.kind !== 'gate.decided' || caused[0]?.at !== row.data.now) settle();
    if (row.kind === 'gate.decided') {
      see(decideAgain(row.seq, row.data, state, isGroup, policies), state);
      settle();
    }
    foldRow(state, row);
  }
  settle();
  return state;
}

/** A recorded verdict again, on a state: by the policy that it stands under, the facts recorded, at its time. */
export function decideAgain(
  seq: number,
  recorded: RowData<'gate.decided'>,
  state: RunState,
  isGroup: boolean,
  policies: PolicyByHash,
): Replayed {
  const policy = presentPolicy(state, policies);
  const now = Date.parse(recorded.now);
  const given = policy === null ? null : gatePolicyOf(policy);
  const decision = gateOf(isGroup)(state, given, factsOf(recorded), now);
  return { seq, recorded, decision, same: gateDigest(decision) === recorded.digest };
}

/** The policy that a state stands under; null where none is valid or kept. */
export function presentPolicy(state: RunState, policies: PolicyByHash): Policy | null {
  const hash = state.policy?.state === 'valid' ? state.policy.hash : null;
  return hash === null ? null : (policies.get(hash) ?? null);
}

function isOfVerdict(row: Fact): row is FactOf<'block.ended'> | FactOf<'block.reopened'> {
  return (
    (row.kind === 'block.ended' || row.kind === 'block.reopened') && row.cause.id.startsWith('decide-gate:')
  );
}

/** What every verdict records of its own, beside the reasons (app/domain/gate/record.ts). */
const OWN: ReadonlySet<string> = new Set(['head', 'base_ref', 'open_tickets', 'draft']);

/** The facts that a verdict recorded, as they were given to the gate; it was recorded, so its rows verified. */
export function factsOf(data: RowData<'gate.decided'>): GateFacts {
  const ms = (iso: string | null | undefined) => (iso == null ? null : Date.parse(iso));
  const own = new Map(data.facts.filter(({ code }) => OWN.has(code)).map((fact) => [fact.code, fact]));
  return {
    head: data.head,
    baseRef: data.base_ref,
    headAtMs: ms(own.get('head')?.since) ?? 0,
    draft: own.has('draft'),
    mode: data.mode,
    openTickets: Number(own.get('open_tickets')?.detail ?? 0),
    reasons: data.facts
      .filter(({ code }) => !OWN.has(code))
      .map(({ code, since, until, detail }) => ({
        code,
        sinceMs: ms(since) ?? 0,
        untilMs: ms(until),
        detail: detail ?? null,
      })),
    ledger: null,
  };
}
