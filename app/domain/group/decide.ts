/**
 * The gate of a merge group (GAT-5): rows → verdict. Pure, with the types and reasons of the gate of a
 * pull request. A group has no blocks, owners or rounds; people's acts are its members'. It is green when
 * each member is, under the policy at the group's base, and each path is known or reviewed.
 */
import {
  conclude,
  type Draft,
  type GateDecision,
  type GateFacts,
  type GatePolicy,
  merge,
  operational,
  policyReasons,
} from '../gate/decide.ts';
import { REASONS, sortReasons } from '../gate/reason.ts';
import { refusedUnreviewed } from '../gate/unreviewed.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import { pathKey } from '../path.ts';
import { blockingFindings, gaps, type PathStanding, standings } from '../run-state/coverage.ts';
import { type GroupFact, presentHead, type RunState } from '../run-state/state.ts';
import { groupDeadlineMs } from './deadline.ts';

/** Decides a merge group. `policy` is the one at its base, null where none is valid or known; `now` is product time in ms. */
export function decideGroup(
  state: RunState,
  policy: GatePolicy | null,
  facts: GateFacts,
  now: number,
): GateDecision {
  const head = presentHead(state);
  const { group } = state;
  const read = facts.ledger === null && head?.head === facts.head && group !== null ? group : null;
  const deadlineMs = groupDeadlineMs(group?.read.timeout_ms ?? null);
  const untilMs = facts.headAtMs + deadlineMs;
  const blocking =
    facts.ledger === null ? blockingFindings(state, policy?.blockAt ?? 'high', policy?.consensus) : [];
  const found: Draft[] = facts.reasons
    .flatMap((reason) => operational(reason, deadlineMs))
    // one deadline for all: the queue does not wait for a provider or for git longer than for us
    .map((draft) =>
      draft.untilMs == null ? draft : { ...draft, untilMs: Math.min(draft.untilMs, untilMs) },
    );
  const paths = read === null ? [] : pathsOf(state, read);
  if (facts.ledger !== null) {
    found.push({ code: facts.ledger.code, detail: facts.ledger.detail });
  } else {
    found.push(...policyReasons(state, policy, read !== null));
    if (read === null) found.push({ code: 'reviews_pending', detail: 'reading the merge group', untilMs });
    else {
      found.push(...members(state, read, untilMs));
      found.push(...unknown(paths, policy, facts.openTickets, untilMs));
      const missing = gaps(state);
      if (missing.length > 0)
        found.push({ code: 'coverage_gap', count: missing.length, detail: missing[0] ?? null });
    }
    if (blocking.length > 0)
      found.push({ code: 'open_findings', findings: blocking.map((finding) => finding.number) });
  }
  const reasons = sortReasons(merge(found, now));
  const waits = reasons.flatMap((reason) => (reason.past ? [] : (reason.untilMs ?? [])));
  return {
    head: facts.head,
    mode: state.policy?.mode ?? facts.mode,
    conclusion: conclude(reasons),
    reasons,
    next: reasons.map((reason) => ({
      code: reason.code,
      what: REASONS[reason.code].clears,
      who: REASONS[reason.code].who,
      untilMs: reason.untilMs,
    })),
    blocking: blocking.map((finding) => finding.number),
    counts: {
      files: paths.length,
      counted: paths.filter((path) => path.known || path.standing === 'counted').length,
      unreviewed: paths.filter((path) => !path.known && path.standing === 'unreviewed').length,
    },
    dueAtMs: waits.length === 0 ? null : Math.min(...waits),
  };
}

/** A path of the group: known without a review of its own, or as its own review stands. */
type GroupPath = PathStanding & { readonly known: boolean };

function pathsOf(state: RunState, group: GroupFact): GroupPath[] {
  return standings(state).map((path) => ({
    ...path,
    known: group.known.has(pathKey(path.file.path)),
  }));
}

