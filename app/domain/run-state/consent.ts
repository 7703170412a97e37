/** What a head does to consent that was given before it (RUN-10), and to what people may have seen as guarded (OWN-8). */
import type { DecidedPath } from '../ledger/row-fields.ts';
import type { FileFact, RunState } from './state.ts';

/** `/allow author` holds until a later head touches a guarded path; from then on it is for its own head only. */
export function endConsent(state: RunState, head: string): void {
  const isGuarded = [...state.files.values()].some((file) => file.ownership === 'guarded');
  if (!isGuarded) return;
  state.allowances = state.allowances.map((one) =>
    one.rule === 'person' && one.scope === 'author' && one.head !== head ? { ...one, scope: 'head' } : one,
  );
}

/** The row that made a changed path guarded which was not before, such as by another policy; 0: always was, as far as this run knows it. */
export function guardedSince(before: FileFact | undefined, path: DecidedPath, seq: number): number {
  if (path.ownership !== 'guarded') return 0;
  if (before !== undefined && before.ownership !== 'guarded') return seq;
  return before?.guardedSince ?? 0;
}
