/**
 * One pass over a body's bytes before anything is parsed: is it JSON, an object, of bounded depth,
 * and which keys does it have at the top? Constant memory, linear time, no recursion, no objects
 * made from foreign keys. The bytes are GitHub's once the signature was verified, anyone's before.
 */

/** Deepest nesting that is accepted; GitHub's deepest payloads have about ten levels. */
export const MAX_DEPTH = 64;

/** What the pass found: the top-level keys, or why the body is refused. */
export type Scan =
  | { readonly ok: true; readonly keys: ReadonlySet<string> }
  | { readonly ok: false; readonly reason: 'not_json' | 'not_an_object' | 'too_deep' };

const STATE = {
  /** A value must come. */
  value: 0,
  /** A value, or the end of an array that has just begun. */
  firstItem: 1,
  /** A key, or the end of an object that has just begun. */
  firstKey: 2,
  /** A key must come. */
  key: 3,
  /** A colon must come. */
  colon: 4,
  /** A comma or the end of the container must come. */
  after: 5,
} as const;

const NOT_JSON = { ok: false, reason: 'not_json' } as const;
const literals = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')];

/** Scans a UTF-8 body; a byte order mark before it is allowed, as decoders drop it. */
export function scanBody(body: Buffer): Scan {
  const keys = new Set<string>();
  const end = body.length;
  let at = body.length >= 3 && body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
  at = skipSpace(body, at);
  if (body[at] !== 0x7b) return at < end && isJson(body) ? { ok: false, reason: 'not_an_object' } : NOT_JSON;
  const objects = new Uint8Array(MAX_DEPTH + 1);
  let depth = 1;
  objects[1] = 1;
  at += 1;
  let state: number = STATE.firstKey;
  while (depth > 0) {
    if ((body[at] as number) <= 0x20) at = skipSpace(body, at);
    if (at >= end) return NOT_JSON;
    const byte = body[at] as number;
    switch (state) {
      case STATE.firstKey:
      case STATE.key: {
        if (byte === 0x7d && state === STATE.firstKey) {
          depth -= 1;
          at += 1;
          state = STATE.after;
          break;
        }
        if (byte !== 0x22) return NOT_JSON;
        const close = endOfString(body, at + 1);
        if (close < 0) return NOT_JSON;
        if (depth === 1) keys.add(body.toString('utf8', at + 1, close - 1));
        at = close;
        state = STATE.colon;
        break;
      }
      case STATE.colon:
        if (byte !== 0x3a) return NOT_JSON;
        at += 1;
        state = STATE.value;
        break;
      case STATE.after:
        at += 1;
        if (byte === 0x2c) state = objects[depth] === 1 ? STATE.key : STATE.value;
        else if (byte === (objects[depth] === 1 ? 0x7d : 0x5d)) depth -= 1;
        else return NOT_JSON;
        break;
      default:
        if (byte === 0x22) {
          at = endOfString(body, at + 1);
          if (at < 0) return NOT_JSON;
          state = STATE.after;
        } else if (byte === 0x7b || byte === 0x5b) {
          depth += 1;
          if (depth > MAX_DEPTH) return { ok: false, reason: 'too_deep' };
          objects[depth] = byte === 0x7b ? 1 : 0;
          at += 1;
          state = byte === 0x7b ? STATE.firstKey : STATE.firstItem;
        } else if (byte === 0x5d && state === STATE.firstItem) {
          depth -= 1;
          at += 1;
          state = STATE.after;
        } else {
          at = endOfScalar(body, at);
          if (at < 0) return NOT_JSON;
          state = STATE.after;
        }
    }
  }
  return skipSpace(body, at) === end ? { ok: true, keys } : NOT_JSON;
}

function skipSpace(body: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = body[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** The position after the closing quote; -1 when there is none, or for what JSON allows in no string. */
function endOfString(body: Buffer, from: number): number {
  const end = body.length;
  for (let at = from; at < end; at++) {
    while (at < end && PLAIN[body[at] as number] === 1) at += 1;
    if (at === end) return -1;
    const byte = body[at] as number;
    if (byte === 0x22) return at + 1;
    if (byte !== 0x5c) return -1;
    at += 1;
    const escaped = body[at] as number;
    if (escaped === 0x75) {
      for (let n = 0; n < 4; n++) {
        at += 1;
        if (!isHex(body[at])) return -1;
      }
    } else if (!ESCAPES.includes(escaped)) return -1;
  }
  return -1;
}

/** 1 for the bytes that may stand in a string as they are. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === 0x22 || byte === 0x5c ? 0 : 1,
);
const ESCAPES = [0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];

function isHex(byte: number | undefined): boolean {
  return (
    byte !== undefined &&
    ((byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66))
  );
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** The position after a number, true, false or null; -1 for anything else. */
function endOfScalar(body: Buffer, from: number): number {
  for (const literal of literals) {
    if (body[from] === literal[0]) {
      const end = from + literal.length;
      return body.compare(literal, 0, literal.length, from, Math.min(end, body.length)) === 0 ? end : -1;
    }
  }
  let at = from;
  if (body[at] === 0x2d) at += 1;
  if (!isDigit(body[at])) return -1;
  if (body[at] === 0x30) at += 1;
  else while (isDigit(body[at])) at += 1;
  if (body[at] === 0x2e) {
    at += 1;
    if (!isDigit(body[at])) return -1;
    while (isDigit(body[at])) at += 1;
  }
  if (body[at] === 0x65 || body[at] === 0x45) {
    at += 1;
    if (body[at] === 0x2b || body[at] === 0x2d) at += 1;
    if (!isDigit(body[at])) return -1;
    while (isDigit(body[at])) at += 1;
  }
  return at;
}

/** Whether a body that is no object is JSON at all; only for the wording of a refusal, so only tried on small ones. */
function isJson(body: Buffer): boolean {
  if (body.length > 65_536) return false;
  try {
    JSON.parse(body.toString('utf8'));
    return true;
  } catch {
    return false;
  }
}
