/** `dependency_open`: a block waits for another; it has the class of what holds that one (GAT-2). */
import { pathKey } from '../path.ts';
import type { RunState } from '../run-state/state.ts';
import { CLASSES, type GateReason } from './reason.ts';

/** A reason per class for the blocks whose dependencies are held by reasons that name them. */
export function dependencyReasons(state: RunState, reasons: readonly GateReason[]): GateReason[] {
  const worst = new Map<string, GateReason>();
  for (const reason of reasons) {
    for (const block of reasonBlocks(state, reason)) {
      const known = worst.get(block);
      if (known === undefined || CLASSES.indexOf(reason.class) < CLASSES.indexOf(known.class))
        worst.set(block, reason);
    }
  }
  const found = new Map<string, GateReason>();
  for (const block of state.blocks.values()) {
    if (block.ended === 'dropped') continue;
    for (const dependency of block.after) {
      const held = worst.get(dependency);
      if (held === undefined) continue;
      const known = found.get(held.class);
      const blocks = [...new Set([...(known?.blocks ?? []), block.id])].sort();
      found.set(held.class, {
        code: 'dependency_open',
        class: held.class,
        blocks,
        paths: [],
        findings: [],
        count: blocks.length,
        detail: known?.detail ?? `${block.id} waits for ${dependency}`,
        untilMs: held.untilMs,
        past: held.past,
      });
    }
  }
  return [...found.values()];
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
