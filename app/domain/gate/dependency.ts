/**
 * What waits for another block (BLK-5, LSE-1): `dependency_open` has the class of what holds that one
 * (GAT-2), over any number of blocks between. What waits is under no review, so it is not pending.
 */
import { dependentsOf, waitingBlocks } from '../block/dependency.ts';
import { pathKey } from '../path.ts';
import { standings } from '../run-state/coverage.ts';
import type { BlockFact, RunState } from '../run-state/state.ts';
import { CLASSES, type GateReason, sortReasons } from './reason.ts';

/** Where a block stands (BLK-5) by the reasons of a verdict; `dropped` ones are left out. */
export type LiveStatus = 'open' | 'waiting' | 'awaiting_human_check' | 'passed' | 'failed';

/**
 * The reasons with what waiting makes of them. `own` are all others; `openTickets` are those that
 * wait or are being worked beside the paths that still have no result.
 */
export function withDependencies(
  state: RunState,
  own: readonly GateReason[],
  openTickets: number,
): GateReason[] {
  const blocks = liveBlocks(state);
  if (blocks.every((block) => block.after.length === 0)) return [...own];
  const held = new Set(own.flatMap((reason) => [...reasonBlocks(state, reason)]));
  const waiting = waitingBlocks(blocks, (id) => !held.has(id));
  if (waiting.size === 0) return [...own];
  const moving = own.flatMap((reason) => withoutWaiting(state, reason, waiting, openTickets));
  const open = dependencyReasons(state, blocks, moving);
  const said = new Set(open.flatMap((reason) => reason.blocks));
  // rows of before circles were named: what nothing is said of stays pending
  if ([...waiting].some((id) => !said.has(id))) return [...own, ...dependencyReasons(state, blocks, own)];
  return [...moving, ...open];
}

/**
 * The status of each block of the present head (BLK-5), from the reasons of its verdict. One that owns
 * nothing has no verdict: it stays `open` unless it waits.
 */
export function blockStatuses(
  state: RunState,
  reasons: readonly GateReason[],
): ReadonlyMap<string, LiveStatus> {
  const blocks = liveBlocks(state);
  const worst = worstReasons(
    state,
    reasons.filter((reason) => reason.code !== 'dependency_open'),
  );
  const owners = new Set<string>();
  const pending = new Set<string>();
  for (const { block, standing } of standings(state)) {
    owners.add(block);
    if (standing === 'pending') pending.add(block);
  }
  const given = new Set(
    reasons
      .filter((reason) => reason.code === 'ticket_unavailable' || reason.past)
      .flatMap((reason) => reason.blocks),
  );
  const waiting = waitingBlocks(blocks, (id) => !worst.has(id) && !pending.has(id));
  return new Map(
    blocks.map(({ id }): [string, LiveStatus] => {
      if (waiting.has(id)) return [id, 'waiting'];
      const reason = worst.get(id);
      if (!owners.has(id)) return [id, 'open'];
      if (pending.has(id) && !given.has(id)) return [id, 'open'];
      if (reason === undefined) return [id, pending.has(id) ? 'open' : 'passed'];
      if (reason.class === 'person') return [id, 'awaiting_human_check'];
      if (reason.class === 'machine' && !reason.past) return [id, 'open'];
      return [id, reason.class === 'held' ? 'open' : 'failed'];
    }),
  );
}

function liveBlocks(state: RunState): BlockFact[] {
  return [...state.blocks.values()].filter((block) => block.ended !== 'dropped');
}

/** A reason without the pending paths of blocks that wait; none where nothing of it is left. */
function withoutWaiting(
  state: RunState,
  reason: GateReason,
  waiting: ReadonlySet<string>,
  openTickets: number,
): GateReason[] {
  if (reason.code !== 'reviews_pending') return [reason];
  const waits = new Set(
    standings(state).flatMap((one) => (waiting.has(one.block) ? [pathKey(one.file.path)] : [])),
  );
  const paths = reason.paths.filter((path) => !waits.has(pathKey(path)));
  const count = Math.max(paths.length, openTickets);
  if (reason.paths.length === 0 || count === 0) return reason.paths.length === 0 ? [reason] : [];
  return [{ ...reason, paths, blocks: reason.blocks.filter((block) => !waiting.has(block)), count }];
}

/** A reason per class. The worst comes first, so each block waits for the worst of what it waits for. */
function dependencyReasons(
  state: RunState,
  blocks: readonly BlockFact[],
  moving: readonly GateReason[],
): GateReason[] {
  const behind = dependentsOf(blocks);
  const worst = worstReasons(state, moving);
  const holds = new Map<string, { readonly reason: GateReason; readonly through: string }>();
  for (const name of CLASSES) {
    const queue = [...worst].flatMap(([id, reason]) => (reason.class === name ? [{ id, reason }] : []));
    for (const { id, reason } of queue) {
      for (const next of behind.get(id) ?? []) {
        if (holds.has(next)) continue;
        holds.set(next, { reason, through: id });
        queue.push({ id: next, reason });
      }
    }
  }
  const found = new Map<string, GateReason>();
  for (const { id } of blocks) {
    const hold = holds.get(id);
    if (hold === undefined) continue;
    const { reason, through } = hold;
    const known = found.get(reason.class);
    const ids = [...(known?.blocks ?? []), id].sort();
    found.set(reason.class, {
      code: 'dependency_open',
      class: reason.class,
      blocks: ids,
      paths: [],
      findings: [],
      count: ids.length,
      detail: known?.detail ?? `${id} waits for ${through}`,
      untilMs: reason.untilMs,
      past: reason.past,
    });
  }
  return [...found.values()];
}

/** By block, the first that decides of the reasons that concern it. */
function worstReasons(state: RunState, reasons: readonly GateReason[]): Map<string, GateReason> {
  const worst = new Map<string, GateReason>();
  for (const reason of sortReasons(reasons)) {
    for (const block of reasonBlocks(state, reason)) {
      const known = worst.get(block);
      if (known === undefined || CLASSES.indexOf(reason.class) < CLASSES.indexOf(known.class))
        worst.set(block, reason);
    }
  }
  return worst;
}

/** The blocks a reason concerns; a finding concerns the block its path belongs to. */
function reasonBlocks(state: RunState, reason: GateReason): ReadonlySet<string> {
  const blocks = new Set(reason.blocks);
  for (const number of reason.findings) {
    const finding = state.findings.get(number);
    const file = finding === undefined ? undefined : state.files.get(pathKey(finding.path));
    if (file !== undefined) blocks.add(file.block);
  }
  return blocks;
}
