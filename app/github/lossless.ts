/**
 * JSON of GitHub's without rounding: ids are 64-bit, and `JSON.parse` rounds integers above 2^53
 * (case 70). Integers of 16 digits or more become strings before parsing; `idSchema` takes both.
 */
import * as z from 'zod';

/** A GitHub id, from a number or a long integer read as a string, to a decimal string. */
export const idSchema = z.union([z.int().min(0).transform(String), z.string().regex(/^[1-9][0-9]{0,19}$/)]);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;

/** Parses JSON; an integer of 16 digits or more is answered as the string of its digits. Throws `SyntaxError`. */
export function parseLossless(text: string): unknown {
  return JSON.parse(/[0-9]{16}/.test(text) ? quoteLongIntegers(text) : text);
}

/** Puts quotes around integers of 16 digits or more that stand outside strings. Linear in the length. */
function quoteLongIntegers(text: string): string {
  let out = '';
  let kept = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at + 1);
    } else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(text, at);
      if (end - at >= 16 && isInteger(text, at, end)) {
        out += `${text.slice(kept, at)}"${text.slice(at, end)}"`;
        kept = end;
      }
      at = end;
    } else at += 1;
  }
  return out + text.slice(kept);
}

/** The position after the closing quote, or the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at += 1;
    else if (code === QUOTE) return at + 1;
  }
  return text.length;
}

/** The position after a number: digits, sign, point, exponent. */
function endOfNumber(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && /[0-9.eE+-]/.test(text.charAt(at))) at += 1;
  return at;
}

function isInteger(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (!isDigit(text.charCodeAt(at))) return false;
  return true;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
