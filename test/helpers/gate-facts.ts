/** What the tests of the gate start from: two files, a policy, and nothing that holds them. */
import { decideGate, type GateFacts, type GatePolicy } from '../../app/domain/gate/decide.ts';
import { DEFAULT_PEOPLE } from '../../app/domain/people/rules.ts';
import { foldRows } from '../../app/domain/run-state/fold.ts';
import { decided, FactList, HEAD } from './facts.ts';

/** When these gates are decided. */
export const NOW = Date.parse('2026-11-29T12:00:00.000Z');
/** Milliseconds of an hour. */
export const HOUR = 3_600_000;
/** The gate of a policy that says nothing of its own. */
export const policy: GatePolicy = {
  blockAt: 'high',
  deadlineMs: 6 * HOUR,
  allowUnreviewed: ['generated', 'moved', 'lockfile', 'deleted'],
  people: DEFAULT_PEOPLE,
  patienceMs: HOUR / 2,
  rounds: 3,
  consensus: [],
  verify: new Map(),
  onUnavailable: 'human',
};
/** What a gate is given besides its rows: nothing that holds it. */
export const facts = (more: Partial<GateFacts> = {}): GateFacts => ({
  head: HEAD,
  baseRef: 'main',
  headAtMs: NOW,
  draft: false,
  mode: 'enforce',
  openTickets: 0,
  reasons: [],
  ledger: null,
  ...more,
});
/** An operational reason as the gate is given it. */
export const reason = (code: string, untilMs: number | null = null) => ({
  code,
  sinceMs: NOW,
  untilMs,
  detail: null,
});
/** A file of the block `work`. */
export const a = decided('src/a.ts');
/** A file of the block `other`. */
export const b = decided('src/b.ts', { block: 'other' });

/** Two files, both approved: green. */
export const green = () =>
  new FactList().policy().block('work').block('other').head([a, b]).allow().end(a).end(b);
/** The decision over a list of rows. */
export const judge = (
  list: FactList,
  more: Partial<GateFacts> = {},
  now = NOW,
  with_: GatePolicy | null = policy,
) => decideGate(foldRows(list.rows), with_, facts(more), now);
/** The codes of its reasons. */
export const codes = (list: FactList, more: Partial<GateFacts> = {}) =>
  judge(list, more).reasons.map((one) => one.code);
