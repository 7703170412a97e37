/**
 * Canonical JSON (RFC 8785) behind a validator. What may be in a row is checked before it is
 * canonicalised, since libraries differ on the rest: one emits invalid JSON for functions and sparse
 * arrays, others keep lone surrogates, all overflow the stack on deep input (LED-2).
 */
import canonicalize from 'canonicalize';
import { Fault } from '../../errors.ts';
import { isSafeText } from '../path.ts';

/** Most bytes of one row's body (LED-2). */
export const BODY_LIMIT = 32 * 1024;
/** Deepest nesting of a row's body, the body itself being 1 (LED-2). */
export const DEPTH_LIMIT = 8;

const KEY = /^[a-z0-9_]{1,64}$/;

/** The canonical bytes of a value; `row_invalid` names the place of what LED-2 does not allow, and never the value. */
export function canonicalBytes(value: unknown, limit = BODY_LIMIT): Buffer {
  const problem = findProblem(value, '', 1);
  if (problem !== undefined) throw new Fault('row_invalid', problem);
  const text = canonicalize(value);
  if (text === undefined) throw new Fault('row_invalid', 'nothing to canonicalise');
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length > limit)
    throw new Fault('row_invalid', `${bytes.length} bytes where ${limit} are allowed`);
  return bytes;
}

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
