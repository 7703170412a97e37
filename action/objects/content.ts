/**
 * What a blob is to a reviewer (TKT-5, cases 25, 26, 28): text with the line numbers of its bytes, or
 * a class that is said by name. Nothing is cut, and nothing that was not read counts as read.
 */
import { linesOf } from '../../app/domain/finding.ts';
import { LARGEST_BLOB } from './cat-file.ts';

/** A blob's text, or why there is none; `end` is the ticket's end (TKT-2). */
export type Content =
  | Readonly<{
      kind: 'text';
      text: string;
      lines: number;
      /** What a person should know about how it was read: `link text`, `latin-1`, `byte order mark`. */
      note: string | null;
    }>
  | Readonly<{ kind: 'unread'; end: 'content_unread' | 'too_large'; detail: string }>;

/** Where git looks for a NUL byte to call a blob binary. */
const BINARY_WINDOW = 8000;
const LFS =
  /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*oid (\S+)\nsize ([0-9]+)\n/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Above this share of bytes that are no UTF-8, a text is in an encoding we do not know. */
const LATIN_SHARE = 0.1;

/** Classifies a blob's bytes (null: larger than what is kept) under the ticket's limit of lines. */
export function readContent(bytes: Buffer | null, mode: string | null, maxLines: number): Content {
  if (bytes === null) return { kind: 'unread', end: 'too_large', detail: `more than ${LARGEST_BLOB} bytes` };
  if (mode === '120000') return text(bytes.toString('utf8'), 'the text of a symbolic link');
  const unread = (detail: string): Content => ({ kind: 'unread', end: 'content_unread', detail });
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    return unread('undecodable: utf-16 byte order mark');
  if (bytes.subarray(0, BINARY_WINDOW).includes(0)) return unread('binary');
  if (bytes.length < 1024) {
    const pointer = LFS.exec(bytes.toString('latin1'));
    if (pointer !== null) return unread(`lfs pointer: ${pointer[1]}, ${pointer[2]} bytes not fetched`);
  }
  const content = decode(bytes);
  if (content.kind === 'text' && content.lines > maxLines)
    return { kind: 'unread', end: 'too_large', detail: `${content.lines} lines, the limit is ${maxLines}` };
  return content;
}

function decode(bytes: Buffer): Content {
  try {
    const decoded = utf8.decode(bytes);
    return decoded.startsWith('\ufeff')
      ? text(decoded.slice(1), 'a byte order mark at the start, not shown')
      : text(decoded, null);
  } catch {
    let high = 0;
    for (const byte of bytes) if (byte >= 0x80) high++;
    // LF is one byte in both readings: line numbers are those of the blob
    if (high <= bytes.length * LATIN_SHARE)
      return text(bytes.toString('latin1'), 'not UTF-8, read as latin-1');
    return { kind: 'unread', end: 'content_unread', detail: 'undecodable: not UTF-8' };
  }
}

function text(decoded: string, note: string | null): Content {
  return { kind: 'text', text: decoded, lines: linesOf(decoded).length, note };
}

/** What a submodule is: two commits, no content (case 26). */
export function submoduleContent(base: string | null, head: string | null): Content {
  return {
    kind: 'unread',
    end: 'content_unread',
    detail: `submodule: ${base ?? 'none'} to ${head ?? 'none'}`,
  };
}
