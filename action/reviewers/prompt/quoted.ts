/**
 * Text of a pull request as a prompt quotes it (REV-2): data between markers that carry the ticket's
 * nonce, with every character visible. Whoever wrote the text controls all of it, and none of the frame.
 */

/**
 * Characters that a person does not see, or that change the order or the lines of what they see: tags,
 * zero-width and bidirectional controls, line separators that git does not count, control characters.
 * The mark's own bracket is among them, so that `unmark` is exact.
 */
const UNSEEN = new RegExp(
  `[${[
    '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f',
    '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\uffa0',
    '\\u200b\\u200c\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff0-\\ufffb',
    '\\u27e6',
    '\\u{e0000}-\\u{e0fff}',
  ].join('')}]`,
  'gu',
);
const MARK = /\u27e6U\+([0-9A-F]{4,6})\u27e7/g;

/** The text with each unseen character as a mark such as ⟦U+200B⟧; `unmark` gives it back exactly. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `\u27e6U+${code}\u27e7`;
  });
}

/** The text that `visible` showed; a mark of no character stays as it is. */
export function unmark(text: string): string {
  return text.replace(MARK, (mark, hex: string) => {
    const code = Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : mark;
  });
}

/** A section of data. `name` is ours; of the body nothing can close the section or pass for another. */
export function quoted(nonce: string, name: string, body: string): string {
  const inside = body.replaceAll(nonce, '(nonce)');
  return `<<<DATA ${nonce} ${name}\n${inside}\n>>>END ${nonce} ${name}`;
}

/** One line of at most so many characters, for lists. */
export function oneLine(text: string, most: number): string {
  const line = visible(text.replaceAll('\n', ' '));
  return line.length <= most ? line : `${line.slice(0, most - 1).toWellFormed()}…`;
}
