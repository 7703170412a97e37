/** Which tickets a head would ask for, and what they would cost in sessions: one a file and reviewer (TKT-1, REV-1). */
import type { DecidedPath } from '../ledger/row-fields.ts';
import type { Policy } from '../policy.ts';
import type { Treatment } from '../preview.ts';
import type { RunState } from '../run-state/state.ts';

/** Where a file's ticket would end up; `nobody`: no reviewer reads it, and its ticket ends `route_invalid`. */
export type TicketFate = 'open' | 'reviewed' | 'elsewhere' | 'failed' | 'nobody' | 'none';

/** What is known of the files, in one order. */
export interface TicketInput {
  readonly policy: Policy;
  readonly files: readonly DecidedPath[];
  readonly treatments: readonly Treatment[];
  /** What the run's rows say of review keys. */
  readonly keys: RunState['keys'];
  /** Keys that other runs of the repository were reviewed with (TKT-4). */
  readonly elsewhere: ReadonlySet<string>;
}

/** The tickets of a head. */
export interface TicketPlan {
  /** In the order of the files. */
  readonly fates: readonly TicketFate[];
  readonly counts: Readonly<Record<TicketFate, number>>;
  /** Sessions that the open ones would take when each is done at once: no retries, fallbacks or rounds. */
  readonly sessions: {
    readonly models: number;
    readonly commands: number;
    readonly byReviewer: Readonly<Record<string, number>>;
  };
}

/** Plans them. */
export function planTickets({ policy, files, treatments, keys, elsewhere }: TicketInput): TicketPlan {
  const counts = { open: 0, reviewed: 0, elsewhere: 0, failed: 0, nobody: 0, none: 0 };
  const byReviewer = new Map<string, number>();
  let models = 0;
  let commands = 0;
  const fates = files.map(({ key }, i): TicketFate => {
    const reviewers = treatments[i]?.reviewers ?? [];
    const fate = fateOf(key, reviewers, keys, elsewhere);
    counts[fate] += 1;
    if (fate !== 'open') return fate;
    for (const name of reviewers) {
      byReviewer.set(name, (byReviewer.get(name) ?? 0) + 1);
      if (policy.reviewers.get(name)?.uses === 'command') commands += 1;
      else models += 1;
    }
    return fate;
  });
  return { fates, counts, sessions: { models, commands, byReviewer: Object.fromEntries(byReviewer) } };
}

function fateOf(
  key: string | null,
  reviewers: readonly string[],
  keys: RunState['keys'],
  elsewhere: ReadonlySet<string>,
): TicketFate {
  if (key === null) return 'none';
  const known = keys.get(key);
  if (known?.counted === true) return 'reviewed';
  if (known?.failed?.final === true) return 'failed';
  if (elsewhere.has(key)) return 'elsewhere';
  return reviewers.length === 0 ? 'nobody' : 'open';
}
