/** What needs a person on the present head, and which of it a person cleared (GAT-2, GAT-6, OWN-8). */

import { pathKey, type WirePath } from '../path.ts';
import { clauseName, clearing, type Need, objections } from '../people/clear.ts';
import type { PeopleRules } from '../people/rules.ts';
import type { PathStanding } from '../run-state/coverage.ts';
import type { RunState } from '../run-state/state.ts';
import { calledNeeds, type HumanNeed } from './call.ts';
import type { Draft } from './decide.ts';
import type { ReasonCode } from './reason.ts';

/** What an act of a person cleared: the reason's code and the act's row. */
export interface Clearance {
  readonly code: ReasonCode;
  readonly seq: number;
}

/** Sorts what is asked of people into what still holds and what was cleared. */
export class Asking {
  readonly found: Draft[] = [];
  readonly #cleared = new Map<string, Clearance>();
  readonly #state: RunState;
  readonly #rules: PeopleRules;

  constructor(state: RunState, rules: PeopleRules) {
    this.#state = state;
    this.#rules = rules;
  }

  /** Whether a person cleared this; kept if so. */
  isCleared(need: Need): boolean {
    const act = clearing(this.#state, this.#rules, need);
    if (act === null) return false;
    this.#cleared.set(`${need.code} ${act.seq}`, { code: need.code, seq: act.seq });
    return true;
  }

  /** What was cleared, by code and act. */
  get cleared(): readonly Clearance[] {
    return [...this.#cleared.values()];
  }
}

/** A need of one path of a block. */
export function needOf(code: ReasonCode, path: PathStanding, more: Partial<Need> = {}): Need {
  return {
    code,
    blocks: [path.block],
    clause: null,
    paths: [path.file.path],
    sinceSeq: 0,
    notBeforeMs: null,
    ...more,
  };
}

/** Asks for what only people decide: guarded paths, clauses and routes, calls of reviewers, rule breaks, conflicts. */
export function askPeople(state: RunState, asking: Asking, paths: readonly PathStanding[]): void {
  askGuarded(asking, paths);
  askHumans(state, asking, paths);
  const wanted = wantedPaths(paths);
  askConflicts(state, asking, wanted);
  askRuleBreaks(state, asking, paths, wanted);
}

/** Guarded paths belong to no block, and need maintain (OWN-8). */
export function askGuarded(asking: Asking, paths: readonly PathStanding[]): void {
  const guarded = paths.filter((path) => path.ownership === 'guarded');
  const left = guarded.filter(
    (path) => !asking.isCleared(needOf('guarded', path, { sinceSeq: path.file.guardedSince ?? 0 })),
  );
  if (left.length > 0) asking.found.push({ code: 'guarded', ...of(left) });
}

/** Every need of `human_check`: clauses, paths whose route asks for a person, and what reviewers call one for. */
export function humanNeeds(state: RunState, paths: readonly PathStanding[]): HumanNeed[] {
  const needs: HumanNeed[] = [];
  const asking = [...state.blocks.values()].filter(
    (one) => one.ended !== 'dropped' && one.acceptHuman.length > 0,
  );
  // one pass: 300 blocks times 4,000 paths are a million looks for every verdict
  const pathsOf = new Map<string, WirePath[]>(asking.map(({ id }) => [id, []]));
  for (const path of paths) pathsOf.get(path.block)?.push(path.file.path);
  for (const block of asking) {
    const own = pathsOf.get(block.id) ?? [];
    block.acceptHuman.forEach((text, index) => {
      needs.push({
        code: 'human_check',
        blocks: [block.id],
        clause: clauseName(block.id, text),
        paths: own,
        sinceSeq: 0,
        notBeforeMs: null,
        why: 'clause',
        name: `${block.id}/${index + 1}`,
      });
    });
  }
  for (const path of paths)
    if (path.file.human === true)
      needs.push({ ...needOf('human_check', path), why: 'route', name: path.block });
  return [...needs, ...calledNeeds(state, paths)];
}

function askHumans(state: RunState, asking: Asking, paths: readonly PathStanding[]): void {
  const left = humanNeeds(state, paths).filter((need) => !asking.isCleared(need));
  if (left.length === 0) return;
  const namesOf = (why: HumanNeed['why']) => left.flatMap((need) => (need.why === why ? [need.name] : []));
  const [clauses, unconfirmed, calls] = [namesOf('clause'), namesOf('unconfirmed'), namesOf('call')];
  const routed = left.filter((need) => need.clause === null).flatMap((need) => need.paths);
  const parts = [
    ...(objections(state).length > 0 ? ['a review asks for changes'] : []),
    ...(clauses.length > 0 ? [`clause ${clauses.join(', ')}`] : []),
    ...(unconfirmed.length > 0 ? [`no reviewer confirms clause ${unconfirmed.join(', ')}`] : []),
    ...(namesOf('route').length > 0 ? ['a route asks for a person'] : []),
    ...(calls.length > 0 ? [[...new Set(calls)].join(', ')] : []),
  ];
  asking.found.push({
    code: 'human_check',
    blocks: left.flatMap((need) => need.blocks),
    paths: routed,
    count: left.length,
    detail: parts.join('; '),
  });
}

function askConflicts(state: RunState, asking: Asking, wanted: WantedPaths): void {
  for (const { ticket, seq } of state.conflicts) {
    const key = state.ticketKeys.get(ticket);
    const path = key === undefined ? undefined : wanted.get(key);
    const again = key === undefined ? null : (state.keys.get(key)?.countedSeq ?? null);
    if (path === undefined || (again !== null && again > seq)) continue;
    if (!asking.isCleared(needOf('conflict', path, { sinceSeq: seq })))
      asking.found.push({ code: 'conflict', ...of([path]) });
  }
}

/**
 * A break holds until a person acknowledges it (REV-7): no push and no other reviewer lifts it while its path
 * is in the change. Who looked at it when its content was the present one has looked at it for good.
 */
function askRuleBreaks(
  state: RunState,
  asking: Asking,
  paths: readonly PathStanding[],
  wanted: WantedPaths,
): void {
  const present = new Map(paths.map((path) => [pathKey(path.file.path), path]));
  const left = state.ruleBreaks.flatMap(({ ticket, detail, seq }) => {
    const key = state.ticketKeys.get(ticket) ?? '';
    const now = wanted.get(key);
    const of = state.keys.get(key)?.path;
    const path = now ?? (of === undefined ? undefined : present.get(pathKey(of)));
    const need = path && needOf('rule_break', path, { sinceSeq: seq, anyHead: now === undefined });
    if (path === undefined || need === undefined || asking.isCleared(need)) return [];
    return [{ path, detail }];
  });
  if (left.length === 0) return;
  asking.found.push({
    code: 'rule_break',
    ...of([...new Set(left.map(({ path }) => path))]),
    count: left.length,
    detail: left[0]?.detail ?? null,
  });
}

/** Present paths by the review key that a result must have to count for them. */
type WantedPaths = ReadonlyMap<string, PathStanding>;

function wantedPaths(paths: readonly PathStanding[]): WantedPaths {
  return new Map(paths.flatMap((path) => (path.file.key === null ? [] : [[path.file.key, path] as const])));
}

/** The blocks and paths of a reason. */
export function of(paths: readonly PathStanding[]): Pick<Draft, 'blocks' | 'paths'> {
  return { blocks: paths.map((path) => path.block), paths: paths.map((path) => path.file.path) };
}
