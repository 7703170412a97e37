/** Lines on a terminal: text from repositories may hold what terminals obey. */

/** Prints lines without control, format and bidirectional characters. */
export function printLines(lines: readonly string[]): void {
  for (const line of lines)
    console.log(line.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu, '\ufffd'));
}