/** A member that is decided against fails the group; one that is not decided yet, or under another policy, is waited for. */
function members(state: RunState, group: GroupFact, untilMs: number): Draft[] {
  if (!group.read.listed) return [];
  const found: Draft[] = [];
  const list = [...group.members.values()].sort((a, b) => a.position - b.position);
  if (list.length !== group.read.members || list.length === 0)
    found.push({ code: 'coverage_gap', detail: `${list.length} of ${group.read.members} members recorded` });
  for (const member of list) {
    const why = standingOf(member, state.policy?.hash ?? null);
    if (why === null) continue;
    const detail = `#${member.pull}: ${why.detail}`;
    found.push(
      why.kind === 'waits'
        ? { code: 'dependency_open', class: 'machine', detail, untilMs }
        : { code: 'dependency_open', class: 'wrong', detail },
    );
  }
  // one reason a code, the worst class first: a red member is not hidden by one that is waited for
  const wrong = found.filter((draft) => draft.class === 'wrong' || draft.code === 'coverage_gap');
  return wrong.some((draft) => draft.code === 'dependency_open') ? wrong : found;
}

type Waiting = { readonly kind: 'waits' | 'red'; readonly detail: string };

/** Why a member holds the group; null: it does not. */
function standingOf(member: RowData<'group.member'>, policy: string | null): Waiting | null {
  const { run, conclusion, reasons } = member;
  if (run === null) return { kind: 'waits', detail: 'no run of it is known' };
  if (conclusion === null) return { kind: 'waits', detail: 'not decided on the head that was queued' };
  if (conclusion === 'queued' || conclusion === 'in_progress')
    return { kind: 'waits', detail: `undecided (${reasons.join(', ')})` };
  // a verdict under another policy says nothing under this one, neither yes nor no
  const other = member.policy !== policy && (member.policy !== null || conclusion === 'success');
  if (other) return { kind: 'waits', detail: 'decided under another policy' };
  if (conclusion === 'success') return null;
  return { kind: 'red', detail: reasons.join(', ') || conclusion };
}

/** What the paths that are not known need: a review that counts, or the policy's leave to stay unreviewed. */
function unknown(
  paths: readonly GroupPath[],
  policy: GatePolicy | null,
  openTickets: number,
  untilMs: number,
): Draft[] {
  const found: Draft[] = [];
  const open = paths.filter((path) => !path.known);
  const pending = open.filter((path) => path.standing === 'pending');
  if (pending.length > 0 || openTickets > 0)
    found.push({
      code: 'reviews_pending',
      ...of(pending),
      count: Math.max(pending.length, openTickets),
      detail: 'content that no pull request of the group has',
      untilMs,
    });
  const ended = open.filter((path) => path.standing === 'unavailable');
  if (ended.length > 0)
    found.push({ code: 'ticket_unavailable', ...of(ended), detail: ended[0]?.why ?? null });
  const keyless = open.filter((path) => path.standing === 'keyless');
  if (keyless.length > 0)
    found.push({ code: 'coverage_gap', ...of(keyless), detail: 'paths without a review key' });
  const refused = refusedUnreviewed(
    open
      .filter((path) => path.standing === 'unreviewed')
      .map((path) => ({ path: path.file.path, reason: path.why })),
    paths.filter((path) => path.known || path.standing !== 'unreviewed').map((path) => path.file.path),
    policy?.allowUnreviewed ?? [],
  );
  if (refused.length > 0)
    found.push({
      code: 'unreviewed_files',
      paths: refused.map((path) => path.path),
      detail: refused[0]?.reason ?? null,
    });
  // nobody approved a guarded path with this content, and nobody can approve in a queue
  const guarded = open.filter((path) => path.ownership === 'guarded');
  if (guarded.length > 0) found.push({ code: 'guarded', ...of(guarded) });
  return found;
}

function of(paths: readonly GroupPath[]): Pick<Draft, 'paths'> {
  return { paths: paths.map((path) => path.file.path) };
}
