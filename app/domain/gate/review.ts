/** Reasons that the file set gives: what is pending, unavailable, unreviewed, unowned, or a person's (GAT-2, BLK-7). */

import { pathKey } from '../path.ts';
import type { Need } from '../people/clear.ts';
import { DEFAULT_PEOPLE } from '../people/rules.ts';
import { type PathStanding, standings } from '../run-state/coverage.ts';
import type { FindingFact, RunState } from '../run-state/state.ts';
import type { Draft, GatePolicy } from './decide.ts';
import { Asking, askPeople, type Clearance, needOf, of } from './person.ts';
import type { ReasonCode } from './reason.ts';
import { askRounds, type HandedOver } from './rounds.ts';
import { refusedUnreviewed } from './unreviewed.ts';

/** When the machine began on this head, and when its time is up, in ms of product time. */
export interface MachineTime {
  readonly startMs: number;
  readonly untilMs: number;
}

/** What the file set gives: reasons, and what people cleared. */
export interface Coverage {
  readonly found: readonly Draft[];
  readonly cleared: readonly Clearance[];
  /** Whether a person took over all that the machine still had to read (POOL-3). */
  readonly relieved: boolean;
}

/** The same with what rounds leave to people (RND-2). */
export type Covered = Coverage & HandedOver;

/** Reasons of the present head's paths and blocks. */
export function coverageReasons(
  state: RunState,
  policy: GatePolicy | null,
  openTickets: number,
  time: MachineTime,
  blocking: readonly FindingFact[],
): Covered {
  const paths = standings(state);
  const asking = new Asking(state, policy?.people ?? DEFAULT_PEOPLE);
  const relieved = askMissing(state, asking, policy, paths, openTickets, time);
  const { found } = asking;
  const keyless = paths.filter((path) => path.standing === 'keyless');
  if (keyless.length > 0)
    found.push({ code: 'coverage_gap', ...of(keyless), detail: 'paths without a review key' });
  askUnreviewed(asking, policy, paths);
  for (const code of ['unowned_change', 'overlap', 'orphan'] as const) {
    const concerned = paths.filter((path) => path.ownership === code);
    if (concerned.length > 0) found.push({ code, ...of(concerned) });
  }
  for (const block of state.blocks.values()) {
    if (block.ended === 'dropped') continue;
    for (const note of block.notes) {
      if (note.code === 'bad_after' || note.code === 'dependency_cycle')
        found.push({ code: note.code, blocks: [block.id], detail: note.detail });
    }
  }
  askPeople(state, asking, paths);
  const over =
    policy === null
      ? { handed: new Set<number>(), settled: new Set<number>() }
      : askRounds(state, asking, policy, paths, blocking);
  return { found, cleared: asking.cleared, relieved, ...over };
}

/**
 * Files that no reviewer read: pending, or ended without a result. Where the policy lets a person answer for
 * them (POOL-3, ADM-2), an act counts for what had ended before it, and after `gate.patience` for all of them.
 * Answers whether a person took over all that was pending.
 */
function askMissing(
  state: RunState,
  asking: Asking,
  policy: GatePolicy | null,
  paths: readonly PathStanding[],
  openTickets: number,
  { startMs, untilMs }: MachineTime,
): boolean {
  const isCleared = (path: PathStanding, code: ReasonCode) => {
    const ended = path.standing === 'unavailable' ? failedSeq(state, path) : null;
    if (ended !== null && asking.isCleared(needOf(code, path, { sinceSeq: ended }))) return true;
    const notBeforeMs = startMs + (policy?.patienceMs ?? 0);
    return asking.isCleared(needOf(code, path, { notBeforeMs }));
  };
  const byPerson = policy?.onUnavailable === 'human';
  const isLeft = (path: PathStanding) => !byPerson || !isCleared(path, 'ticket_unavailable');
  const pending = paths.filter((path) => path.standing === 'pending');
  const waiting = pending.filter(isLeft);
  // a ticket for each file that a person took over is still there and holds nothing
  const open = openTickets - (pending.length - waiting.length);
  if (waiting.length > 0 || open > 0) {
    const count = Math.max(waiting.length, open);
    asking.found.push({ code: 'reviews_pending', ...of(waiting), count, untilMs });
  }
  const unavailable = paths.filter((path) => path.standing === 'unavailable');
  const budget = unavailable.filter(
    (path) => path.why === 'budget' && isLeft(path) && !isCleared(path, 'budget'),
  );
  if (budget.length > 0) {
    const [detail = null] = budget.flatMap((path) => path.detail ?? []);
    asking.found.push({ code: 'budget', ...of(budget), detail });
  }
  const ended = unavailable.filter((path) => path.why !== 'budget' && isLeft(path));
  if (ended.length > 0) {
    const detail = tally(ended.map((path) => path.why));
    asking.found.push({ code: 'ticket_unavailable', ...of(ended), detail });
  }
  return pending.length > 0 && waiting.length === 0 && open <= 0;
}

/** The row of the newest end of a path's key that does not count. */
function failedSeq(state: RunState, { file }: PathStanding): number {
  return (file.key === null ? undefined : state.keys.get(file.key))?.failed?.seq ?? state.seq;
}

function askUnreviewed(asking: Asking, policy: GatePolicy | null, paths: readonly PathStanding[]): void {
  const reviewed = paths.filter((path) => path.standing !== 'unreviewed');
  const skipped = paths.filter((path) => path.standing === 'unreviewed');
  const refused = new Set(
    refusedUnreviewed(
      skipped.map((path) => ({ path: path.file.path, reason: path.why })),
      reviewed.map((path) => path.file.path),
      policy?.allowUnreviewed ?? [],
    ).map((one) => pathKey(one.path)),
  );
  const left = skipped.filter(
    (path) => refused.has(pathKey(path.file.path)) && !asking.isCleared(needOf('unreviewed_files', path)),
  );
  if (left.length > 0) {
    asking.found.push({
      code: 'unreviewed_files',
      paths: left.map((path) => path.file.path),
      detail: tally(left.map((path) => path.why ?? 'no reason')),
    });
  }
  // an empty list never passes: nothing changed, or nothing of what changed is reviewed
  if (reviewed.length > 0) return;
  const whole: Need = {
    code: 'nothing_to_review',
    blocks: [],
    clause: null,
    paths: [],
    sinceSeq: 0,
    notBeforeMs: null,
  };
  if (!asking.isCleared(whole)) asking.found.push({ code: 'nothing_to_review', count: paths.length });
}

/** Causes with their counts, most frequent first: `timeout 3, budget 1`. */
function tally(causes: readonly (string | null)[]): string {
  const counts = new Map<string, number>();
  for (const cause of causes) counts.set(cause ?? 'unknown', (counts.get(cause ?? 'unknown') ?? 0) + 1);
  return [...counts]
    .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
    .map(([cause, n]) => `${cause} ${n}`)
    .join(', ');
}
