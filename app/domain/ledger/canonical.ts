/**
 * Canonical JSON (RFC 8785) behind a validator. What may be in a row is checked as it is
 * written, since libraries differ on the rest: one emits invalid JSON for functions and sparse
 * arrays, others keep lone surrogates, all overflow the stack on deep input (LED-2).
 */
import { Fault } from '../../errors.ts';
import { isSafeText } from '../path.ts';

/** Most bytes of one row's body (LED-2). */
export const BODY_LIMIT = 32 * 1024;
/** Deepest nesting of a row's body, the body itself being 1 (LED-2). */
export const DEPTH_LIMIT = 8;

const KEY = /^[a-z0-9_]{1,64}$/;

/** The canonical bytes of a value; `row_invalid` names the place of what LED-2 does not allow, and never the value. */
export function canonicalBytes(value: unknown, limit = BODY_LIMIT): Buffer {
  const text = textOf(value, 1);
  // only now is it worth the way to the place
  if (text === undefined) throw new Fault('row_invalid', findProblem(value, '', 1) ?? 'it is not allowed');
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length > limit)
    throw new Fault('row_invalid', `${bytes.length} bytes where ${limit} are allowed`);
  return bytes;
}

/**
 * The canonical form in one pass, undefined for what LED-2 does not allow. Of all that RFC 8785 rules only two
 * things are left then: keys in the order of their code units, and strings and integers as JSON.stringify has
 * them. The library that does the rest cost half of what signing a row does; a test holds this to it.
 */
function textOf(value: unknown, depth: number): string | undefined {
  switch (typeof value) {
    case 'string':
      return isSafeText(value) ? JSON.stringify(value) : undefined;
    case 'number':
      return Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : undefined;
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      break;
    default:
      return undefined;
  }
  if (value === null) return 'null';
  if (depth > DEPTH_LIMIT) return undefined;
  let text = '';
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const inner = textOf(value[i], depth + 1);
      if (inner === undefined) return undefined;
      text += i === 0 ? inner : `,${inner}`;
    }
    return `[${text}]`;
  }
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype !== Object.prototype && prototype !== null) return undefined;
  if (Object.getOwnPropertySymbols(value).length > 0) return undefined;
  for (const key of Object.keys(value).sort()) {
    if (!KEY.test(key)) return undefined;
    const inner = textOf((value as Record<string, unknown>)[key], depth + 1);
    if (inner === undefined) return undefined;
    text += text === '' ? `"${key}":${inner}` : `,"${key}":${inner}`;
  }
  return `{${text}}`;
}

/** Names the first place that is not allowed. */
function findProblem(value: unknown, at: string, depth: number): string | undefined {
  const here = at === '' ? 'the value' : at;
  switch (typeof value) {
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isSafeInteger(value) && !Object.is(value, -0)
        ? undefined
        : `${here} is not a safe integer`;
    case 'string':
      return isSafeText(value) ? undefined : `${here} holds a NUL or a lone surrogate`;
    case 'object':
      break;
    default:
      return `${here} is a ${typeof value}`;
  }
  if (value === null) return undefined;
  if (depth > DEPTH_LIMIT) return `${here} is nested deeper than ${DEPTH_LIMIT}`;
  if (Array.isArray(value)) {
    // not forEach: it skips the holes of a sparse array
    for (let i = 0; i < value.length; i++) {
      const problem = findProblem(value[i], `${at}[${i}]`, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype !== Object.prototype && prototype !== null) return `${here} is not a plain object`;
  if (Object.getOwnPropertySymbols(value).length > 0) return `${here} has a symbol for a key`;
  for (const [key, inner] of Object.entries(value)) {
    if (!KEY.test(key)) return `${here} has a key outside [a-z0-9_]`;
    const problem = findProblem(inner, at === '' ? key : `${at}.${key}`, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
