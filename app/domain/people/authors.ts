/**
 * Who made what (GAT-6): nobody answers for a change of their own. Pure, from verified rows; where the
 * rows do not say who made something, only people who neither pushed nor opened it stand outside.
 */
import { pathKey, type WirePath } from '../path.ts';
import { presentHead, type RunState } from '../run-state/state.ts';

/** Who has a part in some changes of the present head. */
export interface Authorship {
  /** Account ids that have a part: the pull request's author, authors, committers and pushers. */
  readonly accounts: ReadonlySet<string>;
  /** Whether somebody who maps to no account has one: everybody who ever pushed here then counts among `accounts`. */
  readonly unattributed: boolean;
  /** Whether the rows say it at all; where not, nobody is known to stand outside. */
  readonly known: boolean;
}

/** GitHub's own account: what its pages commit, a person pressed (facts/github.md §16). */
export const WEB_FLOW = '19864447';

/** Who has a part in what the present head changes at these paths; an empty list means all of its paths. */
export function authorsOf(state: RunState, paths: readonly WirePath[]): Authorship {
  const accounts = new Set<string>();
  const opener = state.opened?.author?.id;
  if (opener !== undefined) accounts.add(opener);
  const head = presentHead(state);
  const { people } = state;
  const known =
    people?.complete === true && people.head === head?.head && people.mergeBase === head.merge_base;
  let unattributed = !known || opener === undefined;
  const keys = paths.length === 0 ? [...state.files.keys()] : paths.map(pathKey);
  // an empty change has makers all the same
  if (keys.length === 0) unattributed = true;
  // pairs share their history: who made the old path has a part in the new one
  const olds = keys.flatMap((key) => state.files.get(key)?.from ?? []).map(pathKey);
  for (const key of [...keys, ...olds]) {
    const group = people?.byPath.get(key) ?? people?.rest ?? null;
    if (group === null) {
      unattributed = true;
      continue;
    }
    for (const account of group.accounts) accounts.add(account);
    if (group.unattributed || group.accounts.length === 0) unattributed = true;
    for (const arrived of group.heads) {
      const pushers = pushersOf(state, arrived);
      if (pushers.length === 0) unattributed = true;
      for (const pusher of pushers) accounts.add(pusher);
    }
  }
  if (unattributed)
    for (const pushers of state.pushers.values()) for (const one of pushers) accounts.add(one);
  return { accounts, unattributed, known };
}

/** Whether an account has no part in what the present head changes at these paths. */
export function standsOutside(state: RunState, paths: readonly WirePath[], account: string): boolean {
  const { accounts, known } = authorsOf(state, paths);
  return known && !accounts.has(account);
}

/** Who pushed the commits that came with a head: also the heads between, which were never read. */
function pushersOf(state: RunState, head: string): string[] {
  const found = new Set<string>(state.pushers.get(head) ?? []);
  for (const [pushed, pushers] of state.pushers) {
    if (state.arrivals.get(pushed) !== head) continue;
    for (const pusher of pushers) found.add(pusher);
  }
  return [...found];
}
