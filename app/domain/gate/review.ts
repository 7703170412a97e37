/** Reasons that the file set gives: what is pending, unavailable, unreviewed, unowned, or a person's (GAT-2, BLK-7). */
import { type PathStanding, standings } from '../run-state/coverage.ts';
import { type ActFact, presentHead, type RunState } from '../run-state/state.ts';
import type { Draft, GatePolicy } from './decide.ts';
import type { ReasonCode } from './reason.ts';
import { refusedUnreviewed } from './unreviewed.ts';

/** Reasons of the present head's paths and blocks; `untilMs` is when the machine's time is up. */
export function coverageReasons(
  state: RunState,
  policy: GatePolicy | null,
  openTickets: number,
  untilMs: number,
): Draft[] {
  const paths = standings(state);
  const found: Draft[] = [];
  const pending = paths.filter((path) => path.standing === 'pending');
  if (pending.length > 0 || openTickets > 0) {
    found.push({
      code: 'reviews_pending',
      ...of(pending),
      count: Math.max(pending.length, openTickets),
      untilMs,
    });
  }
  const budget = paths.filter((path) => path.standing === 'unavailable' && path.why === 'budget');
  if (budget.length > 0 && !approved(state, 'budget')) found.push({ code: 'budget', ...of(budget) });
  const ended = paths.filter((path) => path.standing === 'unavailable' && path.why !== 'budget');
  if (ended.length > 0)
    found.push({ code: 'ticket_unavailable', ...of(ended), detail: tally(ended.map((path) => path.why)) });
  const keyless = paths.filter((path) => path.standing === 'keyless');
  if (keyless.length > 0)
    found.push({ code: 'coverage_gap', ...of(keyless), detail: 'paths without a review key' });
  found.push(...unreviewed(state, policy, paths), ...ownership(state, paths), ...people(state));
  return found;
}

function unreviewed(state: RunState, policy: GatePolicy | null, paths: readonly PathStanding[]): Draft[] {
  const reviewed = paths.filter((path) => path.standing !== 'unreviewed');
  const skipped = paths.filter((path) => path.standing === 'unreviewed');
  const refused = refusedUnreviewed(
    skipped.map((path) => ({ path: path.file.path, reason: path.why })),
    reviewed.map((path) => path.file.path),
    policy?.allowUnreviewed ?? [],
  );
  const found: Draft[] = [];
  if (refused.length > 0 && !approved(state, 'unreviewed_files')) {
    found.push({
      code: 'unreviewed_files',
      paths: refused.map((path) => path.path),
      detail: tally(refused.map((path) => path.reason ?? 'no reason')),
    });
  }
  // an empty list never passes: nothing changed, or nothing of what changed is reviewed
  if (reviewed.length === 0 && !approved(state, 'nothing_to_review'))
    found.push({ code: 'nothing_to_review', count: paths.length });
  return found;
}

function ownership(state: RunState, paths: readonly PathStanding[]): Draft[] {
  const found: Draft[] = [];
  for (const code of ['unowned_change', 'overlap', 'orphan', 'guarded'] as const) {
    const concerned = paths.filter((path) => path.ownership === code);
    if (concerned.length === 0) continue;
    if (code === 'guarded' && approved(state, 'guarded', ['maintain', 'admin'])) continue;
    found.push({ code, ...of(concerned) });
  }
  return found;
}

function people(state: RunState): Draft[] {
  const found: Draft[] = [];
  for (const block of state.blocks.values()) {
    if (block.ended === 'dropped') continue;
    for (const note of block.notes) {
      if (note.code === 'bad_after' || note.code === 'dependency_cycle')
        found.push({ code: note.code, blocks: [block.id], detail: note.detail });
    }
    if (block.acceptHuman.length > 0 && !approved(state, 'human_check') && !approved(state, block.id))
      found.push({ code: 'human_check', blocks: [block.id] });
  }
  const wanted = new Map([...state.files.values()].flatMap((file) => (file.key ? [[file.key, file]] : [])));
  for (const { ticket, seq } of state.conflicts) {
    const key = state.ticketKeys.get(ticket);
    const file = key === undefined ? undefined : wanted.get(key);
    const again = key === undefined ? null : (state.keys.get(key)?.countedSeq ?? null);
    if (file === undefined || (again !== null && again > seq) || approved(state, 'conflict')) continue;
    found.push({ code: 'conflict', blocks: [file.block], paths: [file.path] });
  }
  const broken = state.ruleBreaks.flatMap(({ ticket, detail }) => {
    const file = wanted.get(state.ticketKeys.get(ticket) ?? '');
    return file === undefined ? [] : [{ file, detail }];
  });
  if (broken.length > 0 && !approved(state, 'rule_break')) {
    const files = [...new Set(broken.map(({ file }) => file))];
    found.push({
      code: 'rule_break',
      blocks: files.map((file) => file.block),
      paths: files.map((file) => file.path),
      count: broken.length,
      detail: broken[0]?.detail ?? null,
    });
  }
  return found;
}

/** Whether a person cleared a reason on the present head: an approval or a review that stands (GAT-6). */
function approved(state: RunState, clause: ReasonCode | string, permissions?: readonly string[]): boolean {
  const head = presentHead(state)?.head;
  return state.acts.some((act: ActFact) => {
    if (act.revoked || act.head !== head) return false;
    if (permissions !== undefined && !permissions.includes(act.permission)) return false;
    if (act.act === 'review') return clause === 'human_check';
    return act.act === 'approve' && act.clause === clause;
  });
}

function of(paths: readonly PathStanding[]): Pick<Draft, 'blocks' | 'paths'> {
  return { blocks: paths.map((path) => path.block), paths: paths.map((path) => path.file.path) };
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
