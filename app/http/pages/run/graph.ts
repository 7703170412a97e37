/** Where blocks and paths stand in the graph of a run: computed here, drawn in graph-figure.tsx. */
import type { BlockView, PathView } from '../../../flow/read-run.ts';

/** A block's box. */
export interface BlockBox {
  readonly block: BlockView;
  readonly y: number;
  readonly height: number;
  /** Paths of it that are not drawn. */
  readonly more: number;
}

/** A path's line. */
export interface PathBox {
  readonly path: PathView;
  /** Index of its block's box. */
  readonly box: number;
  readonly y: number;
}

/** The graph; all lengths in units of its view box. */
export interface Graph {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly BlockBox[];
  readonly paths: readonly PathBox[];
  /** Lines from the block that waits to the one it waits for. */
  readonly after: readonly { readonly from: number; readonly to: number }[];
  /** Blocks that are not drawn. */
  readonly more: number;
}

/** Left edge and width of boxes, left edge of paths, and the heights of lines. */
export const GRAPH = { width: 960, box: 64, boxWidth: 300, path: 460, line: 26, least: 58, gap: 18 } as const;

const MOST_BLOCKS = 16;
const MOST_PATHS = 48;

/** Lays the graph out: a box a block, its paths beside it, dependencies at the left. Paths share what room there is. */
export function layGraph(blocks: readonly BlockView[], paths: readonly PathView[]): Graph {
  const drawn = blocks.slice(0, MOST_BLOCKS);
  const by = new Map<string, PathView[]>();
  for (const path of paths) by.set(path.block, [...(by.get(path.block) ?? []), path]);
  const shown = shares(
    drawn.map((block) => by.get(block.id)?.length ?? 0),
    MOST_PATHS,
  );
  const boxes: BlockBox[] = [];
  const lines: PathBox[] = [];
  let y = 6;
  for (const [index, block] of drawn.entries()) {
    const own = by.get(block.id) ?? [];
    const room = shown[index] ?? 0;
    const more = Math.max(block.files, own.length) - room;
    const rows = room + (more > 0 ? 1 : 0);
    const height = Math.max(GRAPH.least, rows * GRAPH.line);
    const top = y + (height - rows * GRAPH.line) / 2;
    for (const [at, path] of own.slice(0, room).entries())
      lines.push({ path, box: index, y: top + (at + 0.5) * GRAPH.line });
    boxes.push({ block, y, height, more });
    y += height + GRAPH.gap;
  }
  const place = new Map(drawn.map((block, index) => [block.id, index]));
  const after = drawn.flatMap((block, from) =>
    block.after.flatMap((id) => {
      const to = place.get(id);
      return to === undefined || to === from ? [] : [{ from, to }];
    }),
  );
  return {
    width: GRAPH.width,
    height: Math.max(GRAPH.least, y - GRAPH.gap + 6),
    boxes,
    paths: lines,
    after,
    more: blocks.length - drawn.length,
  };
}

/** Divides `most` places fairly: nobody gets more than they want, and small wants are met whole first. */
export function shares(wants: readonly number[], most: number): number[] {
  const given = wants.map(() => 0);
  let left = most;
  const order = wants.map((_, index) => index).sort((a, b) => (wants[a] ?? 0) - (wants[b] ?? 0));
  for (const [done, index] of order.entries()) {
    const fair = Math.floor(left / (order.length - done));
    const got = Math.min(wants[index] ?? 0, fair);
    given[index] = got;
    left -= got;
  }
  return given;
}
