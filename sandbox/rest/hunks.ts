/** One line of a patch: where it is in the hunk list, and its number on each side that has it. */
export interface HunkLine {
  readonly hunk: number;
  /** Lines below the file's first `@@`, which is GitHub's `position`. */
  readonly position: number;
  readonly left: number | null;
  readonly right: number | null;
  readonly text: string;
}

/** The lines of a patch as GitHub's `diff-entry` carries it; a comment must lie on one of them. */
export function hunkLines(patch: string): HunkLine[] {
  const lines: HunkLine[] = [];
  let hunk = -1;
  let left = 0;
  let right = 0;
  let position = -1;
  for (const text of patch.split('\n')) {
    position++;
    const start = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(text);
    if (start !== null) {
      hunk++;
      left = Number(start[1]);
      right = Number(start[2]);
      continue;
    }
    if (text.startsWith('\\')) continue;
    const isOld = !text.startsWith('+');
    const isNew = !text.startsWith('-');
    lines.push({ hunk, position, left: isOld ? left : null, right: isNew ? right : null, text });
    if (isOld) left++;
    if (isNew) right++;
  }
  return lines;
}

/** The patch from the hunk's header to a position: what GitHub shows above a comment. */
export function hunkUpTo(patch: string, position: number): string {
  const lines = patch.split('\n').slice(0, position + 1);
  const start = lines.findLastIndex((line) => line.startsWith('@@ '));
  return lines.slice(Math.max(start, 0)).join('\n');
}
