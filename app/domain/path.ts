/**
 * Paths are bytes. Git allows any byte but NUL in one; JSON does not. This codec (LED-2) is the only
 * way between the two, for the protocol, the rows, the export and the Action.
 */
import * as z from 'zod';

/** A path as it travels in JSON: the UTF-8 string where that is valid and safe, else its bytes in base64. */
export const wirePathSchema = z.union([
  z.string().min(1).max(4096),
  z.strictObject({ b64: z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/) }),
]);

/** A path as it travels in JSON. */
export type WirePath = z.infer<typeof wirePathSchema>;

const fatal = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether text survives JSON, JCS and Postgres unchanged: no NUL, no lone surrogate. */
export function isSafeText(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed();
}

/** The wire form of a path's bytes; reversible for every byte string. */
export function encodePath(bytes: Uint8Array): WirePath {
  try {
    const text = fatal.decode(bytes);
    if (text.length > 0 && isSafeText(text)) return text;
  } catch {
    // not UTF-8: the bytes themselves travel
  }
  return { b64: Buffer.from(bytes).toString('base64') };
}

/** The bytes of a path's wire form. */
export function decodePath(path: WirePath): Buffer {
  return typeof path === 'string' ? Buffer.from(path, 'utf8') : Buffer.from(path.b64, 'base64');
}

const ASCII = /^[\x20-\x7e]*$/;

/** A key under which paths compare as exact bytes (OWN-1): latin-1 text, one character a byte. */
export function pathKey(path: WirePath): string {
  // most paths are ASCII and are their own key: a scan costs a tenth of the copy
  if (typeof path === 'string' && ASCII.test(path)) return path;
  return decodePath(path).toString('latin1');
}

/** What a person reads for a path: the text itself, or its bytes with unsafe ones escaped as \xNN. */
export function showPath(path: WirePath): string {
  if (typeof path === 'string') return path;
  return Array.from(decodePath(path), (b) =>
    b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : `\\x${b.toString(16).padStart(2, '0')}`,
  ).join('');
}
