/** Findings as annotations that GitHub takes (PUB-3, cases 29, 31, 33): repaired by fixed rules, or moved to the summary with the reason. */
import { neutralPlain } from '../neutralise.ts';
import { cutText } from './markdown.ts';

/** GitHub's limits: annotations a request, bytes of a message (64 KB), characters of a title. */
export const BATCH = 50;
const MESSAGE_BYTES = 64 * 1024 - 1;
const TITLE_CHARS = 255;

/** What an annotation is made of; texts as stored, redacted. */
export interface AnnotationSource {
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  readonly startColumn?: number;
  readonly endColumn?: number;
  readonly level: 'notice' | 'warning' | 'failure';
  readonly title: string;
  readonly message: string;
}

/** An annotation within GitHub's limits. */
export interface PlacedAnnotation {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number;
  readonly start_column?: number;
  readonly end_column?: number;
  readonly annotation_level: 'notice' | 'warning' | 'failure';
  readonly message: string;
  readonly title?: string;
}

/** Lines of a file as git and GitHub count them: by LF alone; an unended last line counts (case 29). */
export function countLines(blob: Uint8Array): number {
  let lines = 0;
  for (const byte of blob) if (byte === 0x0a) lines++;
  return blob.length > 0 && blob[blob.length - 1] !== 0x0a ? lines + 1 : lines;
}

/**
 * Places an annotation. `linesOf` gives the lines of a path at the head: undefined when the head has
 * no such file, null when its content could not be read. Never gives what GitHub refuses.
 */
export function placeAnnotation(
  source: AnnotationSource,
  linesOf: (path: string) => number | null | undefined,
):
  | { readonly ok: true; readonly annotation: PlacedAnnotation }
  | { readonly ok: false; readonly reason: string } {
  const path = source.path.replace(/^(?:\.?\/)+/, '');
  const lines = path === '' ? undefined : linesOf(path);
  if (lines === undefined) return { ok: false, reason: 'the file is not in this head' };
  const start = Math.max(1, Math.trunc(source.startLine) || 1);
  if (lines !== null && start > Math.max(1, lines))
    return { ok: false, reason: `line ${start} is past the end (${lines} lines)` };
  const named = Math.max(start, Math.trunc(source.endLine) || start);
  const end = lines === null ? named : Math.min(named, Math.max(1, lines));
  const title = cutChars(neutralPlain(source.title).replace(/\s+/g, ' ').trim(), TITLE_CHARS);
  const body = neutralPlain(source.message).trim();
  return {
    ok: true,
    annotation: {
      path,
      start_line: start,
      end_line: end,
      ...columns(source, start, end),
      annotation_level: source.level,
      message: cutMessage(body === '' ? title || 'No text was given.' : body),
      ...(title === '' ? {} : { title }),
    },
  };
}

/** Only where start and end are one line, both from 1 and in order; else none at all. */
function columns(source: AnnotationSource, start: number, end: number) {
  const { startColumn, endColumn } = source;
  if (startColumn === undefined || start !== end || !Number.isInteger(startColumn) || startColumn < 1)
    return {};
  if (endColumn !== undefined && !(Number.isInteger(endColumn) && endColumn >= startColumn)) return {};
  return { start_column: startColumn, ...(endColumn === undefined ? {} : { end_column: endColumn }) };
}

function cutMessage(message: string): string {
  if (Buffer.byteLength(message) <= MESSAGE_BYTES) return message;
  const marker = '\n… cut here';
  return cutText(message, MESSAGE_BYTES - Buffer.byteLength(marker)) + marker;
}

function cutChars(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}
