/** What a person should know of blocks and no rule holds against them (BLK-3): trailers that were not understood, names that were taken. */
import type { RunState } from '../run-state/state.ts';
import { Markdown, md } from './markdown.ts';
import { count } from './title.ts';

/** A note on a block, as its rows say it; `detail` is the author's text in part. */
export interface BlockNoteLine {
  readonly block: string;
  readonly code: string;
  readonly detail: string;
}

const MOST = 20;
/** What the gate holds a run for is told there. */
const TOLD: ReadonlySet<string> = new Set(['bad_after', 'dependency_cycle']);

/** The notes on the blocks of the present head, in the order in which those were opened. */
export function blockNotes(state: RunState): BlockNoteLine[] {
  return [...state.blocks.values()]
    .filter((block) => block.ended !== 'dropped')
    .flatMap((block) =>
      block.notes
        .filter((note) => !TOLD.has(note.code))
        .map(({ code, detail }) => ({ block: block.id, code, detail })),
    );
}

/** The part of the summary; empty where there is no note. */
export function notesPart(notes: readonly BlockNoteLine[]): Markdown {
  if (notes.length === 0) return md``;
  const shown = notes.slice(0, MOST);
  const lines = shown.map(
    (one) => md`- ${Markdown.code(one.block)} ${Markdown.code(one.code)} ${Markdown.code(one.detail)}`,
  );
  const more = notes.length - shown.length;
  return Markdown.folded(
    md`${count(notes.length, 'note')} on blocks`,
    Markdown.join([...lines, ...(more > 0 ? [md`- … and ${count(more, 'more note')}`] : [])], '\n'),
  );
}
