/** Blocks and their paths as a picture. What it shows stands in the tables below it too. */
import type { BlockView, PathView } from '../../../flow/read-run.ts';
import { blockWord, middle, standingWord, type Tone } from '../words.ts';
import { type BlockBox, GRAPH, layGraph } from './graph.ts';

const right = GRAPH.box + GRAPH.boxWidth;

/** The figure. */
export function GraphFigure(props: {
  readonly blocks: readonly BlockView[];
  readonly paths: readonly PathView[];
}) {
  const graph = layGraph(props.blocks, props.paths);
  if (graph.boxes.length === 0) return null;
  return (
    <figure>
      <section class="scroll" tabindex={0} aria-label="Graph of blocks and paths">
        <svg
          class="chart"
          viewBox={`0 0 ${graph.width} ${graph.height}`}
          role="img"
          aria-labelledby="graph-title graph-text"
        >
          <title id="graph-title">Blocks and the paths they own</title>
          <desc id="graph-text">
            {graph.boxes
              .map(
                ({ block }) => `Block ${block.id}, ${blockWord(block.verdict).text}, ${block.files} files.`,
              )
              .join(' ')}
          </desc>
          {graph.after.map(({ from, to }) => (
            <After from={graph.boxes[from]} to={graph.boxes[to]} />
          ))}
          {graph.paths.map(({ path, box, y }) => {
            const of = graph.boxes[box];
            const middleY = of === undefined ? y : of.y + of.height / 2;
            const word = standingWord(path.standing);
            return (
              <g>
                <path
                  class="edge"
                  d={`M${right} ${middleY}C${right + 50} ${middleY} ${GRAPH.path - 60} ${y} ${GRAPH.path - 12} ${y}`}
                />
                <Mark tone={word.tone} x={GRAPH.path} y={y} />
                <text x={GRAPH.path + 16} y={y + 4.5}>
                  {middle(path.path, 56)}
                  <title>{`${path.path}: ${word.text}`}</title>
                </text>
                <text class="faint" x={graph.width - 8} y={y + 4.5} text-anchor="end">
                  {path.level}
                </text>
              </g>
            );
          })}
          {graph.boxes.map((box) => (
            <Box box={box} />
          ))}
        </svg>
      </section>
      {graph.more > 0 ? <p class="soft small">{graph.more} more blocks are in the table only.</p> : null}
    </figure>
  );
}

function Box({ box }: { readonly box: BlockBox }) {
  const { block, y, height, more } = box;
  const word = blockWord(block.verdict);
  const centre = y + height / 2;
  return (
    <g class={word.tone}>
      <rect class="box" x={GRAPH.box} y={y} width={GRAPH.boxWidth} height={height} rx="8" />
      <rect class="mark" x={GRAPH.box} y={y + 8} width="4" height={height - 16} rx="2" />
      <text x={GRAPH.box + 18} y={centre - 5} font-weight="600">
        {middle(block.title ?? block.id, 36)}
        <title>{block.title ?? block.id}</title>
      </text>
      <text class="faint" x={GRAPH.box + 18} y={centre + 15}>
        {`${word.text} · ${block.counted} of ${block.files} done${block.blocking > 0 ? ` · ${block.blocking} blocking` : ''}`}
      </text>
      {more > 0 ? (
        <text class="faint" x={GRAPH.path + 16} y={y + height - 8}>
          {`and ${more} more`}
        </text>
      ) : null}
    </g>
  );
}

function After({ from, to }: { readonly from: BlockBox | undefined; readonly to: BlockBox | undefined }) {
  if (from === undefined || to === undefined) return null;
  const [a, b] = [from.y + from.height / 2, to.y + to.height / 2 + (from.y > to.y ? 8 : -8)];
  const x = GRAPH.box;
  const bend = Math.max(8, x - 20 - Math.abs(a - b) / 12);
  return (
    <g>
      <path class="after" d={`M${x} ${a}C${bend} ${a} ${bend} ${b} ${x - 7} ${b}`} />
      <path class="tip" d={`M${x - 8} ${b - 4}L${x - 1} ${b}L${x - 8} ${b + 4}z`}>
        <title>{`${from.block.id} waits for ${to.block.id}`}</title>
      </path>
    </g>
  );
}

/** A shape for a tone, so that the state is told without colour. */
export function Mark({ tone, x, y }: { readonly tone: Tone; readonly x: number; readonly y: number }) {
  const at = (d: string) => <path class="mark" d={d} />;
  const shape: Record<Tone, unknown> = {
    ok: <circle class="mark" cx={x} cy={y} r="5" />,
    bad: at(`M${x - 5} ${y - 5}h10v10h-10z`),
    wait: at(`M${x} ${y - 6}L${x + 6} ${y + 5}L${x - 6} ${y + 5}z`),
    busy: at(`M${x - 6} ${y}L${x} ${y - 6}L${x + 6} ${y}L${x} ${y + 6}z`),
    off: at(`M${x - 5} ${y - 1.5}h10v3h-10z`),
  };
  return <g class={tone}>{shape[tone] as ReturnType<typeof at>}</g>;
}
