/** What is known of one review key, over all its results (RUN-4, TKT-4). */
import type { RowData } from '../ledger/row-kinds.ts';
import type { WirePath } from '../path.ts';
import type { KeyFact, RunState } from './state.ts';

/** The fact of a key, made when it is first met. */
export function keyFact(state: RunState, key: string, path: WirePath): KeyFact {
  let fact = state.keys.get(key);
  if (fact === undefined) {
    fact = { counted: false, countedSeq: null, failed: null, path, clauses: new Map(), calls: new Map() };
    state.keys.set(key, fact);
  }
  return fact;
}

/** How a review that is not complete is called. */
export function incomplete(data: Pick<RowData<'ticket.ended'>, 'partial' | 'verdict'>): string {
  return data.partial ? 'partial' : (data.verdict ?? 'no_verdict');
}

/** Keeps what a counting result says of clauses and calls. Over results of one key a doubt stays: no rerun is a lottery. */
export function hearKey(
  key: KeyFact,
  seq: number,
  { clauses = [], calls = [] }: Pick<RowData<'ticket.ended'>, 'clauses' | 'calls'>,
): void {
  for (const { clause, status } of clauses)
    if (key.clauses.get(clause) !== 'unmet') key.clauses.set(clause, status);
  for (const code of calls) key.calls.set(code, seq);
}
